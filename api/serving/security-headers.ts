import type { Request, Response } from 'express';
import helmet, { type HelmetOptions } from 'helmet';

/** Helmet's headers for responses that are not pages: they may load nothing and appear in no frame. */
export function securityHeaders(): Readonly<Record<string, string>> {
  return headersOf(responses);
}

/** Helmet's headers for a page of this service, which may load only what this service serves. */
export function pageHeaders(): Readonly<Record<string, string>> {
  return headersOf(pages);
}

const none = ["'none'"];
const self = ["'self'"];

/** `SVC_CORS_ORIGINS` decides which origins may read a response. */
const crossOriginResourcePolicy = { policy: 'cross-origin' } as const;

const responses: HelmetOptions = {
  contentSecurityPolicy: {
    useDefaults: false,
    directives: {
      'default-src': none,
      'base-uri': none,
      'form-action': none,
      'frame-ancestors': none,
    },
  },
  xFrameOptions: { action: 'deny' },
  crossOriginResourcePolicy,
  crossOriginOpenerPolicy: false,
  originAgentCluster: false,
  xDnsPrefetchControl: false,
  xDownloadOptions: false,
  xPermittedCrossDomainPolicies: false,
  xXssProtection: false,
};

const pages: HelmetOptions = {
  contentSecurityPolicy: {
    useDefaults: false,
    directives: {
      'default-src': none,
      'script-src': self,
      'style-src': [...self, "'unsafe-inline'"],
      'img-src': [...self, 'data:'],
      'font-src': self,
      'connect-src': self,
      'base-uri': none,
      'form-action': self,
      'frame-ancestors': none,
    },
  },
  xFrameOptions: { action: 'deny' },
};

function headersOf(options: HelmetOptions): Readonly<Record<string, string>> {
  const headers: Record<string, string> = {};
  const recorder = {
    setHeader: (name: string, value: string) => void (headers[name] = value),
    removeHeader: (name: string) => void delete headers[name],
  };
  helmet(options)({} as Request, recorder as unknown as Response, (fault?: unknown) => {
    if (fault !== undefined) throw new Error('Helmet failed', { cause: fault });
  });
  return headers;
}
