import { Agent, request as httpRequest, type IncomingMessage } from 'node:http';
import { Agent as TlsAgent, request as tlsRequest } from 'node:https';
import type { Clock } from '../../domain/clock.ts';
import { stringifyExactly, withExponents } from '../../domain/exact-numbers.ts';
import {
  ExtensionError,
  badInput,
  type CoreAnswer,
  type CoreRequest,
} from '../../extensions/contract.ts';
import { refuseLost } from '../../extensions/host/lent/lost-numbers.ts';
import type { CorePort, PortRequest } from '../../extensions/host/ports.ts';
import type { Traces } from '../../observability/telemetry.ts';

/** How long an answer may take, to its end. Milliseconds: longer than any `?wait=`. */
const PATIENCE = 90_000;

/** What an answer may come to. Bytes: more than the longest page, of 200 tasks with payloads of 256 KiB. */
const MOST_BYTES = 64 * 1024 * 1024;

/** Calls the HTTP interface of this process over the loopback, with all of its rules. */
export class LoopbackCore implements CorePort {
  #agent: Agent = new Agent({ keepAlive: true, maxSockets: 256 });
  #request: typeof httpRequest = httpRequest;
  readonly #clock: Clock;
  readonly #traces: Traces | undefined;
  #address: { readonly host: string; readonly port: number } | null = null;

  /** @param traces where its requests are parts of what they are made for */
  constructor(clock: Clock, traces: Traces | undefined) {
    this.#clock = clock;
    this.#traces = traces;
  }

  /**
   * Where it listens.
   * @param host as it was told to listen: all addresses include the loopback
   * @param tls whether HTTPS is served
   */
  listensAt(host: string, port: number, tls: boolean): void {
    if (tls) {
      // The other end is this very process, whatever name its certificate has.
      this.#agent = new TlsAgent({ keepAlive: true, maxSockets: 256, rejectUnauthorized: false });
      this.#request = tlsRequest;
    }
    const all = host === '0.0.0.0' ? '127.0.0.1' : host === '::' ? '::1' : host;
    this.#address = { host: all, port };
  }

  /**
   * Answers are gathered up to 64 MiB, and for 90 seconds.
   * @throws ExtensionError `bad_request` for a live stream, which has no end; `payload_too_large` for an answer that is
   *   longer; `unavailable` for one that takes longer, is cut off, or can't be asked for
   */
  async request(method: string, path: string, options: PortRequest): Promise<CoreAnswer> {
    const address = this.#address;
    if (address === null) throw away('this process serves no interface (yet)');
    if (!path.startsWith('/')) throw new TypeError('the path begins with a slash');
    const { body, token, signal } = options;
    const payload = body === undefined ? undefined : bytesOf(body, options.isChecked === true);
    const authorization =
      typeof token !== 'string' ? undefined : / /.test(token) ? token : `Bearer ${token}`;
    const headers = {
      ...this.#traces?.active()?.headers,
      ...options.headers,
      ...(authorization === undefined ? {} : { authorization }),
      ...(payload === undefined
        ? {}
        : { 'content-type': 'application/json', 'content-length': String(payload.length) }),
    };
    return new Promise((resolve, reject) => {
      const sent = this.#request(
        {
          ...address,
          method,
          path: path + queryOf(path, options.query),
          headers,
          agent: this.#agent,
          ...(signal === undefined ? {} : { signal }),
        },
        // An answer may be cut off, too.
        (response) => void readAnswer(method, path, response).then(succeed, fail),
      );
      // However much of it comes meanwhile: a live stream never falls silent.
      const forget = this.#clock.after(PATIENCE, () => sent.destroy(late(method, path)), {
        background: true,
      });
      const succeed = (answer: CoreAnswer): void => {
        forget();
        resolve(answer);
      };
      const fail = (error: unknown): void => {
        forget();
        const own = signal?.aborted === true && error instanceof Error;
        const known = own || error instanceof ExtensionError;
        reject(known ? error : away('the interface does not answer', error));
      };
      sent.on('error', fail);
      sent.end(payload);
    });
  }

  /** Closes the kept connections. */
  close(): void {
    this.#agent.destroy();
  }
}

/**
 * @param isChecked whether numbers beyond 2^53 − 1 are floats for sure
 * @throws ExtensionError `bad_request` for a number that JSON cannot say
 */
function bytesOf(body: unknown, isChecked: boolean): Buffer {
  const { text, lost } = stringifyExactly(body);
  refuseLost('body', isChecked ? lost.filter(({ at }) => at === -1) : lost);
  if (text === undefined) throw badInput('body', `must be JSON, got a ${typeof body}`);
  return Buffer.from(withExponents(text));
}

function away(message: string, cause?: unknown): ExtensionError {
  const error = new ExtensionError('unavailable', message, { component: 'core' });
  if (cause !== undefined) error.cause = cause;
  return error;
}

function late(method: string, path: string): ExtensionError {
  const seconds = PATIENCE / 1000;
  const message = `${method} ${path} was not answered to the end within ${String(seconds)} s`;
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

/** @throws ExtensionError for what is not gathered: the connection is given up */
async function readAnswer(
  method: string,
  path: string,
  response: IncomingMessage,
): Promise<CoreAnswer> {
  const headers = Object.fromEntries(
    Object.entries(response.headers).map(([name, value]) => [name, String(value)]),
  );
  const type = headers['content-type'] ?? '';
  if (method !== 'HEAD' && /^text\/event-stream\b/.test(type)) {
    response.destroy();
    throw badInput('path', `${method} ${path} is a live stream, and has no end`);
  }
  const chunks: Buffer[] = [];
  let bytes = 0;
  // Who leaves the loop ends the connection.
  for await (const chunk of response as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > MOST_BYTES) throw tooLarge(method, path);
    chunks.push(chunk);
  }
  const text = Buffer.concat(chunks).toString();
  const isJson = /^application\/(?:[\w.+-]+\+)?json\b/.test(type);
  const body: unknown = text === '' ? null : isJson ? JSON.parse(text) : text;
  return { status: response.statusCode ?? 0, headers, body };
}

function tooLarge(method: string, path: string): ExtensionError {
  const message = `the answer to ${method} ${path} is over ${String(MOST_BYTES)} bytes`;
  return new ExtensionError('payload_too_large', message, { field: 'answer', limit: MOST_BYTES });
}
