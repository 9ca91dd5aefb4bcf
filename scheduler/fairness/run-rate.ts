import type { Clock, Instant } from '../../domain/clock.ts';
import {
  QUOTA_WINDOW,
  quotaCounter,
  quotasOf,
  type QuotaSettings,
} from '../../domain/namespaces/quotas.ts';
import type { Telemetry } from '../../observability/telemetry.ts';
import type { Coordination } from '../coordination.ts';
import type { QueuedRun } from '../runs/queued-run.ts';
import type { RunQueue } from '../runs/run-queue.ts';
import type { Admission } from '../runs/run-work.ts';

/** What failures are reported as. */
const NOT_COUNTED = 'could not count runs for a quota; starting them';

const go: Admission = { kind: 'go' };

interface RunRateParts {
  readonly coordination: Pick<Coordination, 'count'>;
  readonly queue: Pick<RunQueue, 'putBack'>;
  readonly clock: Pick<Clock, 'now'>;
  readonly telemetry: Pick<Telemetry, 'count' | 'failures'>;
  readonly quotas: QuotaSettings | undefined;
}

/**
 * The quota `runs_per_minute` of namespaces, counted over all processes when a run starts for the first time. A run over
 * the quota stays in the queue until the next minute, so none is lost. While the coordination store is unavailable, runs
 * start uncounted.
 */
export class RunRate {
  readonly #parts: RunRateParts;
  /** By namespace: until when its quota is used up. */
  readonly #usedUp = new Map<string, Instant>();
  /** Runs that are counted and have not started yet. */
  readonly #counted = new WeakSet<QueuedRun>();

  constructor(parts: RunRateParts) {
    this.#parts = parts;
  }

  /** Whether a namespace has the quota, so that its runs must be admitted before they start. */
  limits(namespace: string): boolean {
    return this.#limitOf(namespace) !== undefined;
  }

  /** Whether a run must wait; then it has been put back into the queue. */
  park(run: QueuedRun): boolean {
    const until = this.#usedUp.get(run.namespace);
    if (until === undefined || !this.#counts(run)) return false;
    const now = this.#parts.clock.now();
    // Further ahead than any window: the clock was set back.
    if (until <= now || until > now + QUOTA_WINDOW) {
      this.#usedUp.delete(run.namespace);
      return false;
    }
    this.#parts.queue.putBack(run, until);
    return true;
  }

  /** Counts a run that is about to start. */
  admit(run: QueuedRun): Admission | Promise<Admission> {
    const limit = this.#limitOf(run.namespace);
    return limit === undefined || !this.#counts(run) ? go : this.#count(run, limit);
  }

  async #count(run: QueuedRun, limit: number): Promise<Admission> {
    const { coordination, clock, telemetry } = this.#parts;
    const name = quotaCounter('runs_per_minute', run.namespace);
    try {
      const { sum, remaining } = await coordination.count(name, 1, QUOTA_WINDOW);
      telemetry.failures.worked(NOT_COUNTED);
      if (sum > limit) {
        const until = clock.now() + Math.max(1, remaining);
        this.#usedUp.set(run.namespace, until);
        telemetry.count('limit_refusals_total', { limit: 'runs_per_minute' });
        return { kind: 'wait', until };
      }
    } catch (error) {
      telemetry.failures.failed(NOT_COUNTED, error);
    }
    this.#counted.add(run);
    return go;
  }

  #limitOf(namespace: string): number | undefined {
    return quotasOf(this.#parts.quotas, namespace).runs_per_minute;
  }

  /** Whether this is its first start, and not counted yet. */
  #counts(run: QueuedRun): boolean {
    return run.startedAt === null && !this.#counted.has(run);
  }
}
