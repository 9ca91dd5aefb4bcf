import { Type, type Static } from '@sinclair/typebox';
import type { Dispatcher } from 'undici';
import { MASK } from '../../domain/pipeline/secrets.ts';
import { start } from '../../domain/pipeline/size.ts';
import type { Span } from '../../observability/telemetry.ts';
import { traceRequest } from '../tracing.ts';
import { defineTool } from './basic-tools.ts';
import { HttpClient } from './http-client.ts';
import { decodeBody, mayPass, plainHeaders, readBody, retryAfterMs } from './http-response.ts';
import {
  isPrivateAddress,
  PrivateAddressError,
  refusePrivateHost,
  type AddressCheck,
  type LookUpAll,
} from './private-addresses.ts';
import { ToolError, type Tool, type ToolCall } from './tool.ts';

/** Redirects that are followed. */
const MOST_REDIRECTS = 5;

const redirects = new Set([301, 302, 303, 307, 308]);

const methods = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'] as const;
type Method = (typeof methods)[number];

const scalar = Type.Union([Type.String(), Type.Number(), Type.Boolean()]);
const statusPattern = Type.Union([
  Type.Integer({ minimum: 100, maximum: 599 }),
  /** `2xx` and the like. */
  Type.String({ pattern: '^[1-5](\\d\\d|xx)$' }),
]);

const Arguments = Type.Object(
  {
    method: Type.Optional(
      Type.Unsafe<string>({
        type: 'string',
        enum: [...methods, ...methods.map((method) => method.toLowerCase())],
      }),
    ),
    /** http or https. */
    url: Type.String({ minLength: 1, maxLength: 8192 }),
    headers: Type.Optional(Type.Record(Type.String(), scalar)),
    /** Added to the URL's query; an array gives the name several times. */
    query: Type.Optional(Type.Record(Type.String(), Type.Union([scalar, Type.Array(scalar)]))),
    /** Text as it is; anything else as JSON. */
    body: Type.Optional(Type.Unknown()),
    expect_status: Type.Optional(
      Type.Union([statusPattern, Type.Array(statusPattern, { minItems: 1 })]),
    ),
  },
  { additionalProperties: false },
);
type Arguments = Static<typeof Arguments>;

/** Headers that may go to another origin than the one they were meant for. All others may hold credentials. */
const harmlessHeaders = new Set(['accept', 'accept-language', 'content-type', 'user-agent']);

/** Characters of an answer that an error tells. */
const TOLD_OF_ANSWER = 500;

