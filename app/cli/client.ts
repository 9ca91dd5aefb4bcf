import { randomUUID } from 'node:crypto';
import { fetch, type Response } from 'undici';
import type { Clock } from '../../domain/clock.ts';
import { CommandFault, exitCodes, type ExitCode } from './faults.ts';
import { serverSentEvents, type ServerSentEvent } from './server-sent-events.ts';

/** A refusal by the service: its error body, and what the process ends with because of it. */
export class ServiceFault extends CommandFault {
  readonly status: number;
  /** The code of the error body; `unknown` where there was none. */
  readonly error: string;
  readonly details: Readonly<Record<string, unknown>>;

  constructor(status: number, body: ErrorBody, asked: string) {
    super(exitCodeOf(status), messageOf(status, body, asked));
    this.name = 'ServiceFault';
    this.status = status;
    this.error = body.error ?? 'unknown';
    this.details = body.details ?? {};
  }
}

interface ErrorBody {
  readonly error?: string;
  readonly message?: string;
  readonly details?: Readonly<Record<string, unknown>>;
  readonly request_id?: string;
}

/** Where a client's tokens come from. */
export interface TokenSource {
  /** A token that was valid when it was last looked at. @throws CommandFault where there is none to be had */
  token(): Promise<string>;
  /** Forgets the token, which the service refused. @returns whether there will be another */
  renew(): boolean;
}

export type QueryValue = string | number | boolean | undefined;

/** What a request may carry. */
export interface Asking {
  /** Parameters; undefined ones are left out. */
  readonly query?: Readonly<Record<string, QueryValue>>;
  readonly body?: unknown;
  /** The revision that was seen. */
  readonly ifMatch?: number | undefined;
  /** No token is needed for it. */
  readonly open?: boolean;
  /** Statuses that are no fault beside those of success. */
  readonly also?: readonly number[];
}

/** How often a request goes out that was not answered, and the milliseconds between. */
const ATTEMPTS = 3;
const PAUSE = 300;

/** Speaks with the service's HTTP interface. */
export class Client {
  readonly url: string;
  readonly #tokens: TokenSource;
  readonly #clock: Clock;
  readonly #signal: AbortSignal;
  readonly #reason: string | undefined;

  /** @param options.reason goes into the events of every command, by `X-Reason` */
  constructor(options: {
    readonly url: string;
    readonly tokens: TokenSource;
    readonly clock: Clock;
    readonly signal: AbortSignal;
    readonly reason?: string | undefined;
  }) {
    this.url = options.url.replace(/\/+$/, '');
    this.#tokens = options.tokens;
    this.#clock = options.clock;
    this.#signal = options.signal;
    this.#reason = options.reason;
  }

  /** @throws ServiceFault when the service refuses, CommandFault when it does not answer */
  get<T>(path: string, asking: Asking = {}): Promise<T> {
    return this.#call<T>('GET', path, asking);
  }

  /** Commands carry an `Idempotency-Key`, so that one whose answer was lost is sent again and done once. */
  post<T>(path: string, asking: Asking = {}): Promise<T> {
    return this.#call<T>('POST', path, asking);
  }

  put<T>(path: string, asking: Asking = {}): Promise<T> {
    return this.#call<T>('PUT', path, asking);
  }

  delete<T>(path: string, asking: Asking = {}): Promise<T> {
    return this.#call<T>('DELETE', path, asking);
  }

  /**
   * The events of a live path, from now on, until the service or the caller ends it.
   * @param lastId goes on after this one
   */
  async *live(path: string, lastId?: string): AsyncGenerator<ServerSentEvent> {
    const headers = {
      accept: 'text/event-stream',
      ...(lastId === undefined ? {} : { 'last-event-id': lastId }),
    };
    const response = await this.#send('GET', path, {}, headers);
    if (!response.ok) throw await this.#faultOf(response, `GET ${path}`);
    if (response.body === null) return;
    try {
      yield* serverSentEvents(response.body);
    } catch (error) {
      if (this.#signal.aborted) return;
      throw unanswered(this.url, error);
    }
  }

  async #call<T>(method: string, path: string, asking: Asking): Promise<T> {
    const key = method === 'POST' ? { 'idempotency-key': randomUUID() } : {};
    let response = await this.#send(method, path, asking, key);
    if (response.status === 401 && asking.open !== true && this.#tokens.renew()) {
      await response.body?.cancel();
      response = await this.#send(method, path, asking, key);
    }
    if (!response.ok && asking.also?.includes(response.status) !== true) {
      throw await this.#faultOf(response, `${method} ${path}`);
    }
    const text = await response.text();
    try {
      return JSON.parse(text) as T;
    } catch (error) {
      const what = `${this.url} answered ${method} ${path} with what is not JSON`;
      throw new CommandFault(exitCodes.failure, `${what}; is it this service?`, error);
    }
  }

