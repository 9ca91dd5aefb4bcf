import { MASK } from '../../domain/pipeline/secrets.ts';
import { truncateString } from '../../domain/pipeline/json-size.ts';
import { hostIssue } from '../../domain/secrets/host-check.ts';
import type { HttpArguments, Method } from './http-arguments.ts';
import { ToolError, type ToolCall } from './tool.ts';

/** Headers that may follow a redirect to another origin. All others may hold credentials. */
const harmlessHeaders = new Set(['accept', 'accept-encoding', 'accept-language', 'user-agent']);

/** Headers that frame a message. Only the client sets them. */
const framingHeaders = new Set([
  'expect',
  'keep-alive',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
]);

/** One request of a redirect chain. */
export interface Hop {
  readonly url: URL;
  /** The URL in errors: without query, credentials and secrets. */
  readonly shown: string;
  /** The host in errors and spans, with secrets masked. The whole host is masked if they cannot be located in it. */
  readonly host: string;
  readonly method: Method;
  /** Names in lower case. */
  readonly headers: ReadonlyMap<string, string>;
  readonly body: string | null;
}

/** The first request of a step. @throws ToolError for a URL or a header that cannot be sent */
export function firstHop(args: HttpArguments, call: ToolCall, userAgent: string): Hop {
  const url = parseUrl(args.url, call);
  for (const [name, value] of Object.entries(args.query ?? {})) {
    for (const each of Array.isArray(value) ? value : [value]) {
      url.searchParams.append(name, String(each));
    }
  }
  const headers = new Map([
    ['user-agent', userAgent],
    ['accept', '*/*'],
    ['accept-encoding', 'identity'],
    ['idempotency-key', printable(call.idempotencyKey)],
  ]);
  if (url.username !== '' || url.password !== '') {
    const credentials = `${unescaped(url.username)}:${unescaped(url.password)}`;
    headers.set('authorization', `Basic ${Buffer.from(credentials).toString('base64')}`);
    url.username = '';
    url.password = '';
  }
  const { body } = args;
  if (body !== undefined && typeof body !== 'string')
    headers.set('content-type', 'application/json');
  for (const [name, value] of Object.entries(args.headers ?? {})) {
    headers.set(name.toLowerCase(), String(value));
  }
  const written =
    body === undefined ? null : typeof body === 'string' ? body : JSON.stringify(body);
  refuseFraming(headers, written);
  const shown = shownAs(call.mask(args.url));
  const host = hostIn(shown, url);
  refuseHost(url, host, headers, call);
  return {
    url,
    shown,
    host,
    method: (args.method ?? 'GET').toUpperCase() as Method,
    headers,
    body: written,
  };
}

/**
 * Checks that secrets are only sent to allowed hosts. A redirect must also lead to an allowed host, even if it drops
 * the headers, because the server may have put a secret into the address.
 * @param host in a form that errors may show
 * @throws ToolError
 */
function refuseHost(
  url: URL,
  host: string,
  headers: ReadonlyMap<string, string>,
  { secrets = [] }: ToolCall,
): void {
  if (secrets.length === 0) return;
  const issue = hostIssue(secrets, url, host);
  if (issue !== null) throw new ToolError(issue, { retryable: false });
  // Servers with several names choose by this header, not by the address.
  const named = headers.get('host');
  if (named !== undefined && named.toLowerCase() !== url.host) {
    const message = 'the header host must be left out of a request with a secret';
    throw new ToolError(message, { retryable: false });
  }
}

/** Prevents request smuggling: rejects headers that contradict the framing. @throws ToolError */
function refuseFraming(headers: ReadonlyMap<string, string>, body: string | null): void {
  for (const [name, value] of headers) {
    const length = String(Buffer.byteLength(body ?? ''));
    const isWrong =
      framingHeaders.has(name) ||
      (name === 'content-length' && value !== length) ||
      (name === 'connection' && !/^(close|keep-alive)$/i.test(value));
    if (!isWrong) continue;
    const remedy =
      name === 'content-length'
        ? `the body has ${length} bytes; leave the header out`
        : name === 'connection'
          ? 'it must be close or keep-alive'
          : 'leave it out';
    throw new ToolError(`header ${name} cannot be sent: ${remedy}`, { retryable: false });
  }
}

/** Decodes a user or password. @throws ToolError for an invalid `%` escape */
function unescaped(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch (error) {
    const message = 'the user or the password in the URL has an invalid % escape';
    throw new ToolError(message, { retryable: false, cause: error });
  }
}

/**
 * Follows a redirect as browsers do: any method becomes GET with 303, and POST becomes GET with 301 or 302. Another
 * origin receives no body and no header that may hold credentials.
 */
export function nextHop(hop: Hop, status: number, location: string, call: ToolCall): Hop {
  const url = parseUrl(location, call, hop.url);
  // Credentials in a redirect are ignored.
  url.username = '';
  url.password = '';
  const toGet =
    (status === 303 && hop.method !== 'HEAD') || (status <= 302 && hop.method === 'POST');
  const sameOrigin = url.origin === hop.url.origin;
  const withoutBody = toGet || !sameOrigin;
  const headers = new Map(
    [...hop.headers].filter(
      ([name]) =>
        (sameOrigin || harmlessHeaders.has(name)) && !(withoutBody && name.startsWith('content-')),
    ),
  );
  // Servers write their host in lower case, which hides a secret from the mask.
  const masked = call.mask(location).replaceAll(hop.url.hostname, hop.host);
  const shown = shownAs(masked, hop.shown);
  const host = hostIn(shown, url);
  refuseHost(url, host, headers, call);
  return {
    url,
    shown,
    host,
    method: toGet ? 'GET' : hop.method,
    headers,
    body: withoutBody ? null : hop.body,
  };
}

/**
 * A URL without query and credentials.
 * @param masked the URL as the caller wrote it, because normalizing first could hide a secret from the mask
 */
function shownAs(masked: string, base?: string): string {
  if (!URL.canParse(masked, base)) {
    return base ?? masked.replace(/[?#].*$/s, '').replace(/\/\/[^/]*@/, '//');
  }
  const { protocol, host, pathname } = new URL(masked, base);
  return `${protocol}//${host}${pathname}`;
}

/** Masks the whole host if the shown URL is masked or names another host. */
function hostIn(shown: string, { hostname }: URL): string {
  const host = URL.canParse(shown) ? new URL(shown).hostname : MASK;
  return host === hostname || host.includes(MASK) ? host : MASK;
}

function parseUrl(text: string, call: ToolCall, base?: URL): URL {
  let url: URL | null = null;
  try {
    url = new URL(text, base);
  } catch {
    // Reported below.
  }
  if (url?.protocol !== 'http:' && url?.protocol !== 'https:') {
    const shown = truncateString(call.mask(text), 200);
    throw new ToolError(`${shown} is not an http or https URL`, { retryable: false });
  }
  return url;
}

/** Header values are printable ASCII; step ids may be anything. */
function printable(text: string): string {
  return text.replace(/[^\x21-\x7e]/gu, (character) =>
    encodeURIComponent(character.replace(/\p{Surrogate}/u, '\ufffd')),
  );
}
