import { Agent, request as httpRequest, type IncomingMessage } from 'node:http';
import { ExtensionError, type CoreAnswer, type CoreRequest } from '../../extensions/contract.ts';
import type { CorePort } from '../../extensions/host/ports.ts';
import type { Traces } from '../../observability/telemetry.ts';

/** How long an answer may take. Milliseconds: longer than any `?wait=`. */
const PATIENCE = 90_000;

/** Calls the HTTP interface of this process over the loopback, with all of its rules. */
export class LoopbackCore implements CorePort {
  readonly #agent = new Agent({ keepAlive: true, maxSockets: 256 });
  readonly #traces: Traces | undefined;
  #address: { readonly host: string; readonly port: number } | null = null;

  /** @param traces where its requests are parts of what they are made for */
  constructor(traces: Traces | undefined) {
    this.#traces = traces;
  }

  /** Where it listens. @param host as it was told to listen: all addresses include the loopback */
  listensAt(host: string, port: number): void {
    const all = host === '0.0.0.0' ? '127.0.0.1' : host === '::' ? '::1' : host;
    this.#address = { host: all, port };
  }

  async request(method: string, path: string, options: CoreRequest): Promise<CoreAnswer> {
    const address = this.#address;
    if (address === null) throw away('this process serves no interface (yet)');
    if (!path.startsWith('/')) throw new TypeError('the path begins with a slash');
    const { body, token, signal } = options;
    const payload = body === undefined ? undefined : Buffer.from(JSON.stringify(body));
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
      const fail = (error: unknown): void => {
        const own = signal?.aborted === true && error instanceof Error;
        reject(own ? error : away('the interface does not answer', error));
      };
      const sent = httpRequest(
        {
          ...address,
          method,
          path: path + queryOf(path, options.query),
          headers,
          agent: this.#agent,
          timeout: PATIENCE,
          ...(signal === undefined ? {} : { signal }),
        },
        // An answer may be cut off, too.
        (response) => void readAnswer(response).then(resolve, fail),
      );
      sent.on('timeout', () => sent.destroy(new Error('no answer in time')));
      sent.on('error', fail);
      sent.end(payload);
    });
  }

  /** Closes the kept connections. */
  close(): void {
    this.#agent.destroy();
  }
}

function away(message: string, cause?: unknown): ExtensionError {
  const error = new ExtensionError('unavailable', message, { component: 'core' });
  if (cause !== undefined) error.cause = cause;
  return error;
}

function queryOf(path: string, query: CoreRequest['query'] = {}): string {
  const parameters = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (value !== undefined) parameters.set(name, String(value));
  }
  const text = parameters.toString();
  return text === '' ? '' : `${path.includes('?') ? '&' : '?'}${text}`;
}

async function readAnswer(response: IncomingMessage): Promise<CoreAnswer> {
  const chunks: Buffer[] = [];
  for await (const chunk of response) chunks.push(chunk as Buffer);
  const text = Buffer.concat(chunks).toString();
  const headers = Object.fromEntries(
    Object.entries(response.headers).map(([name, value]) => [name, String(value)]),
  );
  const isJson = /^application\/(?:[\w.+-]+\+)?json\b/.test(headers['content-type'] ?? '');
  const body: unknown = text === '' ? null : isJson ? JSON.parse(text) : text;
  return { status: response.statusCode ?? 0, headers, body };
}
