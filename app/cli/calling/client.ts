import { randomUUID } from 'node:crypto';
import {
  ApiError,
  createClient,
  type ApiResponse,
  type Client as TypedClient,
  type ClientOptions,
  type ServerSentEvent,
} from '../../../api/client/client.ts';
import type { Clock } from '../../../domain/clock.ts';
import { certificateProblem } from './certificate-problem.ts';
import {
  CommandError,
  exitCodes,
  IncompleteExportError,
  usageError,
  type ExitCode,
} from './command-errors.ts';

/** A request that the service rejected. */
export class ServiceError extends CommandError {
  readonly status: number;
  /** The code of the error body; `unknown` without one. */
  readonly error: string;

  constructor(rejected: ApiError) {
    super(exitCodeOf(rejected.status), errorMessage(rejected), rejected);
    this.status = rejected.status;
    this.error = rejected.code;
  }
}

/** A call of a method of the typed client. */
export type ServiceRequest<T> = (api: TypedClient) => Promise<ApiResponse<T>>;

export type QueryValue = string | number | boolean | undefined;

/** The contents of a request; undefined parameters are left out. */
export interface RequestOptions {
  readonly query?: Readonly<Record<string, QueryValue>>;
  readonly body?: unknown;
  /** The expected revision. */
  readonly ifMatch?: number | undefined;
}

/** Attempts of a request without a response, and the milliseconds before the second one. */
const MAX_ATTEMPTS = 3;
const RETRY_DELAY = 300;

/**
 * A command without `Idempotency-Key`, because its response must not be stored. It is sent once: a second new secret
 * would push out the one that the receiver still uses.
 */
const SENT_ONCE = /\/webhook-secret$/;

/** The service's typed client, with the command line's retries and errors. */
export class Client {
  readonly url: string;
  readonly #api: TypedClient;
  readonly #clock: Clock;
  readonly #signal: AbortSignal;

