import { writeJson } from '../../domain/exact-numbers.ts';
import type { Tokens } from '../schemas/answer-schemas-agents.ts';
import type { ErrorBody } from '../schemas/answer-schemas.ts';
import { serverSentEvents, type ServerSentEvent } from './server-sent-events.ts';

/** An agent's id, and its secret. */
export interface Credentials {
  readonly agentId: string;
  readonly agentSecret?: string;
}

/** Where a service is, and as whom to speak with it. */
export interface ClientOptions {
  /** Such as `http://127.0.0.1:8000`; a path before the service's own is kept. */
  readonly baseUrl: string;
  /** An access token, taken as it is. */
  readonly token?: string;
  /** For which a token is got when one is needed, and again when it has expired; a function is asked each time. */
  readonly credentials?: Credentials | (() => Credentials);
  /** Where tokens that were got for credentials are kept for later clients; nowhere where it is not given. */
  readonly kept?: KeptTokens;
  /** Goes into the events of every command, unless the call says another (`X-Reason`). */
  readonly reason?: string;
  /** Ends every call that is under way. */
  readonly signal?: AbortSignal;
  /** In place of the platform's own. */
  readonly fetch?: typeof fetch;
}

/** Keeps tokens between one client and the next. Neither method throws: without them it is signed in anew. */
export interface KeptTokens {
  /** One that was kept for these credentials and has not expired; null where there is none. */
  find(credentials: Credentials): string | null;
  keep(credentials: Credentials, token: string): void;
}

/** What any call may say beside its own fields. */
export interface CallOptions {
  /** The same key gives the first answer again, for 24 hours. */
  readonly idempotencyKey?: string;
  /** The revision (of an `ETag`) that was seen: with another one the command is refused. */
  readonly ifMatch?: number;
  readonly reason?: string;
  readonly signal?: AbortSignal;
}

/** An answer where nothing was wrong. */
export interface Answered<T> {
  readonly data: T;
  readonly status: number;
  /** Position of the command's last event: what a later read may wait for with `after`; null for reads. */
  readonly position: string | null;
  /** The resource's revision, for `ifMatch`; null where the answer has none. */
  readonly revision: number | null;
  readonly headers: Headers;
}

/** An answer that something was wrong. */
export class ApiError extends Error {
  readonly status: number;
  /** `unknown` where it was not the service that answered. */
  readonly code: ErrorBody['error'] | 'unknown';
  readonly details: Readonly<Record<string, unknown>>;
  readonly requestId: string | null;
  /** What the service said, without what it was asked; null where it was not the service that answered. */
  readonly said: string | null;
  /** Seconds after which to try again; null where none are said. */
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

/** A request, as the methods of the client put it. */
export interface Asking extends CallOptions {
  readonly method: 'GET' | 'POST' | 'PUT' | 'DELETE';
  /** With its ids already in place. */
  readonly path: string;
  /** Parameters that are undefined are left out. */
  readonly query?: object | undefined;
  readonly body?: unknown;
  /** Needs no token. */
  readonly open?: boolean;
  /** Statuses that are answers as those of success are: a report that something is wrong, say. */
  readonly also?: readonly number[];
}

/** A live path that is watched. */
export interface Watching {
  readonly path: string;
  readonly query?: object | undefined;
  /** The id of the last message that was seen: it goes on after it. */
  readonly lastEventId?: string | undefined;
  readonly signal?: AbortSignal;
}

/** Speaks with a service over `fetch`, and sees to the token. */
export class ClientConnection {
  readonly #options: ClientOptions;
  readonly #fetch: typeof fetch;
  #token: Promise<string | null>;
  /** What {@link #token} has come to; null while it is waited for. */
  #held: string | null;
  /** A token was refused: one that was kept before counts no more than that. */
  #refused = false;

  constructor(options: ClientOptions) {
    this.#options = options;
    this.#fetch = options.fetch ?? fetch;
    this.#held = options.token ?? null;
    this.#token = Promise.resolve(this.#held);
  }

