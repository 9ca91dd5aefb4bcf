import type { EventStore } from '../../domain/event-store.ts';
import type { DataOf } from '../../domain/events/catalogue.ts';
import { streams } from '../../domain/streams.ts';
import { WeighedCache } from '../../projections/reading/weighed-cache.ts';
import type { RunQueue } from '../runs/run-queue.ts';
import type { Job } from './job.ts';

/** Limits of the arguments kept in memory: the number of jobs, and their characters of JSON. */
const MAX_KEPT = 50_000;
const MAX_KEPT_WEIGHT = 8 * 1024 * 1024;

/** How many events at a stream's end are searched first. */
const LAST_EVENTS = 100;
const PAGE = 1000;

/** The details of a job that a worker needs in addition to the index. */
export interface Details {
  readonly arguments: unknown;
  /** The trace context of the run's span, if it is traced. */
  readonly traceparent: string | null;
}

/** The arguments of jobs, from memory for the latest jobs and from the run's stream for others. */
export class JobDetails {
  readonly #store: EventStore;
  readonly #kept = new WeighedCache<Details>({ entries: MAX_KEPT, weight: MAX_KEPT_WEIGHT });

  constructor(store: EventStore, queue: Pick<RunQueue, 'subscribe'>) {
    this.#store = store;
    queue.subscribe({ onSuspended: (suspended, trace) => this.#keep(suspended, trace) });
  }

  /** @returns null if the run's stream does not have the job @throws EventStoreError */
  async of({ id, runId }: Pick<Job, 'id' | 'runId'>): Promise<Details | null> {
    const kept = this.#kept.get(id);
    if (kept !== undefined) return kept;
    const stream = streams.run(runId);
    const part = { direction: 'backwards', limit: LAST_EVENTS, faulty: true } as const;
    let page = await this.#store.readStream(stream, part);
    for (;;) {
      for (const event of page) {
        if (event.type !== 'RunStepSuspended' || event.fault !== undefined) continue;
        if (event.data.wait_id !== id) continue;
        return detailsOf(event.data, event.metadata.traceparent);
      }
      const first = page.at(-1)?.revision ?? 0;
      if (first === 0) return null;
      page = await this.#store.readStream(stream, { ...part, from: first - 1, limit: PAGE });
    }
  }

  /** Forgets a job that is over. */
  forget(id: string): void {
    this.#kept.delete(id);
  }

  #keep(suspended: DataOf<'RunStepSuspended'>, trace: string | undefined): void {
    const details = detailsOf(suspended, trace);
    if (details !== null) this.#kept.set(suspended.wait_id, details);
  }
}

function detailsOf(
  { waits_for }: DataOf<'RunStepSuspended'>,
  trace: string | undefined,
): Details | null {
  if (waits_for.kind !== 'job') return null;
  return { arguments: waits_for.arguments, traceparent: trace ?? null };
}
