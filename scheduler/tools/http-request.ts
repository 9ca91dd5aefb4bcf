import { start } from '../../domain/pipeline/size.ts';
import type { Span } from '../../observability/telemetry.ts';
import { AddressRefused } from '../http/address-rules.ts';
import {
  HttpClient,
  idempotentMethods,
  type HttpAnswer,
  type HttpClientOptions,
} from '../http/http-client.ts';
import { HttpFailure } from '../http/http-failure.ts';
import { readBody } from '../http/read-body.ts';
import { retryAfterMs } from '../http/retry-after.ts';
import { traceRequest } from '../tracing.ts';
import { defineTool } from './basic-tools.ts';
import { HttpArguments } from './http-arguments.ts';
import { firstHop, nextHop, type Hop } from './http-hop.ts';
import { bodyForMessage, decodeBody, mayPass, plainHeaders } from './http-response.ts';
import { ToolError, type Tool, type ToolCall } from './tool.ts';

/** Most bytes of a body that are kept, without its content coding. */
const MOST_OF_BODY = 1024 * 1024;

/** Bytes of an answer that led elsewhere that are read for the sake of its connection. */
const MOST_READ_AWAY = 64 * 1024;

/** Redirects that are followed. */
const MOST_REDIRECTS = 5;

const redirects = new Set([301, 302, 303, 307, 308]);

/** Characters of an answer that an error tells. */
const TOLD_OF_ANSWER = 500;

/**
 * The tool `http.request`. The client that it keeps connections in is closed with it.
 * @param options.userAgent what the service calls itself
 */
export function createHttpTool(options: HttpClientOptions & { readonly userAgent?: string }): {
  readonly tool: Tool;
  readonly close: () => Promise<void>;
} {
  const { userAgent = 'task-scheduling-service' } = options;
  const client = new HttpClient(options);
  const tool = defineTool({
    name: 'http.request',
    description: 'Makes an HTTP request.',
    schema: HttpArguments,
    run: (args, call) => fetchAll(args, call, { client, userAgent }),
  });
  return { tool, close: () => client.close() };
}

interface Means {
  readonly client: HttpClient;
  readonly userAgent: string;
}

async function fetchAll(args: HttpArguments, call: ToolCall, means: Means): Promise<unknown> {
  const left: HttpAnswer[] = [];
  try {
    return await follow(args, call, means, left);
  } finally {
    for (const { body } of left) body.destroy();
  }
}

/** @param left gets the answers that led elsewhere; their bodies may go on */
async function follow(
  args: HttpArguments,
  call: ToolCall,
  means: Means,
  left: HttpAnswer[],
): Promise<unknown> {
  let hop = firstHop(args, call, means.userAgent);
  for (let redirected = 0; ; redirected += 1) {
    const response = await fetchOne(hop, call, means);
    const [location] = response.headers['location'] ?? [];
    const leads =
      redirects.has(response.statusCode) &&
      location !== undefined &&
      !(args.expect_status !== undefined && isExpected(response.statusCode, args));
    if (!leads) return conclude(args, call, hop, response);
    // Read for the sake of its connection alone; nobody waits for what may have no end.
    left.push(response);
    void readBody(response, MOST_READ_AWAY);
    if (redirected === MOST_REDIRECTS) {
      throw new ToolError(`more than ${MOST_REDIRECTS} redirects`, { retryable: false });
    }
    hop = nextHop(hop, response.statusCode, addressOf(location), call);
  }
}

/** Headers come as Latin-1; an address that is not ASCII is written in UTF-8, as browsers take it. */
function addressOf(location: string): string {
  return Buffer.from(location, 'latin1').toString();
}

async function fetchOne(
  hop: Hop,
  { signal, span }: ToolCall,
  { client }: Means,
): Promise<HttpAnswer> {
  const { url, host, method, headers, body } = hop;
  const send = (sent?: Span): Promise<HttpAnswer> =>
    client.request(url, {
      method,
      headers: { ...sent?.headers, ...Object.fromEntries(headers) },
      body,
      signal,
      isRepeatable: idempotentMethods.has(method) || Boolean(headers.get('idempotency-key')),
    });
  const told = { protocol: url.protocol, hostname: host, port: url.port };
  try {
    return await (span === undefined ? send() : traceRequest(span, method, told, send));
  } catch (error) {
    throw toolErrorOf(error, hop);
  }
}

async function conclude(
  args: HttpArguments,
  call: ToolCall,
  hop: Hop,
  response: HttpAnswer,
): Promise<unknown> {
  const status = response.statusCode;
  const contentType = response.headers['content-type']?.at(-1) ?? '';
  const read = await readBody(response, MOST_OF_BODY);
  if (isExpected(status, args)) {
    if (read.fault !== null) throw toolErrorOf(read.fault, hop);
    return { status, headers: plainHeaders(response.headers), ...decodeBody(read, contentType) };
  }
  const text = start(call.mask(bodyForMessage(read, contentType)), TOLD_OF_ANSWER).trim();
  const message = `${hop.method} ${hop.shown} answered ${status}`;
  throw new ToolError(text === '' ? message : `${message}: ${text}`, {
    retryable: mayPass(status),
    retryAfterMs: retryAfterMs(response.headers['retry-after'], call.clock.now()),
  });
}

function isExpected(status: number, { expect_status }: HttpArguments): boolean {
  if (expect_status === undefined) return status >= 200 && status < 300;
  const patterns = Array.isArray(expect_status) ? expect_status : [expect_status];
  return patterns.some((pattern) => {
    const text = String(pattern);
    return text.endsWith('xx')
      ? Math.floor(status / 100) === Number(text[0])
      : status === Number(text);
  });
}

/**
 * Requests that can't even be written stay so; everything on the way may pass. Where a secret is in the host, no more is
 * told than the code: messages name the host as it was asked for, in lower case and perhaps as a part of the secret.
 */
function toolErrorOf(error: unknown, { url, method, shown, host }: Hop): unknown {
  const isHidden = host !== url.hostname;
  if (error instanceof AddressRefused) {
    const { message } = isHidden ? error.of(host) : error;
    return new ToolError(message, { retryable: false });
  }
  if (error instanceof ToolError || !(error instanceof Error)) return error;
  const code = 'code' in error ? String(error.code) : '';
  const retryable =
    error instanceof HttpFailure ? error.retryable : !/^ERR_(INVALID|HTTP|UNESCAPED)_/.test(code);
  const what = (isHidden ? '' : error.message) || code || error.name;
  return new ToolError(`${method} ${shown} failed: ${what}`, {
    retryable,
    ...(isHidden ? {} : { cause: error }),
  });
}
