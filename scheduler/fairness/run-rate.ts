import type { Clock, Instant } from '../../domain/clock.ts';
import {
  QUOTA_WINDOW,
  quotaCounter,
  type QuotaSource,
  type Quotas,
} from '../../domain/namespaces/quotas.ts';
import type { SharedLimit } from '../../domain/vocabulary.ts';
import type { Telemetry } from '../../observability/telemetry.ts';
import type { Coordination } from '../coordination.ts';
import type { QueuedRun } from '../runs/queued-run.ts';
import type { RunQueue } from '../runs/run-queue.ts';
import type { Admission } from '../runs/run-work.ts';

/** The message that reports a failure. */
const NOT_COUNTED = 'could not count runs for a quota; starting them anyway';

const go: Admission = { kind: 'go' };

interface RunRateParts {
  readonly coordination: Pick<Coordination, 'count'>;
  readonly queue: Pick<RunQueue, 'putBack'>;
  readonly clock: Pick<Clock, 'now'>;
  readonly telemetry: Pick<Telemetry, 'count' | 'failures'>;
  readonly quotas: QuotaSource;
  /** How many events a namespace has in the log, as the quota `events` counts them. */
  readonly eventsOf: (namespace: string) => Promise<number>;
}

/** The interval of checks whether a namespace may add to the log again. Milliseconds. */
const EVENTS_CHECK_INTERVAL = 5000;

/**
 * The quotas of namespaces for runs that start for the first time: `runs_per_minute`, counted over all processes, and
 * `events`. A run over a quota stays in the queue until the quota frees, so no run is lost. While the coordination
 * store is unavailable, runs start without being counted.
 */
export class RunRate {
  readonly #parts: RunRateParts;
  /** The time until which the quota of a namespace is used up. */
  readonly #usedUp = new Map<string, Instant>();
  /** Runs that were counted but have not started yet. */
  readonly #counted = new WeakSet<QueuedRun>();

  constructor(parts: RunRateParts) {
    this.#parts = parts;
  }

  /** Whether a namespace has, or may have, such a quota. Its runs must then be admitted before they start. */
  limits(namespace: string): boolean {
    const quotas = this.#parts.quotas.peek(namespace);
    return quotas === undefined || limitsRuns(quotas);
  }

  /** Whether a run must wait. If so, it has been put back into the queue. */
  park(run: QueuedRun): boolean {
    const until = this.#usedUp.get(run.namespace);
    if (until === undefined || !this.#counts(run)) return false;
    const now = this.#parts.clock.now();
    // The time is further ahead than any window, so the clock was set back.
    if (until <= now || until > now + QUOTA_WINDOW) {
      this.#usedUp.delete(run.namespace);
      return false;
    }
    this.#parts.queue.putBack(run, until);
    return true;
  }

  /** Counts a run that is about to start. */
  admit(run: QueuedRun): Admission | Promise<Admission> {
    const quotas = this.#parts.quotas.peek(run.namespace);
    if (!this.#counts(run) || (quotas !== undefined && !limitsRuns(quotas))) return go;
    return this.#admit(run);
  }

  async #admit(run: QueuedRun): Promise<Admission> {
    const { clock, telemetry } = this.#parts;
    try {
      const wait = await this.#waitOf(run.namespace);
      telemetry.failures.worked(NOT_COUNTED);
      if (wait !== null) {
        const until = clock.now() + wait.milliseconds;
        this.#usedUp.set(run.namespace, until);
        telemetry.count('limit_refusals_total', { limit: wait.quota });
        return { kind: 'wait', until };
      }
    } catch (error) {
      telemetry.failures.failed(NOT_COUNTED, error);
    }
    this.#counted.add(run);
    return go;
  }

  /** Counts a run of a namespace. @returns the quota that it exceeds; null for none */
  async #waitOf(
    namespace: string,
  ): Promise<{ readonly quota: SharedLimit; readonly milliseconds: number } | null> {
    const { coordination, quotas, eventsOf } = this.#parts;
    const { events, runs_per_minute: runs } = await quotas.of(namespace);
    // Checked first, because a run that does not start must not be counted.
    if (events !== undefined && (await eventsOf(namespace)) >= events) {
      return { quota: 'events', milliseconds: EVENTS_CHECK_INTERVAL };
    }
    if (runs === undefined) return null;
    const name = quotaCounter('runs_per_minute', namespace);
    const { sum, remaining } = await coordination.count(name, 1, QUOTA_WINDOW);
    if (sum <= runs) return null;
    return { quota: 'runs_per_minute', milliseconds: Math.max(1, remaining) };
  }

  /** Whether this is its first start, which is not counted yet. */
  #counts(run: QueuedRun): boolean {
    return run.startedAt === null && !this.#counted.has(run);
  }
}

const limitsRuns = ({ runs_per_minute, events }: Quotas): boolean =>
  runs_per_minute !== undefined || events !== undefined;
