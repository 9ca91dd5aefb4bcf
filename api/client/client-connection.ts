import { writeJson } from '../../domain/exact-numbers.ts';
import type { Tokens } from '../schemas/response-schemas-agents.ts';
import type { ErrorBody } from '../schemas/response-schemas.ts';
import { takesNamespace } from './namespaced-paths.ts';
import { serverSentEvents, type ServerSentEvent } from './server-sent-events.ts';

export interface Credentials {
  readonly agentId: string;
  readonly agentSecret?: string;
}

/** The address of a service, and how to authenticate. */
export interface ClientOptions {
  /** Such as `http://127.0.0.1:8000`; may have a path. */
  readonly baseUrl: string;
  /** An access token. */
  readonly token?: string;
  /** Exchanged for a token when needed, and again when the token has expired. A function is called each time. */
  readonly credentials?: Credentials | (() => Credentials);
  /** Stores tokens for later clients; default: they are not stored. */
  readonly kept?: KeptTokens;
  /**
   * For admins: lists and figures show only this namespace, unless the call names another one. Default: all namespaces.
   */
  readonly namespace?: string;
  /** The reason of every command, unless the call gives another (`X-Reason`). */
  readonly reason?: string;
  /** Aborts all running calls. */
  readonly signal?: AbortSignal;
  /** Default: the platform's `fetch`. */
  readonly fetch?: typeof fetch;
}

/** Stores tokens between clients. Neither method throws: without a token, the client signs in again. */
export interface KeptTokens {
  /** An unexpired token for these credentials; null without one. */
  find(credentials: Credentials): string | null;
  keep(credentials: Credentials, token: string): void;
}

/** Options of every call. */
export interface CallOptions {
  /** Repeating a key returns the first response, for 24 hours. */
  readonly idempotencyKey?: string;
  /** The expected revision (of an `ETag`); the command fails if the resource has another one. */
  readonly ifMatch?: number;
  readonly reason?: string;
  readonly signal?: AbortSignal;
}

/** A successful response. */
export interface ApiResponse<T> {
  readonly data: T;
  readonly status: number;
  /** Position of the command's last event, for `after` of a later read; null for reads. */
  readonly position: string | null;
  /** The resource's revision, for `ifMatch`; null without one. */
  readonly revision: number | null;
  readonly headers: Headers;
}

/** An error response of the service, or of a proxy in front of it. */
export class ApiError extends Error {
  readonly status: number;
  /** `unknown` if the response is not the service's. */
  readonly code: ErrorBody['error'] | 'unknown';
  readonly details: Readonly<Record<string, unknown>>;
  readonly requestId: string | null;
  /** The message in the service's response; null if the response is not the service's. */
  readonly said: string | null;
  /** Seconds to wait before the next attempt; null if unknown. */
  readonly retryAfter: number | null;

  constructor(response: Response, body: Partial<ErrorBody>, asked: string) {
    super(`${asked}: ${body.message ?? `answered with ${response.status}`}`);
    this.name = 'ApiError';
    this.status = response.status;
    this.code = body.error ?? 'unknown';
    this.said = body.message ?? null;
    this.details = body.details ?? {};
    this.requestId = body.request_id ?? response.headers.get('x-request-id');
    const after = response.headers.get('retry-after');
    this.retryAfter = after !== null && /^\d+$/.test(after) ? Number(after) : null;
  }
}

/** A request. */
export interface ApiRequest extends CallOptions {
  readonly method: 'GET' | 'POST' | 'PUT' | 'DELETE';
  /** The path, with its ids filled in. */
  readonly path: string;
  /** Undefined parameters are left out. */
  readonly query?: object | undefined;
  readonly body?: unknown;
  /** Whether the request needs no token. */
  readonly open?: boolean;
  /** Statuses that are returned rather than thrown, such as the 503 of a health report. */
  readonly also?: readonly number[];
}

