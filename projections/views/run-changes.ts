import type { EventStore, Position, RecordedEvent } from '../../domain/event-store.ts';
import type { DataOf, EventType } from '../../domain/events/catalogue.ts';
import { idOf } from '../../domain/streams.ts';
import { runsProjection, type RunDocument, type RunStep } from './runs.ts';

/** Changes of runs, as watching clients see them. Other types of events are left out. */
const runChangeNames = {
  RunRequested: 'run.requested',
  RunSkipped: 'run.skipped',
  RunStarted: 'run.started',
  RunStepCompleted: 'run.step',
  RunStepSuspended: 'run.suspended',
  RunStepResumed: 'run.resumed',
  RunReleased: 'run.waiting',
  RunStepProgressed: 'run.progress',
  RunInterrupted: 'run.interrupted',
  RunAttemptFailed: 'run.retrying',
  RunCancelRequested: 'run.cancel_requested',
  RunSucceeded: 'run.ended',
  RunFailed: 'run.ended',
  RunCanceled: 'run.ended',
} as const satisfies Partial<Record<EventType, string>>;
export type RunChangeName = (typeof runChangeNames)[keyof typeof runChangeNames];

/** One change of a run, and the run after it. */
export interface RunChange {
  readonly name: RunChangeName;
  readonly position: Position;
  readonly at: string;
  readonly run: RunDocument;
  /** The step that ended; null for all but `run.step`. */
  readonly step: RunStep | null;
  /** The log lines or progress of a step; null for all types but `run.progress`. */
  readonly progressed: DataOf<'RunStepProgressed'> | null;
}

interface CachedRun {
  readonly revision: number;
  readonly document: RunDocument | null;
}

/** Unfinished runs whose state is cached, so that their next event needs no read. */
const MAX_RUNS = 2_000;
const PAGE = 1_000;

/**
 * Derives changes of runs from events, by the same fold as the view of runs. For one reader, which passes events in log
 * order; runs that began earlier are read from the log.
 */
export class RunChanges {
  readonly #store: EventStore;
  readonly #cached = new Map<string, CachedRun>();

  constructor(store: EventStore) {
    this.#store = store;
  }

  /**
   * The change by an event of `run-<id>`; null for an event that is left out, cannot be read, or follows one that
   * cannot be read.
   * @throws EventStoreError if the run has to be read, and cannot be
   */
  async of(event: RecordedEvent): Promise<RunChange | null> {
    const name = (runChangeNames as Partial<Record<EventType, RunChangeName>>)[event.type];
    const id = idOf(event.stream);
    const known = this.#cached.get(id);
    if (event.fault !== undefined || (name === undefined && known === undefined)) return null;
    this.#cached.delete(id);
    const run = await this.#runAfter(event, id, known);
    if (name !== 'run.ended' && name !== 'run.skipped') this.#cache(id, event.revision, run);
    if (run === null || name === undefined) return null;
    const step = name === 'run.step' ? (run.steps.at(-1) ?? null) : null;
    const progressed = event.type === 'RunStepProgressed' ? event.data : null;
    const { position, metadata } = event;
    return { name, position, at: metadata.occurredAt, run, step, progressed };
  }

  async #runAfter(
    event: RecordedEvent,
    id: string,
    known: CachedRun | undefined,
  ): Promise<RunDocument | null> {
    if (event.revision === 0) return runsProjection.evolve(null, event, id);
    if (known?.revision === event.revision - 1) {
      return runsProjection.evolve(known.document, event, id);
    }
    let run: RunDocument | null = null;
    for (let from = 0; from <= event.revision; from += PAGE) {
      const limit = Math.min(PAGE, event.revision + 1 - from);
      const options = { from, limit, faulty: true };
      for (const each of await this.#store.readStream(event.stream, options)) {
        // The state from there on is unknown. An error would withhold the changes of all other runs.
        if (each.fault !== undefined) return null;
        run = runsProjection.evolve(run, each, id);
      }
    }
    return run;
  }

  #cache(id: string, revision: number, document: RunDocument | null): void {
    this.#cached.set(id, { revision, document });
    if (this.#cached.size <= MAX_RUNS) return;
    const [oldest] = this.#cached.keys();
    if (oldest !== undefined) this.#cached.delete(oldest);
  }
}
