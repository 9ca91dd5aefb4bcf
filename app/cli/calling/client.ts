import { randomUUID } from 'node:crypto';
import {
  ApiError,
  createClient,
  type Answered,
  type Client as TypedClient,
  type ClientOptions,
  type ServerSentEvent,
} from '../../../api/client/client.ts';
import type { Clock } from '../../../domain/clock.ts';
import { certificateFault } from './certificate-fault.ts';
import { BrokenExport, CommandFault, exitCodes, usageFault, type ExitCode } from './faults.ts';

/** A refusal by the service: its error body, and what the process ends with because of it. */
export class ServiceFault extends CommandFault {
  readonly status: number;
  /** The code of the error body; `unknown` where there was none. */
  readonly error: string;
  readonly details: Readonly<Record<string, unknown>>;

  constructor(refused: ApiError) {
    super(exitCodeOf(refused.status), messageOf(refused), refused);
    this.name = 'ServiceFault';
    this.status = refused.status;
    this.error = refused.code;
    this.details = refused.details;
  }
}

export type QueryValue = string | number | boolean | undefined;

/** What a request may carry. */
export interface Asking {
  /** Parameters; undefined ones are left out. */
  readonly query?: Readonly<Record<string, QueryValue>>;
  readonly body?: unknown;
  /** The revision that was seen. */
  readonly ifMatch?: number | undefined;
}

/** How often a request goes out that was not answered, and the milliseconds between. */
const ATTEMPTS = 3;
const PAUSE = 300;

/**
 * A command that takes no `Idempotency-Key`, as its answer would be kept. It goes out once: a second secret would take
 * the one that the receiver has out of the two that sign.
 */
const KEYLESS = /\/webhook-secret$/;

/** The service's typed client, as a command of the command line uses it. */
export class Client {
  readonly url: string;
  readonly #api: TypedClient;
  readonly #clock: Clock;
  readonly #signal: AbortSignal;