  /** Sends, and sends again where no answer came: safe for what only reads and what carries a key. */
  async #send(
    method: string,
    path: string,
    { query = {}, body, ifMatch, open = false }: Asking,
    extra: Readonly<Record<string, string>>,
  ): Promise<Response> {
    const headers = {
      ...extra,
      ...(open ? {} : { authorization: `Bearer ${await this.#tokens.token()}` }),
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      ...(ifMatch === undefined ? {} : { 'if-match': `"${ifMatch}"` }),
      ...(this.#reason === undefined ? {} : { 'x-reason': this.#reason }),
    };
    for (let attempt = 1; ; attempt += 1) {
      try {
        return await fetch(this.url + path + queryText(query), {
          method,
          headers,
          signal: this.#signal,
          ...(body === undefined ? {} : { body: JSON.stringify(body) }),
        });
      } catch (error) {
        if (this.#signal.aborted) throw error;
        const again = (method === 'GET' || 'idempotency-key' in extra) && !isRefused(error);
        if (!again || attempt === ATTEMPTS) throw unanswered(this.url, error);
        await this.#clock.sleep(PAUSE * attempt, this.#signal);
      }
    }
  }

  async #faultOf(response: Response, asked: string): Promise<ServiceFault> {
    const text = await response.text();
    let body: ErrorBody;
    try {
      body = JSON.parse(text) as ErrorBody;
    } catch {
      body = { message: text.slice(0, 200) };
    }
    return new ServiceFault(response.status, body, asked);
  }
}

/** The parameters of a request, with the question mark; nothing where there are none. */
export function queryText(query: Readonly<Record<string, QueryValue>>): string {
  const given = Object.entries(query).flatMap(([name, value]) =>
    value === undefined ? [] : [[name, String(value)] as [string, string]],
  );
  return given.length === 0 ? '' : `?${new URLSearchParams(given).toString()}`;
}

function exitCodeOf(status: number): ExitCode {
  if (status === 400 || status === 413 || status === 415) return exitCodes.usage;
  if (status === 401 || status === 403) return exitCodes.notAuthorized;
  if (status === 404) return exitCodes.notFound;
  if (status === 409 || status === 412) return exitCodes.conflict;
  if (status === 429 || status === 503) return exitCodes.unavailable;
  return exitCodes.failure;
}

function messageOf(status: number, body: ErrorBody, asked: string): string {
  const issues = body.details?.['issues'];
  const listed = Array.isArray(issues)
    ? (issues as readonly { field: string; issue: string }[])
    : [];
  const first = body.message ?? `${asked} was answered with ${status}`;
  const lines = listed.length > 1 ? listed.map(({ field, issue }) => `  ${field}: ${issue}`) : [];
  const request = status >= 500 && body.request_id ? [`  request ${body.request_id}`] : [];
  return [listed.length > 1 ? 'the service refuses:' : first, ...lines, ...request].join('\n');
}

/** The codes of a failed connection, wherever in the chain of causes they stand. */
function* causes(error: unknown): Generator<Error & { readonly code?: string }> {
  if (!(error instanceof Error)) return;
  yield error;
  yield* causes(error.cause);
  if (error instanceof AggregateError) for (const each of error.errors) yield* causes(each);
}

/** Nobody was there: trying again at once is no use. */
function isRefused(error: unknown): boolean {
  return [...causes(error)].some(({ code }) => code === 'ECONNREFUSED' || code === 'ENOTFOUND');
}

function unanswered(url: string, error: unknown): CommandFault {
  const why = [...causes(error)].map(({ code }) => code).find((code) => code !== undefined);
  const said = why === undefined ? '' : ` (${why})`;
  const advice = 'is the service running there? SVC_URL or --url says where to look';
  return new CommandFault(exitCodes.unavailable, `no answer from ${url}${said}: ${advice}`, error);
}
