import { ApiError, ClientConnection, type ApiRequest } from '../client/client-connection.ts';

/** A job as the service hands it out. */
export interface HandedJob {
  readonly job_id: string;
  readonly lease: string;
  readonly run_id: string;
  readonly task_id: string;
  readonly step: string;
  readonly tool: string;
  readonly arguments: Readonly<Record<string, unknown>>;
  readonly idempotency_key: string;
  readonly attempt: number;
  readonly deadline: string;
  readonly traceparent: string | null;
}

/** The registration of a worker. */
export interface Offer {
  readonly name: string;
  readonly tools: readonly {
    readonly name: string;
    readonly description: string;
    readonly schema: object;
  }[];
  readonly slots: number;
  readonly labels: Readonly<Record<string, string>>;
}

/** The service's response to a registration. */
export interface Registered {
  readonly worker_id: string;
  readonly lease_seconds: number;
  readonly heartbeat_seconds: number;
}

export type LogLevel = 'debug' | 'info' | 'warn' | 'error';

export interface LogLine {
  readonly level: LogLevel;
  readonly message: string;
  readonly at: string;
}

/** How a job ended. */
export type JobAnswer = { readonly job_id: string; readonly lease: string } & (
  | { readonly result: unknown }
  | { readonly error: string; readonly retryable: boolean }
);

/** The service's response to the result of a job. */
export interface AnswerOutcome {
  /** 200, or the status of a rejection. */
  readonly status: number;
  readonly message: string | null;
}

/** The service must respond within this many seconds. */
const ANSWER_WITHIN = 15;

/** The part of the HTTP interface that workers use. Its methods throw {@link ApiError}, and errors of `fetch`. */
export class JobService {
  readonly #connection: ClientConnection;

  constructor(connection: ClientConnection) {
    this.#connection = connection;
  }

  async register(offer: Offer, signal: AbortSignal): Promise<Registered> {
    const request = { method: 'POST', path: '/workers', body: offer } as const;
    return (await this.#call<Registered>(request, { signal })).data;
  }

  /**
   * Waits for jobs.
   * @returns the jobs, and how many milliseconds this machine's clock is ahead of the service's
   */
  async poll(
    workerId: string,
    { wait, max, signal }: { wait: number; max: number; signal: AbortSignal },
  ): Promise<{ readonly jobs: readonly HandedJob[]; readonly ahead: number }> {
    const path = `/workers/${workerId}/jobs`;
    const request = { method: 'POST', path, query: { wait, max } } as const;
    const seconds = wait + ANSWER_WITHIN;
    const { data, headers } = await this.#call<{ jobs: HandedJob[] }>(request, { seconds, signal });
    return { jobs: data.jobs, ahead: aheadOf(headers.get('date')) };
  }

  async heartbeat(
    { job_id, lease }: Pick<HandedJob, 'job_id' | 'lease'>,
    report: { readonly progress?: number | undefined; readonly log?: readonly LogLine[] },
  ): Promise<{ readonly cancel_requested: boolean }> {
    const request = {
      method: 'POST',
      path: `/jobs/${job_id}/heartbeat`,
      body: { lease, ...report },
    } as const;
    return (await this.#call<{ cancel_requested: boolean }>(request)).data;
  }

  /** @returns an outcome for each job, in their order */
  async answer(workerId: string, results: readonly JobAnswer[]): Promise<readonly AnswerOutcome[]> {
    const request = {
      method: 'POST',
      path: `/workers/${workerId}/results`,
      body: { results },
    } as const;
    return (await this.#call<{ results: AnswerOutcome[] }>(request)).data.results;
  }

  /** Stops giving jobs to the worker. The service answers a waiting poll. */
  async drain(workerId: string): Promise<void> {
    await this.#call({ method: 'DELETE', path: `/workers/${workerId}` }, { seconds: 5 });
  }

  /** Each call has its own signal, because a long-lived signal would keep a reference to each call. */
  async #call<T>(
    request: ApiRequest,
    { seconds = ANSWER_WITHIN, signal }: { seconds?: number; signal?: AbortSignal } = {},
  ) {
    const stop = new AbortController();
    const giveUp = (): void => stop.abort(new Error(`no response within ${seconds} s`));
    const leave = (): void => stop.abort(signal?.reason);
    const timer = setTimeout(giveUp, seconds * 1000);
    signal?.addEventListener('abort', leave, { once: true });
    if (signal?.aborted === true) leave();
    try {
      return await this.#connection.call<T>({ ...request, signal: stop.signal });
    } finally {
      clearTimeout(timer);
      signal?.removeEventListener('abort', leave);
    }
  }
}

/** Whether the service says that the job does not, or no longer, belong to this worker. */
export function isRefusal(error: unknown): error is ApiError {
  return error instanceof ApiError && (error.status === 404 || error.status === 409);
}

/** Whether the request itself is at fault, so repeating it is useless. */
export function isInvalid(error: unknown): error is ApiError {
  return error instanceof ApiError && [400, 413, 415, 422].includes(error.status);
}

/** Differences below this many milliseconds mean nothing, because the header counts whole seconds. */
const MEANINGLESS = 2_000;

function aheadOf(date: string | null): number {
  const ahead = date === null ? 0 : Date.now() - Date.parse(date);
  return Math.abs(ahead) > MEANINGLESS ? ahead : 0;
}
