import { EventStoreError, type EventStoreErrorCode } from '../domain/event-store.ts';
import { serverProblemOf, type UnusableServerError } from '../domain/server-problem.ts';
import { ReadModelError } from '../projections/read-model.ts';
import { CoordinationError } from '../scheduler/coordination.ts';
import type { Failures, Log, LogFields } from './telemetry.ts';

/** Milliseconds between two lines about one cause. */
const INTERVAL = 60_000;

/**
 * After this many milliseconds without a failure or success, nobody is retrying, and the next failure counts as a new
 * cause.
 */
const FORGOTTEN_AFTER = 15 * 60_000;

/** Errors of the log that no retry can solve. */
const permanentCodes: ReadonlySet<EventStoreErrorCode> = new Set(['NEWER_SCHEMA', 'CORRUPT_EVENT']);

/** Why something fails, as logged. */
interface Cause {
  readonly key: string;
  readonly level: 'warn' | 'error';
  readonly message: string;
  /** The message that reports its end. */
  readonly over: string;
  readonly fields: LogFields;
}

/** A cause with its failures. Times are in milliseconds of a monotonic clock. */
interface Trouble extends Cause {
  /** The work that fails because of it. Empty for a server's problem, whose end its adapter reports. */
  readonly works: Set<string>;
  isOver: boolean;
  since: number;
  lastAt: number;
  /** Failures since it began, and since the last line. */
  times: number;
  unreported: number;
  /** When the last line about it was written, and whether its end is still to be logged. */
  reportedAt: number;
  isReported: boolean;
}

/** Logs why work of this process fails, by cause: see {@link Failures}. */
export class FailureLog implements Failures {
  readonly #log: Log;
  readonly #now: () => number;
  readonly #troubles = new Map<string, Trouble>();

  /** @param now milliseconds of a monotonic clock */
  constructor(log: Log, now: () => number = () => performance.now()) {
    this.#log = log;
    this.#now = now;
  }

  failed(work: string, error: unknown, fields: LogFields = {}): void {
    this.#log.debug(work, { ...fields, error });
    const problem = serverProblemOf(error);
    if (problem !== null) {
      const known = this.#troubles.get(causeOfProblem(problem).key);
      // The server's adapter reports the problem once the reason is certain.
      if (known?.isOver === false) this.#note(known);
      return;
    }
    const trouble = this.#note(causeOf(work, error, fields));
    trouble.works.add(work);
  }

  worked(work: string): void {
    for (const trouble of this.#troubles.values()) {
      if (!trouble.works.has(work)) continue;
      // If other work still fails, the cause starts again.
      trouble.works.clear();
      this.#end(trouble);
    }
  }

  unusable(problem: UnusableServerError, former?: UnusableServerError): void {
    const replaced = former && this.#troubles.get(causeOfProblem(former).key);
    if (replaced !== undefined) {
      replaced.isOver = true;
      replaced.isReported = false;
    }
    this.#note(causeOfProblem(problem));
  }

  usable(problem: UnusableServerError): void {
    const trouble = this.#troubles.get(causeOfProblem(problem).key);
    if (trouble !== undefined && !trouble.isOver) this.#end(trouble);
  }

  /** Counts a failure, and writes a line unless one was written within a minute. */
  #note(cause: Cause): Trouble {
    const now = this.#now();
    const trouble = this.#troubles.get(cause.key) ?? this.#begin(cause);
    if (trouble.isOver || now - trouble.lastAt >= FORGOTTEN_AFTER) {
      trouble.isOver = false;
      trouble.since = now;
      trouble.times = 0;
      trouble.unreported = 0;
    }
    trouble.times += 1;
    trouble.unreported += 1;
    trouble.lastAt = now;
    if (now - trouble.reportedAt < INTERVAL) return trouble;
    const { level, message, times, unreported } = trouble;
    const seconds = Math.round((now - trouble.since) / 1000);
    const more = times === 1 ? {} : { times: unreported, seconds };
    this.#log[level](message, { ...cause.fields, ...more });
    trouble.reportedAt = now;
    trouble.isReported = true;
    trouble.unreported = 0;
    return trouble;
  }

  #begin(cause: Cause): Trouble {
    const now = this.#now();
    // Kept for a while, so that a cause which comes and goes writes no more lines than a lasting one.
    for (const [key, { isOver, reportedAt }] of this.#troubles) {
      if (isOver && now - reportedAt >= INTERVAL) this.#troubles.delete(key);
    }
    const trouble: Trouble = {
      ...cause,
      works: new Set(),
      isOver: false,
      since: now,
      lastAt: now,
      times: 0,
      unreported: 0,
      reportedAt: Number.NEGATIVE_INFINITY,
      isReported: false,
    };
    this.#troubles.set(cause.key, trouble);
    return trouble;
  }

  #end(trouble: Trouble): void {
    trouble.isOver = true;
    if (!trouble.isReported) return;
    trouble.isReported = false;
    const { over, times, since } = trouble;
    const seconds = Math.round((this.#now() - since) / 1000);
    this.#log.info(over, { times, seconds });
  }
}

function causeOfProblem(problem: UnusableServerError): Cause {
  const { kind, server, message, remedy, lasting } = problem;
  return {
    // The messages of failed connections differ between calls.
    key: `${server} ${kind} ${kind === 'rights_missing' ? message : ''}`,
    level: lasting ? 'error' : 'warn',
    message: `${message}. ${remedy.charAt(0).toUpperCase()}${remedy.slice(1)}`,
    over: `${server} can be used again`,
    fields: { cause: kind, recovers_by_itself: !lasting },
  };
}

function causeOf(work: string, error: unknown, fields: LogFields): Cause {
  const why = error instanceof Error ? error.message : String(error);
  const store = unavailableStoreOf(error);
  if (store !== null) {
    return {
      key: store,
      level: 'warn',
      message: `${store} unavailable: ${why}`,
      over: `${store} available again`,
      fields: { work, ...fields },
    };
  }
  const code = error instanceof Error && 'code' in error ? String(error.code) : '';
  const name = error instanceof Error ? error.name : typeof error;
  const isPermanent = error instanceof EventStoreError && permanentCodes.has(error.code);
  return {
    key: `${work} ${name} ${code}`,
    level: isPermanent ? 'error' : 'warn',
    message: work,
    over: `succeeded again after: ${work}`,
    fields: { ...fields, error: why },
  };
}

/** The store that is unavailable according to an error. All work that fails because of it has this one cause. */
function unavailableStoreOf(error: unknown): string | null {
  if (error instanceof EventStoreError) {
    return error.code === 'UNAVAILABLE' || error.code === 'OUTCOME_UNKNOWN' ? 'event log' : null;
  }
  if (error instanceof ReadModelError) return error.code === 'UNAVAILABLE' ? 'views' : null;
  return error instanceof CoordinationError ? 'coordination store' : null;
}