/** A live path that is watched. */
export interface LiveRequest {
  readonly path: string;
  readonly query?: object | undefined;
  /** The id of the last message received: the stream continues after it. */
  readonly lastEventId?: string | undefined;
  readonly signal?: AbortSignal;
}

/** The part of a token's lifetime after which it is replaced. */
const RENEWED_AFTER = 0.8;

/** Calls a service over `fetch`, and manages the token. */
export class ClientConnection {
  readonly #options: ClientOptions;
  readonly #fetch: typeof fetch;
  #token: Promise<string | null>;
  /** The value of {@link #token}; null while it is pending. */
  #held: string | null;
  /** The time at which the token is replaced before it expires, by the monotonic clock; Infinity if unknown. */
  #renewAt = Infinity;
  /** A token was rejected, so that a stored one is not used. */
  #refused = false;

  constructor(options: ClientOptions) {
    this.#options = options;
    this.#fetch = options.fetch ?? fetch;
    this.#held = options.token ?? null;
    this.#token = Promise.resolve(this.#held);
  }

  /** @throws ApiError for an error; what `fetch` throws without a response */
  async call<T>(request: ApiRequest): Promise<ApiResponse<T>> {
    const response = await this.#sendAgain(request);
    if (!response.ok && request.also?.includes(response.status) !== true) {
      throw await refusal(response, `${request.method} ${request.path}`);
    }
    const text = await response.text();
    const { status, headers } = response;
    const tag = /^"(\d+)"$/.exec(headers.get('etag') ?? '')?.[1];
    return {
      data: JSON.parse(text) as T,
      status,
      position: headers.get('x-event-position'),
      revision: tag === undefined ? null : Number(tag),
      headers,
    };
  }

  /** The messages of a live path, until either side ends it. @throws ApiError; what `fetch` throws */
  async *live({ lastEventId, ...watched }: LiveRequest): AsyncGenerator<ServerSentEvent> {
    const response = await this.#sendAgain({ ...watched, method: 'GET' }, { lastEventId });
    if (!response.ok) throw await refusal(response, `GET ${watched.path}`);
    if (response.body !== null) yield* serverSentEvents(response.body);
  }

  /** The text of a response as it arrives, with back-pressure. @throws ApiError; what `fetch` throws, at any time */
  async *download(request: Pick<ApiRequest, 'path' | 'query' | 'signal'>): AsyncGenerator<string> {
    const response = await this.#sendAgain({ ...request, method: 'GET' });
    if (!response.ok) throw await refusal(response, `GET ${request.path}`);
    const decoder = new TextDecoder();
    for await (const bytes of response.body ?? []) yield decoder.decode(bytes, { stream: true });
    yield decoder.decode();
  }

  /** The access token; null without one. @throws ApiError for invalid credentials */
  token(): Promise<string | null> {
    return this.#accessToken();
  }

