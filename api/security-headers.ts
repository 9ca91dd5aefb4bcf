import type { NextFunction, Request, Response } from 'express';
import helmet from 'helmet';

/** What a page of this service may load: what this service serves, and nothing from elsewhere. */
export const pagePolicy =
  "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; " +
  "font-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'";

/**
 * Helmet's headers, with a policy under which an answer that is no page loads nothing and is framed by nobody.
 * A page sets `Content-Security-Policy` anew, to {@link pagePolicy} or its own.
 *
 * They are the same for every answer, so Helmet is asked for them once and not in each request.
 */
export function securityHeaders() {
  const headers = Object.entries(helmetHeaders());
  return (_request: Request, response: Response, next: NextFunction): void => {
    for (const [name, value] of headers) response.setHeader(name, value);
    next();
  };
}

function helmetHeaders(): Readonly<Record<string, string>> {
  const headers: Record<string, string> = {};
  const recorder = {
    setHeader: (name: string, value: string) => void (headers[name] = value),
    removeHeader: (name: string) => void delete headers[name],
  };
  const set = helmet({
    contentSecurityPolicy: {
      useDefaults: false,
      directives: {
        'default-src': ["'none'"],
        'base-uri': ["'none'"],
        'form-action': ["'none'"],
        'frame-ancestors': ["'none'"],
      },
    },
    // Browsers of other origins may read what `SVC_CORS_ORIGINS` lets them read.
    crossOriginResourcePolicy: { policy: 'cross-origin' },
    xFrameOptions: { action: 'deny' },
  });
  set({} as Request, recorder as unknown as Response, (fault?: unknown) => {
    if (fault !== undefined) throw fault;
  });
  return headers;
}