  /**
   * @param options.reason recorded in the events of every command (`X-Reason`)
   * @param options.namespace limits lists and figures to this one
   */
  constructor(options: {
    readonly url: string;
    readonly access: Pick<ClientOptions, 'token' | 'credentials' | 'kept'>;
    readonly clock: Clock;
    readonly signal: AbortSignal;
    readonly reason?: string | undefined;
    readonly namespace?: string | undefined;
  }) {
    const { url, access, clock, signal, reason, namespace } = options;
    this.url = url.replace(/\/+$/, '');
    this.#clock = clock;
    this.#signal = signal;
    this.#api = createClient({
      ...access,
      baseUrl: this.url,
      signal,
      ...(reason === undefined ? {} : { reason }),
      ...(namespace === undefined ? {} : { namespace }),
      fetch: (input, init) => this.#fetch(input, init),
    });
  }

  /**
   * Calls a method of the typed client and returns the response's body.
   * @throws ServiceError when the service rejects the request, CommandError when it does not answer
   */
  async call<T>(request: ServiceRequest<T>): Promise<T> {
    return (await this.#translated(() => request(this.#api))).data;
  }

  /** Like {@link call}, for a path and query built from the caller's input, which the service checks. */
  get<T>(path: string, { query }: Pick<RequestOptions, 'query'> = {}): Promise<T> {
    return this.call((api) => api.request<T>({ method: 'GET', path, query }));
  }

  post<T>(path: string, { query, body }: RequestOptions = {}): Promise<T> {
    return this.call((api) => api.request<T>({ method: 'POST', path, query, body }));
  }

  put<T>(path: string, { body, ifMatch }: RequestOptions = {}): Promise<T> {
    const expected = ifMatch === undefined ? {} : { ifMatch };
    return this.call((api) => api.request<T>({ method: 'PUT', path, body, ...expected }));
  }

  /** The access token for its calls. @throws as {@link call} */
  async token(): Promise<string> {
    return (await this.#translated(() => this.#api.token())) ?? '';
  }

  /**
   * The messages of a live path, until the service or the caller ends it.
   * @param lastId continues after this message
   */
  async *live(
    path: string,
    query: RequestOptions['query'],
    lastId: string | undefined,
  ): AsyncGenerator<ServerSentEvent> {
    try {
      yield* this.#api.live({ path, query, lastEventId: lastId });
    } catch (error) {
      if (this.#signal.aborted) return;
      throw this.#translate(error);
    }
  }

  /**
   * Streams exported rows as strings.
   * @throws as {@link call} before the first; IncompleteExportError if they end too soon
   */
  async *rows(request: (api: TypedClient) => AsyncGenerator<string>): AsyncGenerator<string> {
    let hasBegun = false;
    try {
      for await (const text of request(this.#api)) {
        hasBegun = true;
        yield text;
      }
    } catch (error) {
      if (hasBegun && !this.#signal.aborted) throw new IncompleteExportError(error);
      throw this.#translate(error);
    }
  }

  /**
   * Streams a response as strings.
   * @throws as {@link call}, also when the stream breaks off
   */
  async *text(request: (api: TypedClient) => AsyncGenerator<string>): AsyncGenerator<string> {
    try {
      yield* request(this.#api);
    } catch (error) {
      throw this.#translate(error);
    }
  }

  async #translated<T>(work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      throw this.#translate(error);
    }
  }

  #translate(error: unknown): unknown {
    if (error instanceof ApiError) return new ServiceError(error);
    if (this.#signal.aborted || error instanceof CommandError) return error;
    // The typed client rejects malformed ids.
    if (error instanceof RangeError) return usageError(error.message);
    if (error instanceof SyntaxError) {
      const message = `the response of ${this.url} is not JSON; is it this service?`;
      return new CommandError(exitCodes.failure, message, error);
    }
    return noResponse(this.url, error);
  }

  /** Retries a request without a response if that is safe: a GET, or a command with an `Idempotency-Key`. */
  async #fetch(...[input, init]: Parameters<typeof fetch>): Promise<Response> {
    const headers = new Headers(init?.headers);
    const isSentOnce = typeof input === 'string' && SENT_ONCE.test(input);
    if (init?.method === 'POST' && !isSentOnce && !headers.has('idempotency-key')) {
      headers.set('idempotency-key', randomUUID());
    }
    const isRepeatable = init?.method === 'GET' || headers.has('idempotency-key');
    for (let attempt = 1; ; attempt += 1) {
      try {
        return await fetch(input, { ...init, headers });
      } catch (error) {
        const isFinal = this.#signal.aborted || attempt === MAX_ATTEMPTS;
        if (isFinal || !isRepeatable || isUnreachable(error)) throw error;
        await this.#clock.sleep(RETRY_DELAY * attempt, this.#signal);
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

function errorMessage({ status, said, details, message, requestId }: ApiError): string {
  const request = status >= 500 && requestId !== null ? `\n  request ${requestId}` : '';
  return `${rejectionText(said ?? message, details)}${request}`;
}

/** A rejection for a person: several issues are listed, a line each. */
export function rejectionText(
  message: string,
  { issues }: Readonly<Record<string, unknown>>,
): string {
  const listed = Array.isArray(issues)
    ? (issues as readonly { readonly field: string; readonly issue: string }[])
    : [];
  if (listed.length < 2) return message;
  const lines = listed.map(({ field, issue }) => `  ${field}: ${issue}`);
  return ['the service rejected the request:', ...lines].join('\n');
}

/** An error and all its causes. */
function* causes(error: unknown): Generator<Error & { readonly code?: string }> {
  if (!(error instanceof Error)) return;
  yield error;
  yield* causes(error.cause);
  if (error instanceof AggregateError) for (const each of error.errors) yield* causes(each);
}

const isUnreachable = (error: unknown): boolean =>
  [...causes(error)].some(({ code }) => code === 'ECONNREFUSED' || code === 'ENOTFOUND');

function noResponse(url: string, error: unknown): CommandError {
  if (!URL.canParse(url) || !['http:', 'https:'].includes(new URL(url).protocol)) {
    return usageError(`${url} is not a service address; it must begin with http:// or https://`);
  }
  const problem = certificateProblem(error);
  if (problem !== null) {
    return new CommandError(exitCodes.unavailable, `${url} was not called: ${problem}`, error);
  }
  const code = [...causes(error)].map((each) => each.code).find((each) => each !== undefined);
  const why = code === undefined ? '' : ` (${code})`;
  const message = `no response from ${url}${why}; is the service running? Set SVC_URL or --url`;
  return new CommandError(exitCodes.unavailable, message, error);
}
