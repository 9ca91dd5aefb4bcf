import type { IncomingMessage } from 'node:http';
import type { Request, RequestHandler } from 'express';
import { addressOf, baseOf } from './public-address.ts';

/** The address under which clients reach the service. */
interface AddressSettings {
  readonly publicUrl: string | undefined;
}

/** The cookies of the page, without their prefix. */
export const SESSION_COOKIE = 'svc_session';
export const SIGN_IN_COOKIE = 'svc_sign_in';
type CookieName = typeof SESSION_COOKIE | typeof SIGN_IN_COOKIE;

/**
 * A cookie's full name. Over TLS, `__Host-` keeps other hosts and plain HTTP from setting it. All ports of a host share
 * cookies, so a port that is not the scheme's default is part of the name.
 * @param base the address of the service
 */
function nameOf(cookie: CookieName, base: URL): string {
  const port = base.port === '' ? '' : `_${base.port}`;
  return `${base.protocol === 'https:' ? '__Host-' : ''}${cookie}${port}`;
}

/**
 * The value of `Set-Cookie`. No script can read the cookie.
 * @param base the address of the service
 * @param options.sameSite `Strict`: no request that another site caused carries the cookie. `Lax`: among such requests,
 *   only links carry it
 * @param options.seconds the lifetime of the cookie; 0 removes it
 */
export function setCookie(
  cookie: CookieName,
  value: string,
  base: string,
  options: { readonly sameSite: 'Strict' | 'Lax'; readonly seconds: number },
): string {
  const url = new URL(base);
  const secure = url.protocol === 'https:' ? '; Secure' : '';
  const { sameSite, seconds } = options;
  return `${nameOf(cookie, url)}=${value}; Path=/; Max-Age=${seconds}; HttpOnly; SameSite=${sameSite}${secure}`;
}

/** The value of a cookie; null if the request has no cookie of that name, or several. */
export function cookieIn(
  headers: IncomingMessage['headers'],
  cookie: CookieName,
  base: string,
): string | null {
  const { cookie: sent } = headers;
  if (sent?.includes(cookie) !== true) return null;
  const name = nameOf(cookie, new URL(base));
  const values = sent
    .split(';')
    .map((each) => each.trim())
    .filter((each) => each.startsWith(`${name}=`))
    .map((each) => each.slice(name.length + 1));
  const [value = '', ...others] = values;
  // Another host of the domain has set the second one, and they cannot be told apart.
  return value === '' || others.length > 0 ? null : value;
}

/**
 * Accepts the page's cookie in place of a bearer token, but only in requests that the page itself makes. Browsers also
 * attach cookies to requests that other sites cause, so in all other requests the cookie is ignored.
 */
export function acceptPageCookie(settings: AddressSettings): RequestHandler {
  return (request, _response, next) => {
    const { headers } = request;
    if (headers.cookie?.includes(SESSION_COOKIE) === true && isFree(request)) {
      const token = cookieIn(headers, SESSION_COOKIE, baseOf(request, settings));
      if (token !== null && isFromOwnPage(request, settings)) {
        headers.authorization = `Bearer ${token}`;
      }
    }
    next();
  };
}

/** With this header, the page says that the cookie counts, even if the browser adds other credentials. */
const SESSION_HEADER = 'x-session';

/** Whether a request has no credentials of its own. Browsers add Basic credentials once a person has entered some. */
const isFree = ({ headers }: Request): boolean =>
  headers.authorization === undefined ||
  (headers[SESSION_HEADER] === 'cookie' && /^basic /i.test(headers.authorization));

/**
 * Whether a request comes from a page of this service. Browsers say so in `Sec-Fetch-Site`, which no page can set.
 * Browsers that do not send it, for example over plain HTTP, send an `Origin` with every request that changes something
 * or opens a WebSocket.
 */
function isFromOwnPage(request: Request, settings: AddressSettings): boolean {
  const { method, headers } = request;
  const isReading = (method === 'GET' || method === 'HEAD') && headers.upgrade === undefined;
  const site = headers['sec-fetch-site'];
  // `none`: a person typed the address.
  if (site !== undefined) return site === 'same-origin' || (site === 'none' && isReading);
  return headers.origin === undefined ? isReading : isOwnOrigin(headers.origin, request, settings);
}

/** Whether the browser reports that a page of another origin has sent the request. */
export function isFromOtherOrigin(request: Request, settings: AddressSettings): boolean {
  const { origin, 'sec-fetch-site': site } = request.headers;
  if (site !== undefined) return site !== 'same-origin' && site !== 'none';
  return origin !== undefined && !isOwnOrigin(origin, request, settings);
}

const isOwnOrigin = (origin: string, request: Request, settings: AddressSettings): boolean =>
  origin === addressOf(request) || origin === new URL(baseOf(request, settings)).origin;