  /** Sends a request, and again with a new token if the first was rejected. */
  async #sendAgain(
    request: ApiRequest,
    live?: Pick<LiveRequest, 'lastEventId'>,
  ): Promise<Response> {
    const token = await this.#tokenFor(request);
    const response = await this.#send(request, token, live);
    const renewable = this.#options.credentials !== undefined && request.open !== true;
    if (response.status !== 401 || !renewable) return response;
    await response.arrayBuffer();
    // Unless another call has already replaced the rejected token.
    if (token === this.#held) {
      this.#refused = true;
      this.#held = null;
      this.#token = Promise.resolve(null);
    }
    return this.#send(request, await this.#tokenFor(request), live);
  }

  /** Stops waiting when the caller aborts; a sign-in continues for other calls. */
  async #tokenFor({ open = false, signal }: Pick<ApiRequest, 'open' | 'signal'>) {
    return open ? null : untilAborted(this.#accessToken(), signal);
  }

  async #send(
    request: ApiRequest,
    token: string | null,
    live?: Pick<LiveRequest, 'lastEventId'>,
  ): Promise<Response> {
    const { method, path, body } = request;
    const { namespace } = this.#options;
    const isNarrowed = namespace !== undefined && takesNamespace(method, path);
    const query = isNarrowed ? { namespace, ...request.query } : request.query;
    const headers = new Headers();
    const { reason = this.#options.reason, idempotencyKey, ifMatch } = request;
    if (token !== null) headers.set('authorization', `Bearer ${token}`);
    if (live !== undefined) headers.set('accept', 'text/event-stream');
    if (live?.lastEventId !== undefined) headers.set('last-event-id', live.lastEventId);
    if (body !== undefined) headers.set('content-type', 'application/json');
    if (idempotencyKey !== undefined) headers.set('idempotency-key', idempotencyKey);
    if (ifMatch !== undefined) headers.set('if-match', `"${ifMatch}"`);
    if (reason !== undefined && method !== 'GET') headers.set('x-reason', utf8Header(reason));
    const signals = [request.signal, this.#options.signal].filter((each) => each !== undefined);
    return this.#fetch(this.#options.baseUrl.replace(/\/+$/, '') + path + queryText(query), {
      method,
      headers,
      ...(body === undefined ? {} : { body: writeJson(body) }),
      ...(signals.length === 0 ? {} : { signal: AbortSignal.any(signals) }),
    });
  }

  /** Concurrent calls share one sign-in. */
  async #accessToken(): Promise<string | null> {
    const { credentials } = this.#options;
    const known = this.#token;
    const token = await known;
    const isFresh = token !== null && performance.now() < this.#renewAt;
    if (isFresh || credentials === undefined) return token;
    if (this.#token === known) {
      const asked = this.#signIn(credentials).then(
        (got) => (this.#held = got),
        (error: unknown) => {
          // The token is still valid; the next call tries again.
          if (token !== null) return token;
          throw error;
        },
      );
      this.#token = asked;
      // The next call tries again.
      asked.catch(() => (this.#token = Promise.resolve(null)));
    }
    return this.#token;
  }

  async #signIn(credentials: NonNullable<ClientOptions['credentials']>) {
    const { kept } = this.#options;
    const given = typeof credentials === 'function' ? credentials() : credentials;
    const known = this.#refused ? null : (kept?.find(given) ?? null);
    if (known !== null) return known;
    const { agentId, agentSecret } = given;
    // JSON leaves undefined fields out.
    const body = { agent_id: agentId, agent_secret: agentSecret };
    const request = { method: 'POST', path: '/agents/auth/token', body, open: true } as const;
    const { access_token: token, expires_in } = (await this.call<Tokens>(request)).data;
    // Tokens expire at whole seconds, so the last second may be short.
    this.#renewAt = performance.now() + (expires_in * RENEWED_AFTER - 1) * 1000;
    kept?.keep(given, token);
    return token;
  }
}

/** Resolves with the work; rejects with the signal's reason once that aborts. */
function untilAborted<T>(work: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (signal === undefined) return work;
  return new Promise((resolve, reject) => {
    const leave = (): void => reject(signal.reason as Error);
    const done = (): void => signal.removeEventListener('abort', leave);
    if (signal.aborted) leave();
    signal.addEventListener('abort', leave, { once: true });
    work.then(resolve, reject).finally(done);
  });
}

/** Headers are bytes; the service reads them as UTF-8. */
function utf8Header(value: string): string {
  return String.fromCharCode(...new TextEncoder().encode(value));
}

function queryText(query: object = {}): string {
  const given = Object.entries(query)
    .filter(([, value]) => value !== undefined)
    .map(([name, value]): [string, string] => [name, String(value)]);
  return given.length === 0 ? '' : `?${new URLSearchParams(given).toString()}`;
}

async function refusal(response: Response, asked: string): Promise<ApiError> {
  return new ApiError(response, errorIn(await response.text()), asked);
}

function errorIn(text: string): Partial<ErrorBody> {
  try {
    const body = JSON.parse(text) as unknown;
    return typeof body === 'object' && body !== null ? body : {};
  } catch {
    return {};
  }
}
