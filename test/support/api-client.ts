import { Agent, request, type IncomingHttpHeaders } from 'node:http';
import { checkResponse } from './response-check.ts';
import { recordResponse } from './interface-record.ts';
import { eventually } from './signals.ts';

/** A response as received. */
export class ReceivedResponse {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;

  constructor(status: number, headers: IncomingHttpHeaders, text: string) {
    this.status = status;
    this.headers = headers;
    this.text = text;
  }

  /**
   * The parsed body: nearly always an object, otherwise the type that the test names. Empty if it
   * is not JSON.
   */
  get json(): Readonly<Record<string, unknown>> {
    try {
      return JSON.parse(this.text) as Readonly<Record<string, unknown>>;
    } catch {
      return {};
    }
  }

  /** The body if it is an array; otherwise empty. */
  get list(): readonly Readonly<Record<string, unknown>>[] {
    const body: unknown = this.json;
    return Array.isArray(body) ? (body as readonly Readonly<Record<string, unknown>>[]) : [];
  }

  /** The value at a dotted path of the body, such as `details.task_id` or `items.0.id`. */
  at(path: string): unknown {
    return path
      .split('.')
      .reduce<unknown>(
        (value, key) =>
          typeof value === 'object' && value !== null
            ? (value as Record<string, unknown>)[key]
            : undefined,
        this.json,
      );
  }

  /** The string at a dotted path of the body; throws if there is none. */
  textAt(path: string): string {
    const value = this.at(path);
    if (typeof value === 'string') return value;
    throw new Error(`no string at ${path} of ${String(this.status)} ${this.text}`);
  }

  /** A required header. */
  header(name: string): string {
    const value = this.headers[name.toLowerCase()];
    if (typeof value === 'string') return value;
    throw new Error(`no header ${name} in the response ${String(this.status)} ${this.text}`);
  }
}

export interface ApiRequest {
  /** Sent as JSON. */
  readonly body?: unknown;
  /** Sent unchanged; its content type is in `headers`. */
  readonly raw?: string | Buffer;
  readonly headers?: Readonly<Record<string, string>>;
  /** Instead of the client's own; null: none. */
  readonly token?: string | null;
  /** Whether a read is counted, so it is not repeated for the client's own writes. */
  readonly once?: boolean;
}

/** How long a client reads a view again that has not reached its last command. Milliseconds. */
const VIEW_LIMIT_MS = 50_000;

/** What clients share that differ only in their tokens. */
interface Connections {
  readonly agent: Agent;
  /** The position of the last command, empty before the first; null if reads need not see it. */
  readonly writes: { last: string } | null;
}

/**
 * An HTTP client of a service with persistent connections. The path is sent unchanged. The call
 * rejects if a response differs from its endpoint's declaration, so no test overlooks that.
 */
export class ApiClient {
  readonly url: string;
  readonly token: string | null;
  readonly #connections: Connections;

  constructor(url: string, token: string | null, connections: Partial<Connections> = {}) {
    this.url = url;
    this.token = token;
    this.#connections = {
      agent: connections.agent ?? new Agent({ keepAlive: true }),
      writes: connections.writes ?? null,
    };
  }

  /**
   * A client of a service whose views a busy machine may delay. The service shows a client its own writes, but waits
   * only two seconds for that. This client reads again until it sees the writes of all agents that use its connections.
   */
  static readingOwnWrites(url: string): ApiClient {
    return new ApiClient(url, null, { writes: { last: '' } });
  }

  /** The same connections with another token. */
  as(token: string | null): ApiClient {
    return new ApiClient(this.url, token, this.#connections);
  }

  get(path: string, options: ApiRequest = {}): Promise<ReceivedResponse> {
    return this.send('GET', path, options);
  }

  post(path: string, body?: unknown, options: ApiRequest = {}): Promise<ReceivedResponse> {
    return this.send('POST', path, { ...options, ...(body === undefined ? {} : { body }) });
  }

  put(path: string, body?: unknown, options: ApiRequest = {}): Promise<ReceivedResponse> {
    return this.send('PUT', path, { ...options, ...(body === undefined ? {} : { body }) });
  }

  delete(path: string, options: ApiRequest = {}): Promise<ReceivedResponse> {
    return this.send('DELETE', path, options);
  }

  async send(method: string, path: string, options: ApiRequest = {}): Promise<ReceivedResponse> {
    const { writes } = this.#connections;
    let answer = await this.#sendOnce(method, path, options);
    if (writes === null) return answer;
    const { 'x-event-position': written } = answer.headers;
    if (typeof written === 'string' && written > writes.last) writes.last = written;
    if (method !== 'GET' || options.once === true) return answer;
    // Other refusals do not depend on the view.
    const isBehind = (): boolean => {
      const { 'x-read-position': read } = answer.headers;
      const showsView = answer.status === 200 || answer.status === 404;
      return showsView && typeof read === 'string' && read < writes.last;
    };
    if (isBehind()) {
      const what = `the view of ${path} to have passed ${writes.last}`;
      let failure: Error | undefined;
      const readAgain = async (): Promise<boolean> => {
        try {
          answer = await this.#sendOnce(method, path, options);
          return !isBehind();
        } catch (error) {
          failure = error instanceof Error ? error : new Error(String(error));
          return true;
        }
      };
      await eventually(readAgain, { limitMs: VIEW_LIMIT_MS, what });
      if (failure !== undefined) throw failure;
    }
    return answer;
  }

  #sendOnce(method: string, path: string, options: ApiRequest): Promise<ReceivedResponse> {
    const token = options.token === undefined ? this.token : options.token;
    const payload = options.body === undefined ? options.raw : JSON.stringify(options.body);
    const { hostname, port } = new URL(this.url);
    const headers = {
      ...(token === null ? {} : { authorization: `Bearer ${token}` }),
      ...(options.body === undefined ? {} : { 'content-type': 'application/json' }),
      ...(payload === undefined ? {} : { 'content-length': String(Buffer.byteLength(payload)) }),
      ...options.headers,
    };
    return new Promise((resolve, reject) => {
      const sent = request(
        { hostname, port, method, path, headers, agent: this.#connections.agent },
        (response) => {
          const chunks: Buffer[] = [];
          response.on('data', (chunk: Buffer) => chunks.push(chunk));
          response.on('error', reject);
          response.on('end', () => {
            const text = Buffer.concat(chunks).toString();
            const answer = new ReceivedResponse(response.statusCode ?? 0, response.headers, text);
            try {
              checkResponse(method, path, answer);
              recordResponse(method, path, options.body ?? options.raw, answer);
            } catch (fault) {
              reject(fault instanceof Error ? fault : new Error(String(fault)));
              return;
            }
            resolve(answer);
          });
        },
      );
      sent.on('error', reject);
      sent.end(payload);
    });
  }

  /** Closes the persistent connections, including those of clients made by `as`. */
  close(): void {
    this.#connections.agent.destroy();
  }
}