  /** @param options.reason goes into the events of every command, by `X-Reason` */
  constructor(options: {
    readonly url: string;
    readonly access: Pick<ClientOptions, 'token' | 'credentials' | 'kept'>;
    readonly clock: Clock;
    readonly signal: AbortSignal;
    readonly reason?: string | undefined;
  }) {
    const { url, access, clock, signal, reason } = options;
    this.url = url.replace(/\/+$/, '');
    this.#clock = clock;
    this.#signal = signal;
    this.#api = createClient({
      ...access,
      baseUrl: this.url,
      signal,
      ...(reason === undefined ? {} : { reason }),
      fetch: (input, init) => this.#fetch(input, init),
    });
  }

  /**
   * Asks the service by the methods of its typed client.
   * @returns the body of the answer
   * @throws ServiceFault when the service refuses, CommandFault when it does not answer
   */
  async ask<T>(call: (api: TypedClient) => Promise<Answered<T>>): Promise<T> {
    return (await this.#told(() => call(this.#api))).data;
  }

  /** As {@link ask}, for what is put together from what a person has typed: the service checks it. */
  get<T>(path: string, { query }: Pick<Asking, 'query'> = {}): Promise<T> {
    return this.ask((api) => api.request<T>({ method: 'GET', path, query }));
  }

  post<T>(path: string, { query, body }: Asking = {}): Promise<T> {
    return this.ask((api) => api.request<T>({ method: 'POST', path, query, body }));
  }

  put<T>(path: string, { body, ifMatch }: Asking = {}): Promise<T> {
    const seen = ifMatch === undefined ? {} : { ifMatch };
    return this.ask((api) => api.request<T>({ method: 'PUT', path, body, ...seen }));
  }

  delete<T>(path: string, { query }: Pick<Asking, 'query'> = {}): Promise<T> {
    return this.ask((api) => api.request<T>({ method: 'DELETE', path, query }));
  }

  /** The access token as which it calls. @throws as {@link ask} */
  async token(): Promise<string> {
    return (await this.#told(() => this.#api.token())) ?? '';
  }

  /**
   * The messages of a live path, from now on, until the service or the caller ends it.
   * @param lastId goes on after this one
   */
  async *live(
    path: string,
    query: Asking['query'],
    lastId: string | undefined,
  ): AsyncGenerator<ServerSentEvent> {
    try {
      yield* this.#api.live({ path, query, lastEventId: lastId });
    } catch (error) {
      if (this.#signal.aborted) return;
      throw this.#faultOf(error);
    }
  }

  /**
   * Rows as text, as they come.
   * @throws as {@link ask} before the first of them; BrokenExport where they end too soon
   */
  async *rows(call: (api: TypedClient) => AsyncGenerator<string>): AsyncGenerator<string> {
    let hasBegun = false;
    try {
      for await (const text of call(this.#api)) {
        hasBegun = true;
        yield text;
      }
    } catch (error) {
      if (hasBegun && !this.#signal.aborted) throw new BrokenExport(error);
      throw this.#faultOf(error);
    }
  }

  async #told<T>(call: () => Promise<T>): Promise<T> {
    try {
      return await call();
    } catch (error) {
      throw this.#faultOf(error);
    }
  }

  #faultOf(error: unknown): unknown {
    if (error instanceof ApiError) return new ServiceFault(error);
    if (this.#signal.aborted || error instanceof CommandFault) return error;
    // Of the typed client: what was typed can't be an id.
    if (error instanceof RangeError) return usageFault(error.message);
    if (error instanceof SyntaxError) {
      const what = `${this.url} answered with what is not JSON`;
      return new CommandFault(exitCodes.failure, `${what}; is it this service?`, error);
    }
    return unanswered(this.url, error);
  }

  /**
   * Sends, and sends again where no answer came: safe for what only reads and what carries a key. Commands that take
   * one get an `Idempotency-Key`, so that one whose answer was lost is done once.
   */
  async #fetch(...[input, init]: Parameters<typeof fetch>): Promise<Response> {
    const headers = new Headers(init?.headers);
    const keyless = typeof input === 'string' && KEYLESS.test(input);
    if (init?.method === 'POST' && !keyless && !headers.has('idempotency-key')) {
      headers.set('idempotency-key', randomUUID());
    }
    for (let attempt = 1; ; attempt += 1) {
      try {
        return await fetch(input, { ...init, headers });
      } catch (error) {
        if (this.#signal.aborted) throw error;
        const repeatable = init?.method === 'GET' || headers.has('idempotency-key');
        if (!repeatable || isRefused(error) || attempt === ATTEMPTS) throw error;
        await this.#clock.sleep(PAUSE * attempt, this.#signal);
      }
    }
  }
}

function exitCodeOf(status: number): ExitCode {
  if (status === 400 || status === 413 || status === 415) return exitCodes.usage;
  if (status === 401 || status === 403) return exitCodes.notAuthorized;
  if (status === 404) return exitCodes.notFound;
  if (status === 409 || status === 412) return exitCodes.conflict;
  if (status === 429 || status === 503) return exitCodes.unavailable;
  return exitCodes.failure;
}

function messageOf({ status, said, details, message, requestId }: ApiError): string {
  const request = status >= 500 && requestId !== null ? `\n  request ${requestId}` : '';
  return `${refusalText(said ?? message, details)}${request}`;
}

/** A refusal as a person reads it: each of its issues on a line, where there are several. */
export function refusalText(
  message: string,
  { issues }: Readonly<Record<string, unknown>>,
): string {
  const listed = Array.isArray(issues)
    ? (issues as readonly { readonly field: string; readonly issue: string }[])
    : [];
  if (listed.length < 2) return message;
  const lines = listed.map(({ field, issue }) => `  ${field}: ${issue}`);
  return ['the service refuses:', ...lines].join('\n');
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

const isAddress = (url: string): boolean =>
  URL.canParse(url) && ['http:', 'https:'].includes(new URL(url).protocol);

function unanswered(url: string, error: unknown): CommandFault {
  if (!isAddress(url)) {
    return usageFault(`${url} is no address of a service: it begins with http:// or https://`);
  }
  const distrust = certificateFault(error);
  if (distrust !== null) {
    return new CommandFault(exitCodes.unavailable, `${url} is not called: ${distrust}`, error);
  }
  const why = [...causes(error)].map(({ code }) => code).find((code) => code !== undefined);
  const said = why === undefined ? '' : ` (${why})`;
  const advice = 'is the service running there? SVC_URL or --url says where to look';
  return new CommandFault(exitCodes.unavailable, `no answer from ${url}${said}: ${advice}`, error);
}