/** One hop of a request. */
interface Hop {
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
 * The tool `http.request`. The client that it keeps connections in is closed with it.
 * @param options.allowPrivate lets requests go to loopback, private and link-local addresses
 * @param options.lookUpAll in the place of `dns.lookup`
 * @param options.isPrivate in the place of {@link isPrivateAddress}
 */
export function createHttpTool(options: {
  readonly allowPrivate: boolean;
  readonly userAgent?: string;
  readonly lookUpAll?: LookUpAll;
  readonly isPrivate?: AddressCheck;
}): { readonly tool: Tool; readonly close: () => Promise<void> } {
  const { allowPrivate, lookUpAll, userAgent = 'task-scheduling-service' } = options;
  const { isPrivate = isPrivateAddress } = options;
  const client = new HttpClient({ allowPrivate, lookUpAll, isPrivate });
  const tool = defineTool({
    name: 'http.request',
    description: 'Makes an HTTP request.',
    schema: Arguments,
    run: (args, call) =>
      fetchAll(args, call, { client, isPrivate: allowPrivate ? null : isPrivate, userAgent }),
  });
  return { tool, close: () => client.close() };
}

interface Means {
  readonly client: HttpClient;
  /** Null: all may be reached. */
  readonly isPrivate: AddressCheck | null;
  readonly userAgent: string;
}

async function fetchAll(args: Arguments, call: ToolCall, means: Means): Promise<unknown> {
  const left: Dispatcher.ResponseData['body'][] = [];
  try {
    return await follow(args, call, means, left);
  } finally {
    for (const body of left) body.destroy();
  }
}

/** @param left gets the bodies of answers that led elsewhere; they may go on */
async function follow(
  args: Arguments,
  call: ToolCall,
  means: Means,
  left: Dispatcher.ResponseData['body'][],
): Promise<unknown> {
  let hop = firstHop(args, call, means);
  for (let redirected = 0; ; redirected += 1) {
    const response = await fetchOne(hop, call, means);
    const location = response.headers['location'];
    const leads =
      redirects.has(response.statusCode) &&
      location !== undefined &&
      !(args.expect_status !== undefined && isExpected(response.statusCode, args));
    if (!leads) return conclude(args, call, hop, response);
    // Read for the sake of its connection alone; nobody waits for what may have no end.
    left.push(response.body);
    void response.body.dump().catch(() => {});
    if (redirected === MOST_REDIRECTS) {
      throw new ToolError(`more than ${MOST_REDIRECTS} redirects`, { retryable: false });
    }
    hop = nextHop(hop, response.statusCode, addressOf(String(location)), call);
  }
}

/** Headers come as Latin-1; an address that is not ASCII is written in UTF-8, as browsers take it. */
function addressOf(location: string): string {
  return Buffer.from(location, 'latin1').toString();
}

async function fetchOne(
  hop: Hop,
  { signal, span }: ToolCall,
  { client, isPrivate }: Means,
): Promise<Dispatcher.ResponseData> {
  const { url, host, method, headers, body } = hop;
  const send = (sent?: Span): Promise<Dispatcher.ResponseData> =>
    client.request(url, {
      method,
      headers: { ...sent?.headers, ...Object.fromEntries(headers) },
      body,
      signal,
    });
  const told = { protocol: url.protocol, hostname: host, port: url.port };
  try {
    if (isPrivate) refusePrivateHost(url, isPrivate);
    return await (span === undefined ? send() : traceRequest(span, method, told, send));
  } catch (error) {
    throw toolErrorOf(error, hop);
  }
}

async function conclude(
  args: Arguments,
  call: ToolCall,
  hop: Hop,
  response: Dispatcher.ResponseData,
): Promise<unknown> {
  const status = response.statusCode;
  const headers = plainHeaders(response.headers);
  let read;
  try {
    read = await readBody(response.body);
  } catch (error) {
    throw toolErrorOf(error, hop);
  }
  if (isExpected(status, args)) {
    return { status, headers, ...decodeBody(read, headers['content-type'] ?? '') };
  }
  const text = start(call.mask(read.bytes.toString()), TOLD_OF_ANSWER).trim();
  const message = `${hop.method} ${hop.shown} answered ${status}`;
  throw new ToolError(text === '' ? message : `${message}: ${text}`, {
    retryable: mayPass(status),
    retryAfterMs: retryAfterMs(headers['retry-after'], call.clock.now()),
  });
}

function firstHop(args: Arguments, call: ToolCall, { userAgent }: Means): Hop {
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
  const shown = shownAs(call.mask(args.url));
  return {
    url,
    shown,
    host: hostIn(shown, url),
    method: (args.method ?? 'GET').toUpperCase() as Method,
    headers,
    body: body === undefined ? null : typeof body === 'string' ? body : JSON.stringify(body),
  };
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

/** As browsers do: 303 turns into GET, 301 and 302 do so for POST; to another origin goes nothing private. */
function nextHop(hop: Hop, status: number, location: string, call: ToolCall): Hop {
  const url = parseUrl(location, call, hop.url);
  // Credentials in a redirect's address are the other side's affair.
  url.username = '';
  url.password = '';
  const toGet =
    (status === 303 && hop.method !== 'HEAD') || (status <= 302 && hop.method === 'POST');
  const sameOrigin = url.origin === hop.url.origin;
  const headers = new Map(
    [...hop.headers].filter(
      ([name]) =>
        (sameOrigin || harmlessHeaders.has(name) || name === 'accept-encoding') &&
        !(toGet && name.startsWith('content-')),
    ),
  );
  // A server names its host in lower case, in which a short secret is not found.
  const masked = call.mask(location).replaceAll(hop.url.hostname, hop.host);
  const shown = shownAs(masked, hop.shown);
  const there = { url, shown, host: hostIn(shown, url), headers };
  return toGet ? { ...there, method: 'GET', body: null } : { ...hop, ...there };
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

function isExpected(status: number, { expect_status }: Arguments): boolean {
  if (expect_status === undefined) return status >= 200 && status < 300;
  const patterns = Array.isArray(expect_status) ? expect_status : [expect_status];
  return patterns.some((pattern) => {
    const text = String(pattern);
    return text.endsWith('xx')
      ? Math.floor(status / 100) === Number(text[0])
      : status === Number(text);
  });
}

/** Header values are printable ASCII; step ids may be anything. */
function printable(text: string): string {
  return text.replace(/[^\x21-\x7e]/gu, (character) =>
    encodeURIComponent(character.replace(/\p{Surrogate}/u, '\ufffd')),
  );
}

/**
 * Requests that can't even be written stay so; everything on the way may pass. Where a secret is in the host, no more is
 * told than the code: messages name the host as it was asked for, in lower case and perhaps as a part of the secret.
 */
function toolErrorOf(error: unknown, { url, method, shown, host }: Hop): unknown {
  const isHidden = host !== url.hostname;
  if (error instanceof PrivateAddressError) return isHidden ? new PrivateAddressError(host) : error;
  if (error instanceof ToolError || !(error instanceof Error)) return error;
  const code = 'code' in error ? String(error.code) : '';
  const retryable = !/^(UND_ERR_INVALID_ARG|UND_ERR_NOT_SUPPORTED|UND_ERR_REQ_|ERR_INVALID)/.test(
    code,
  );
  const what = (isHidden ? '' : error.message) || code || error.name;
  return new ToolError(`${method} ${shown} failed: ${what}`, {
    retryable,
    ...(isHidden ? {} : { cause: error }),
  });
}
