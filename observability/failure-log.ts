import { EventStoreError, type EventStoreErrorCode } from '../domain/event-store.ts';
import { serverProblemOf, type ServerProblem } from '../domain/server-problem.ts';
import { ReadModelError } from '../projections/read-model.ts';
import { CoordinationError } from '../scheduler/coordination.ts';
import type { Failures, Log, LogFields } from './telemetry.ts';

/** Milliseconds between two lines about one cause. */
const INTERVAL = 60_000;

/** Milliseconds without a failure after which a cause counts as new. Nobody tried what had failed. */
const FORGOTTEN_AFTER = 15 * 60_000;

/** Errors of the log that no retry can solve. */
const permanentCodes: ReadonlySet<EventStoreErrorCode> = new Set(['NEWER_SCHEMA', 'CORRUPT_EVENT']);

/** Why something fails, as its lines show it. */
interface Cause {
  readonly key: string;
  readonly level: 'warn' | 'error';
  readonly message: string;
  /** The message of the line when it is over. */
  readonly over: string;
  readonly fields: LogFields;
}

/** A cause with its failures. Times are steady, in milliseconds. */
interface Trouble extends Cause {
  /** The work that fails by it. Empty for a server's problem, which its adapter ends. */
  readonly works: Set<string>;
  isOver: boolean;
  since: number;
  lastAt: number;
  /** Failures since it began, and since the last line. */
  times: number;
  untold: number;
  /** When the last line about it was written, and whether none has said since that it is over. */
  toldAt: number;
  isTold: boolean;
}

/** The causes by which work of this process fails, and their lines: see {@link Failures}. */
export class FailureLog implements Failures {
  readonly #log: Log;
  readonly #now: () => number;
  readonly #troubles = new Map<string, Trouble>();

  /** @param now steady milliseconds */
  constructor(log: Log, now: () => number = () => performance.now()) {
    this.#log = log;
    this.#now = now;
  }

  failed(work: string, error: unknown, fields: LogFields = {}): void {
    this.#log.debug(work, { ...fields, error });
    const problem = serverProblemOf(error);
    if (problem !== null) {
      const known = this.#troubles.get(causeOfProblem(problem).key);
      // Its adapter reports it, once it knows the reason for sure.
      if (known?.isOver === false) this.#note(known);
      return;
    }
    const trouble = this.#note(causeOf(work, error, fields));
    trouble.works.add(work);
  }

  worked(work: string): void {
    for (const trouble of this.#troubles.values()) {
      if (!trouble.works.has(work)) continue;
      // If other work still fails, the cause begins again.
      trouble.works.clear();
      this.#end(trouble);
    }
  }

  unusable(problem: ServerProblem, former?: ServerProblem): void {
    const replaced = former && this.#troubles.get(causeOfProblem(former).key);
    if (replaced !== undefined) {
      replaced.isOver = true;
      replaced.isTold = false;
    }
    this.#note(causeOfProblem(problem));
  }

  usable(problem: ServerProblem): void {
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
      trouble.untold = 0;
    }
    trouble.times += 1;
    trouble.untold += 1;
    trouble.lastAt = now;
    if (now - trouble.toldAt < INTERVAL) return trouble;
    const { level, message, times, untold } = trouble;
    const seconds = Math.round((now - trouble.since) / 1000);
    const more = times === 1 ? {} : { times: untold, seconds };
    this.#log[level](message, { ...cause.fields, ...more });
    trouble.toldAt = now;
    trouble.isTold = true;
    trouble.untold = 0;
    return trouble;
  }

  #begin(cause: Cause): Trouble {
    const now = this.#now();
    // Kept for a while, so that a cause which comes and goes has no more lines than one that stays.
    for (const [key, { isOver, toldAt }] of this.#troubles) {
      if (isOver && now - toldAt >= INTERVAL) this.#troubles.delete(key);
    }
    const trouble: Trouble = {
      ...cause,
      works: new Set(),
      isOver: false,
      since: now,
      lastAt: now,
      times: 0,
      untold: 0,
      toldAt: Number.NEGATIVE_INFINITY,
      isTold: false,
    };
    this.#troubles.set(cause.key, trouble);
    return trouble;
  }

  #end(trouble: Trouble): void {
    trouble.isOver = true;
    if (!trouble.isTold) return;
    trouble.isTold = false;
    const { over, times, since } = trouble;
    const seconds = Math.round((this.#now() - since) / 1000);
    this.#log.info(over, { times, seconds });
  }
}

function causeOfProblem(problem: ServerProblem): Cause {
  const { kind, server, message, remedy, lasting } = problem;
  return {
    // The words of a failed connection differ from call to call.
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

/** The store that an error says is unavailable: a cause of its own, whatever failed by it. */
function unavailableStoreOf(error: unknown): string | null {
  if (error instanceof EventStoreError) {
    return error.code === 'UNAVAILABLE' || error.code === 'OUTCOME_UNKNOWN' ? 'event log' : null;
  }
  if (error instanceof ReadModelError) return error.code === 'UNAVAILABLE' ? 'views' : null;
  return error instanceof CoordinationError ? 'coordination store' : null;
}