  /** @throws ApiError where the service refuses; what `fetch` throws where it does not answer */
  async call<T>(asking: Asking): Promise<Answered<T>> {
    const response = await this.#sendAgain(asking);
    if (!response.ok && asking.also?.includes(response.status) !== true) {
      throw await refusal(response, `${asking.method} ${asking.path}`);
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

  /**
   * The messages of a live path, until the service or the caller's signal ends it.
   * @throws ApiError where the service refuses; what `fetch` throws where the connection is lost
   */
  async *live({ lastEventId, ...watched }: Watching): AsyncGenerator<ServerSentEvent> {
    const response = await this.#sendAgain({ ...watched, method: 'GET' }, { lastEventId });
    if (!response.ok) throw await refusal(response, `GET ${watched.path}`);
    if (response.body !== null) yield* serverSentEvents(response.body);
  }

  /**
   * The text of an answer, as it comes: for what may be larger than memory. No more is taken than is asked for.
   * @throws ApiError where the service refuses; what `fetch` throws where the connection is lost, also in the middle
   */
  async *download(asking: Pick<Asking, 'path' | 'query' | 'signal'>): AsyncGenerator<string> {
    const response = await this.#sendAgain({ ...asking, method: 'GET' });
    if (!response.ok) throw await refusal(response, `GET ${asking.path}`);
    const decoder = new TextDecoder();
    for await (const bytes of response.body ?? []) yield decoder.decode(bytes, { stream: true });
    yield decoder.decode();
  }

  /** The token as which it calls; null where it has none. @throws ApiError where the credentials are refused */
  token(): Promise<string | null> {
    return this.#accessToken();
  }

  /** Sends; and once more with another token where the first counts no longer. */
  async #sendAgain(asking: Asking, live?: Pick<Watching, 'lastEventId'>): Promise<Response> {
    const token = await this.#tokenFor(asking);
    const response = await this.#send(asking, token, live);
    const renewable = this.#options.credentials !== undefined && asking.open !== true;
    if (response.status !== 401 || !renewable) return response;
    await response.arrayBuffer();
    // Where another call has got a new one meanwhile, that one was not refused.
    if (token === this.#held) {
      this.#refused = true;
      this.#held = null;
      this.#token = Promise.resolve(null);
    }
    return this.#send(asking, await this.#tokenFor(asking), live);
  }

  /** Waits no longer than the caller does: a sign-in goes on for others who wait for it. */
  async #tokenFor({ open = false, signal }: Pick<Asking, 'open' | 'signal'>) {
    return open ? null : untilAborted(this.#accessToken(), signal);
  }

  async #send(
    asking: Asking,
    token: string | null,
    live?: Pick<Watching, 'lastEventId'>,
  ): Promise<Response> {
    const { method, path, query, body } = asking;
    const headers = new Headers();
    const { reason = this.#options.reason, idempotencyKey, ifMatch } = asking;
    if (token !== null) headers.set('authorization', `Bearer ${token}`);
    if (live !== undefined) headers.set('accept', 'text/event-stream');
    if (live?.lastEventId !== undefined) headers.set('last-event-id', live.lastEventId);
    if (body !== undefined) headers.set('content-type', 'application/json');
    if (idempotencyKey !== undefined) headers.set('idempotency-key', idempotencyKey);
    if (ifMatch !== undefined) headers.set('if-match', `"${ifMatch}"`);
    if (reason !== undefined && method !== 'GET') headers.set('x-reason', headerText(reason));
    const signals = [asking.signal, this.#options.signal].filter((each) => each !== undefined);
    return this.#fetch(this.#options.baseUrl.replace(/\/+$/, '') + path + queryText(query), {
      method,
      headers,
      ...(body === undefined ? {} : { body: writeJson(body) }),
      ...(signals.length === 0 ? {} : { signal: AbortSignal.any(signals) }),
    });
  }

  /** Calls that need a token at the same time wait for the same one. */
  async #accessToken(): Promise<string | null> {
    const { credentials } = this.#options;
    const known = this.#token;
    const token = await known;
    if (token !== null || credentials === undefined) return token;
    if (this.#token === known) {
      const asked = this.#signIn(credentials).then((got) => (this.#held = got));
      this.#token = asked;
      // A sign-in that failed is tried again by the next call.
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
    const body = {
      agent_id: agentId,
      ...(agentSecret === undefined ? {} : { agent_secret: agentSecret }),
    };
    const asking = { method: 'POST', path: '/agents/auth/token', body, open: true } as const;
    const token = (await this.call<Tokens>(asking)).data.access_token;
    kept?.keep(given, token);
    return token;
  }
}

/** What is waited for; rejects with the signal's reason as soon as that is aborted. */
function untilAborted<T>(work: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (signal === undefined) return work;
  return new Promise((resolve, reject) => {
    // Of the kind that `fetch` rejects with.
    const leave = (): void => reject(signal.reason as Error);
    const done = (): void => signal.removeEventListener('abort', leave);
    if (signal.aborted) leave();
    signal.addEventListener('abort', leave, { once: true });
    work.then(resolve, reject).finally(done);
  });
}

/** Headers are bytes; the service reads them as UTF-8. */
function headerText(text: string): string {
  return String.fromCharCode(...new TextEncoder().encode(text));
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
