import type { Request, Response } from 'express';
import helmet, { type HelmetOptions } from 'helmet';

/**
 * Helmet's headers for an answer that is no page, with a policy under which it loads nothing and is framed by
 * nobody. Those of Helmet's headers that tell of pages alone are for pages: {@link pageHeaders}.
 *
 * They are the same for every answer, so Helmet is asked for them once and not in each request.
 */
export function securityHeaders(): Readonly<Record<string, string>> {
  return headersOf(answers);
}

/**
 * Helmet's headers for a page of this service, which may load what this service serves and nothing from elsewhere.
 * They take the place of those that every answer has.
 */
export function pageHeaders(): Readonly<Record<string, string>> {
  return headersOf(pages);
}

const none = ["'none'"];
const self = ["'self'"];

/** Browsers of other origins may read what `SVC_CORS_ORIGINS` lets them read. */
const crossOriginResourcePolicy = { policy: 'cross-origin' } as const;

const answers: HelmetOptions = {
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
    if (fault !== undefined) throw new Error('Helmet gives no headers', { cause: fault });
  });
  return headers;
}
