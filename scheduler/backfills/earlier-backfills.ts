import { backfillFold, type BackfillState } from '../../domain/backfills/backfill.ts';
import { overlaps } from '../../domain/backfills/backfill-commands.ts';
import { fromIso } from '../../domain/clock.ts';
import type { EventStore } from '../../domain/event-store.ts';
import type { DataOf } from '../../domain/events/catalogue.ts';
import { load } from '../../domain/handle.ts';
import { streams } from '../../domain/streams.ts';

/**
 * The task's overlapping backfills of missing times that come earlier in the log. Concurrent backfills give way to
 * those before them in the log, so that no nominal time gets two runs. The log's order is the same for every process.
 *
 * An earlier backfill has decided all times up to its `up_to`. A later one waits for the other times while the earlier
 * one is running. It also waits for the end of the earlier one's runs, which may not be requested yet, or may be
 * canceled with their backfill.
 */
export class EarlierBackfills {
  readonly #store: EventStore;
  readonly #id: string;
  readonly #candidates: () => Promise<ReadonlySet<string>>;
  /** By id; null before they were looked up. */
  #earlier: Map<string, BackfillState> | null = null;

  /** @param candidates ids of all the task's backfills before this one in the log, and possibly others */
  constructor(store: EventStore, id: string, candidates: () => Promise<ReadonlySet<string>>) {
    this.#store = store;
    this.#id = id;
    this.#candidates = candidates;
  }

  get ids(): string[] {
    return [...(this.#earlier?.keys() ?? [])];
  }

  /** Reads their present states. Must be called before the streams of runs are read. */
  async refresh(request: DataOf<'BackfillRequested'>): Promise<void> {
    this.#earlier ??= await this.#find(request);
    for (const [id, known] of this.#earlier) {
      if (isFinal(known)) continue;
      const { state } = await load(this.#store, streams.backfill(id), backfillFold);
      this.#earlier.set(id, state);
    }
  }

  /** Whether an earlier backfill may still run or decide a nominal time, as of the last refresh. */
  mayStillRun(nominal: string): boolean {
    for (const earlier of this.#earlier?.values() ?? []) {
      if (earlier.state === 'none') continue;
      const { request, progress } = earlier;
      if (progress.unfinished.includes(nominal)) return true;
      const isDecided = earlier.state !== 'running' || nominal <= (progress.up_to ?? '');
      if (!isDecided && nominal >= request.from && nominal <= request.to) return true;
    }
    return false;
  }

  async #find(request: DataOf<'BackfillRequested'>): Promise<Map<string, BackfillState>> {
    const earlier = new Map<string, BackfillState>();
    for (const id of request.earlier) earlier.set(id, { state: 'none' });
    const own = await this.#firstEvent(this.#id);
    const span = { from: fromIso(request.from), to: fromIso(request.to) };
    for (const id of await this.#candidates()) {
      if (id === this.#id || earlier.has(id)) continue;
      const other = await this.#firstEvent(id);
      if (other === null || own === null || other.position >= own.position) continue;
      if (overlaps(other.request, span)) earlier.set(id, { state: 'none' });
    }
    return earlier;
  }

  async #firstEvent(
    id: string,
  ): Promise<{ readonly position: string; readonly request: DataOf<'BackfillRequested'> } | null> {
    const [first] = await this.#store.readStream(streams.backfill(id), { limit: 1 });
    if (first?.type !== 'BackfillRequested') return null;
    return { position: first.position, request: first.data };
  }
}

function isFinal(backfill: BackfillState): boolean {
  const { state } = backfill;
  if (state === 'canceled') return backfill.progress.unfinished.length === 0;
  return state === 'completed';
}
