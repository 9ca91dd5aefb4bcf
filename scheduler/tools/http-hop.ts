import { MASK } from '../../domain/pipeline/secrets.ts';
import { start } from '../../domain/pipeline/size.ts';
import type { HttpArguments, Method } from './http-arguments.ts';
import { ToolError, type ToolCall } from './tool.ts';

/** Headers that may go to another origin than the one they were meant for. All others may hold credentials. */
const harmlessHeaders = new Set(['accept', 'accept-encoding', 'accept-language', 'user-agent']);

/** Headers that say how a message is framed, which the client alone decides. */
const framingHeaders = new Set([
  'expect',
  'keep-alive',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
]);

/** One hop of a request. */
export interface Hop {
  readonly url: URL;
  /** What errors call it: without query, credentials and secrets. */
  readonly shown: string;
  /** Its host as errors and spans name it: `***` for what is a secret, or all of it where it can't be told apart. */
  readonly host: string;
  readonly method: Method;
  /** Names in lower case. */
  readonly headers: ReadonlyMap<string, string>;
  readonly body: string | null;
}

/**
 * The request that a step asks for.
 * @throws ToolError for an address or a header that cannot be sent
 */
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
  return {
    url,
    shown,
    host: hostIn(shown, url),
    method: (args.method ?? 'GET').toUpperCase() as Method,
    headers,
    body: written,
  };
}

/** A request whose length others read differently than it is could carry a second one inside. @throws ToolError */
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

/** Of a user or a password. @throws ToolError for a `%` that escapes nothing */
function unescaped(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch (error) {
    const message = 'the user or the password in its URL holds a % that escapes nothing';
    throw new ToolError(message, { retryable: false, cause: error });
  }
}

/**
 * As browsers do: 303 turns into GET, 301 and 302 do so for POST. To another origin goes nothing private: no body, and no
 * header that may hold credentials.
 */
export function nextHop(hop: Hop, status: number, location: string, call: ToolCall): Hop {
  const url = parseUrl(location, call, hop.url);
  // Credentials in a redirect's address are the other side's affair.
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
  // A server names its host in lower case, in which a short secret is not found.
  const masked = call.mask(location).replaceAll(hop.url.hostname, hop.host);
  const shown = shownAs(masked, hop.shown);
  return {
    url,
    shown,
    host: hostIn(shown, url),
    method: toGet ? 'GET' : hop.method,
    headers,
    body: withoutBody ? null : hop.body,
  };
}

/**
 * An address without its query and credentials.
 * @param masked as it was given: written anew, without a part, the value of a secret would no longer be found in it
 */
function shownAs(masked: string, base?: string): string {
  if (!URL.canParse(masked, base)) {
    return base ?? masked.replace(/[?#].*$/s, '').replace(/\/\/[^/]*@/, '//');
  }
  const { protocol, host, pathname } = new URL(masked, base);
  return `${protocol}//${host}${pathname}`;
}

/** Where all of an address is masked, what is shown of it may be taken for a path of the one that led there. */
function hostIn(shown: string, { hostname }: URL): string {
  const host = URL.canParse(shown) ? new URL(shown).hostname : MASK;
  return host === hostname || host.includes(MASK) ? host : MASK;
}

function parseUrl(text: string, call: ToolCall, base?: URL): URL {
  let url: URL | null = null;
  try {
    url = new URL(text, base);
  } catch {
    // Said below, as for another protocol.
  }
  if (url?.protocol !== 'http:' && url?.protocol !== 'https:') {
    const shown = start(call.mask(text), 200);
    throw new ToolError(`${shown} is no http or https URL`, { retryable: false });
  }
  return url;
}

/** Header values are printable ASCII; step ids may be anything. */
function printable(text: string): string {
  return text.replace(/[^\x21-\x7e]/gu, (character) =>
    encodeURIComponent(character.replace(/\p{Surrogate}/u, '\ufffd')),
  );
}
