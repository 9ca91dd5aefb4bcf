import { Agent, request as httpRequest, type IncomingMessage } from 'node:http';
import { Agent as TlsAgent, request as tlsRequest } from 'node:https';
import type { Clock } from '../../domain/clock.ts';
import { stringifyExactly, withExponents } from '../../domain/exact-numbers.ts';
import {
  ExtensionError,
  badInput,
  type CoreResponse,
  type CoreRequest,
} from '../../extensions/contract.ts';
import { rejectLostNumbers } from '../../extensions/host/provided/lost-numbers.ts';
import type { CorePort, PortRequest } from '../../extensions/host/ports.ts';
import type { Traces } from '../../observability/telemetry.ts';
import type { Causation } from '../causation.ts';

/** Time limit of a response, longer than any `?wait=`. Milliseconds. */
const RESPONSE_TIMEOUT = 90_000;

/** Maximum size of a response: more than the largest page, 200 tasks with 256 KiB each. */
const MAX_RESPONSE_BYTES = 64 * 1024 * 1024;

/** Calls the HTTP interface of this process over the loopback, with all its rules. */
export class LoopbackCore implements CorePort {
  #agent: Agent = new Agent({ keepAlive: true, maxSockets: 256 });
  #request: typeof httpRequest = httpRequest;
  readonly #clock: Clock;
  readonly #traces: Traces | undefined;
  readonly #causation: Pick<Causation, 'announce'>;
  #address: { readonly host: string; readonly port: number } | null = null;

  /**
   * @param traces makes the requests part of their caller's trace
   * @param causation knows the run or event on whose behalf the caller acts
   */
  constructor(clock: Clock, traces: Traces | undefined, causation: Pick<Causation, 'announce'>) {
    this.#clock = clock;
    this.#traces = traces;
    this.#causation = causation;
  }

  /**
   * Sets the address of the interface.
   * @param host as configured; wildcard addresses include the loopback
   * @param tls whether HTTPS is served
   */
  listensAt(host: string, port: number, tls: boolean): void {
    if (tls) {
      // The peer is this process itself, whatever name its certificate has.
      this.#agent = new TlsAgent({ keepAlive: true, maxSockets: 256, rejectUnauthorized: false });
      this.#request = tlsRequest;
    }
    const all = host === '0.0.0.0' ? '127.0.0.1' : host === '::' ? '::1' : host;
    this.#address = { host: all, port };
  }

  /**
   * Sends a request and reads the whole response, up to 64 MiB and 90 seconds.
   * @throws ExtensionError `bad_request` for a live stream, which never ends; `payload_too_large` and `unavailable` beyond
   *   the limits; `unavailable` also for a truncated response or a failed connection
   */
  async request(method: string, path: string, options: PortRequest): Promise<CoreResponse> {
    const address = this.#address;
    if (address === null) throw unavailable('this process does not serve the interface (yet)');
    if (!path.startsWith('/')) throw new TypeError('the path begins with a slash');
    const { body, token, signal } = options;
    const payload = body === undefined ? undefined : bytesOf(body, options.isChecked === true);
    const authorization =
      typeof token !== 'string' ? undefined : / /.test(token) ? token : `Bearer ${token}`;
    const announced = this.#causation.announce();
    const headers = {
      ...this.#traces?.active()?.headers,
      ...options.headers,
      ...announced.headers,
      ...(authorization === undefined ? {} : { authorization }),
      ...(payload === undefined
        ? {}
        : { 'content-type': 'application/json', 'content-length': String(payload.length) }),
    };
    return new Promise<CoreResponse>((resolve, reject) => {
      const sent = this.#request(
        {
          ...address,
          method,
          path: path + queryOf(path, options.query),
          headers,
          agent: this.#agent,
          ...(signal === undefined ? {} : { signal }),
        },
        (response) => void readResponse(method, path, response).then(succeed, fail),
      );
      // Applies to the whole response: a live stream never falls silent.
      const forget = this.#clock.after(RESPONSE_TIMEOUT, () => sent.destroy(late(method, path)), {
        background: true,
      });
      const succeed = (answer: CoreResponse): void => {
        forget();
        resolve(answer);
      };
      const fail = (error: unknown): void => {
        forget();
        const own = signal?.aborted === true && error instanceof Error;
        const known = own || error instanceof ExtensionError;
        reject(known ? error : unavailable('the interface does not respond', error));
      };
      sent.on('error', fail);
      sent.end(payload);
    }).finally(announced.over);
  }

  /** Closes idle connections. */
  close(): void {
    this.#agent.destroy();
  }
}

/**
 * @param isChecked whether numbers beyond 2^53 − 1 are known to be floats
 * @throws ExtensionError `bad_request` for a number that JSON cannot represent
 */
function bytesOf(body: unknown, isChecked: boolean): Buffer {
  const { text, lost } = stringifyExactly(body);
  rejectLostNumbers('body', isChecked ? lost.filter(({ at }) => at === -1) : lost);
  if (text === undefined) throw badInput('body', `must be JSON, got a ${typeof body}`);
  return Buffer.from(withExponents(text));
}

function unavailable(message: string, cause?: unknown): ExtensionError {
  const error = new ExtensionError('unavailable', message, { component: 'core' });
  if (cause !== undefined) error.cause = cause;
  return error;
}

function late(method: string, path: string): ExtensionError {
  const seconds = RESPONSE_TIMEOUT / 1000;
  const message = `${method} ${path} did not complete within ${String(seconds)} s`;
  return new ExtensionError('unavailable', message, { component: 'core', limit_seconds: seconds });
}

function queryOf(path: string, query: CoreRequest['query'] = {}): string {
  const parameters = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (value !== undefined) parameters.set(name, String(value));
  }
  const text = parameters.toString();
  return text === '' ? '' : `${path.includes('?') ? '&' : '?'}${text}`;
}

/** @throws ExtensionError for a live stream or a response that is too large; the connection is closed */
async function readResponse(
  method: string,
  path: string,
  response: IncomingMessage,
): Promise<CoreResponse> {
  const headers = Object.fromEntries(
    Object.entries(response.headers).map(([name, value]) => [name, String(value)]),
  );
  const type = headers['content-type'] ?? '';
  if (method !== 'HEAD' && /^text\/event-stream\b/.test(type)) {
    response.destroy();
    throw badInput('path', `${method} ${path} is a live stream, which never ends`);
  }
  const chunks: Buffer[] = [];
  let bytes = 0;
  // Leaving the loop closes the connection.
  for await (const chunk of response as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > MAX_RESPONSE_BYTES) throw tooLarge(method, path);
    chunks.push(chunk);
  }
  const text = Buffer.concat(chunks).toString();
  const isJson = /^application\/(?:[\w.+-]+\+)?json\b/.test(type);
  const body: unknown = text === '' ? null : isJson ? JSON.parse(text) : text;
  return { status: response.statusCode ?? 0, headers, body };
}

function tooLarge(method: string, path: string): ExtensionError {
  const message = `the response to ${method} ${path} is over ${String(MAX_RESPONSE_BYTES)} bytes`;
  return new ExtensionError('payload_too_large', message, {
    field: 'answer',
    limit: MAX_RESPONSE_BYTES,
  });
}
