import { truncateString } from '../../domain/pipeline/json-size.ts';
import type { Span } from '../../observability/telemetry.ts';
import { AddressRefusedError } from '../http/address-rules.ts';
import {
  HttpClient,
  idempotentMethods,
  type HttpResponse,
  type HttpClientOptions,
} from '../http/http-client.ts';
import { HttpRequestError } from '../http/http-request-error.ts';
import { readBody } from '../http/read-body.ts';
import { retryAfterMs } from '../http/retry-after.ts';
import { traceRequest } from '../tracing.ts';
import { defineTool } from './basic-tools.ts';
import { HttpArguments } from './http-arguments.ts';
import { firstHop, nextHop, type Hop } from './http-hop.ts';
import { bodyForMessage, decodeBody, isRetryableStatus, plainHeaders } from './http-response.ts';
import { ToolError, type Tool, type ToolCall } from './tool.ts';

/** Limit of a body, in decoded bytes. */
const MAX_BODY_BYTES = 1024 * 1024;

/** The most bytes of a redirect's body that are read so that its connection can be reused. */
const MAX_DISCARDED_BYTES = 64 * 1024;

const MAX_REDIRECTS = 5;

const redirects = new Set([301, 302, 303, 307, 308]);

/** Characters of a response that an error quotes. */
const MAX_QUOTED_LENGTH = 500;

/** The tool `http.request`. `close` ends the connections of its client. @param options.userAgent of the service */
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
    checksHosts: true,
    run: (args, call) => fetchAll(args, call, { client, userAgent }),
  });
  return { tool, close: () => client.close() };
}

interface Sender {
  readonly client: HttpClient;
  readonly userAgent: string;
}

async function fetchAll(args: HttpArguments, call: ToolCall, sender: Sender): Promise<unknown> {
  const redirected: HttpResponse[] = [];
  try {
    return await follow(args, call, sender, redirected);
  } finally {
    for (const { body } of redirected) body.destroy();
  }
}

/** @param redirected receives the redirects; their bodies may still be open */
async function follow(
  args: HttpArguments,
  call: ToolCall,
  sender: Sender,
  redirected: HttpResponse[],
): Promise<unknown> {
  let hop = firstHop(args, call, sender.userAgent);
  for (;;) {
    const response = await fetchOne(hop, call, sender);
    const [location] = response.headers['location'] ?? [];
    const isRedirect =
      redirects.has(response.statusCode) &&
      location !== undefined &&
      !(args.expect_status !== undefined && isExpected(response.statusCode, args));
    if (!isRedirect) return conclude(args, call, hop, response);
    // Read so that the connection can be reused. Not awaited: the body may be endless.
    redirected.push(response);
    void readBody(response, MAX_DISCARDED_BYTES);
    if (redirected.length > MAX_REDIRECTS) {
      throw new ToolError(`more than ${MAX_REDIRECTS} redirects`, { retryable: false });
    }
    hop = nextHop(hop, response.statusCode, addressOf(location), call);
  }
}

/** Headers arrive as Latin-1; like browsers, this reads a URL that is not ASCII as UTF-8. */
function addressOf(location: string): string {
  return Buffer.from(location, 'latin1').toString();
}

async function fetchOne(
  hop: Hop,
  { signal, span }: ToolCall,
  { client }: Sender,
): Promise<HttpResponse> {
  const { url, host, method, headers, body } = hop;
  const send = (sent?: Span): Promise<HttpResponse> =>
    client.request(url, {
      method,
      headers: { ...sent?.headers, ...Object.fromEntries(headers) },
      body,
      signal,
      isRepeatable: idempotentMethods.has(method) || Boolean(headers.get('idempotency-key')),
    });
  const shown = { protocol: url.protocol, hostname: host, port: url.port };
  try {
    return await (span === undefined ? send() : traceRequest(span, method, shown, send));
  } catch (error) {
    throw toolErrorOf(error, hop);
  }
}

async function conclude(
  args: HttpArguments,
  call: ToolCall,
  hop: Hop,
  response: HttpResponse,
): Promise<unknown> {
  const status = response.statusCode;
  const contentType = response.headers['content-type']?.at(-1) ?? '';
  const read = await readBody(response, MAX_BODY_BYTES);
  if (isExpected(status, args)) {
    if (read.fault !== null) throw toolErrorOf(read.fault, hop);
    return { status, headers: plainHeaders(response.headers), ...decodeBody(read, contentType) };
  }
  const text = truncateString(
    call.mask(bodyForMessage(read, contentType)),
    MAX_QUOTED_LENGTH,
  ).trim();
  const message = `${hop.method} ${hop.shown} answered ${status}`;
  throw new ToolError(text === '' ? message : `${message}: ${text}`, {
    retryable: isRetryableStatus(status),
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
 * A request that cannot be written fails permanently; all other errors may pass. If the host holds a secret, only the
 * error's code is shown, because messages name the host in lower case, which hides the secret from the mask.
 */
function toolErrorOf(error: unknown, { url, method, shown, host }: Hop): unknown {
  const isHidden = host !== url.hostname;
  if (error instanceof AddressRefusedError) {
    const { message } = isHidden ? error.of(host) : error;
    return new ToolError(message, { retryable: false });
  }
  if (error instanceof ToolError || !(error instanceof Error)) return error;
  const code = 'code' in error ? String(error.code) : '';
  const retryable =
    error instanceof HttpRequestError
      ? error.retryable
      : !/^ERR_(INVALID|HTTP|UNESCAPED)_/.test(code);
  const what = (isHidden ? '' : error.message) || code || error.name;
  return new ToolError(`${method} ${shown} failed: ${what}`, {
    retryable,
    ...(isHidden ? {} : { cause: error }),
  });
}
