import { ApiError } from '../client/client-connection.ts';
import { BackOff, pause } from './back-off.ts';
import { FailureLines } from './failure-lines.ts';
import type { JobService, Offer, Registered } from './job-service.ts';
import type { WorkerLog } from './worker-log.ts';

/** How long a worker keeps a job without a heartbeat, and how often it sends one. Milliseconds. */
export interface LeaseTimes {
  readonly length: number;
  readonly beat: number;
}

/** The registration of a worker with the service. */
export class Registration {
  readonly #service: JobService;
  readonly #offer: Offer;
  readonly #log: WorkerLog;
  readonly #failures: FailureLines;
  /** Aborts when the worker stops. */
  readonly #stopping: AbortSignal;
  #latest: Registered | null = null;
  #registering: Promise<void> | null = null;

  constructor(parts: {
    readonly service: JobService;
    readonly offer: Offer;
    readonly log: WorkerLog;
    readonly stopping: AbortSignal;
  }) {
    this.#service = parts.service;
    this.#offer = parts.offer;
    this.#log = parts.log;
    this.#failures = new FailureLines(parts.log, 'register');
    this.#stopping = parts.stopping;
  }

  /** The worker's id; null before it is registered. */
  get id(): string | null {
    return this.#latest?.worker_id ?? null;
  }

  get lease(): LeaseTimes {
    const { lease_seconds = 30, heartbeat_seconds = 10 } = this.#latest ?? {};
    return { length: lease_seconds * 1000, beat: heartbeat_seconds * 1000 };
  }

  /**
   * Registers once the service is available. Gives up when the worker stops.
   * @throws ApiError if the service rejects it
   */
  async begin(): Promise<void> {
    const backOff = new BackOff();
    while (!this.#stopping.aborted) {
      try {
        await this.#register();
        this.#failures.worked();
        return;
      } catch (error) {
        if (this.#stopping.aborted) return;
        if (isFinal(error)) throw error;
        this.#failures.failed(error);
        await pause(backOff.next(error), this.#stopping);
      }
    }
  }

  /** Registers again, unless the worker has received another id since. @throws ApiError; what `fetch` throws */
  async again(workerId: string | null): Promise<void> {
    if (this.id !== workerId) return;
    await this.#register();
  }

  /** Concurrent calls share a request. */
  #register(): Promise<void> {
    this.#registering ??= this.#send().finally(() => (this.#registering = null));
    return this.#registering;
  }

  async #send(): Promise<void> {
    const { name, tools } = this.#offer;
    this.#latest = await this.#service.register(this.#offer, this.#stopping);
    const offered = tools.map((tool) => tool.name);
    this.#log('info', 'worker registered', { worker: this.id, name, tools: offered });
  }
}

/** Whether another registration would be rejected again. */
function isFinal(error: unknown): boolean {
  if (!(error instanceof ApiError)) return false;
  return error.status >= 400 && error.status < 500 && ![408, 425, 429].includes(error.status);
}
