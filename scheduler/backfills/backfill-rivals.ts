import { backfillFold, type BackfillState } from '../../domain/backfills/backfill.ts';
import { overlaps } from '../../domain/backfills/backfill-commands.ts';
import { fromIso } from '../../domain/clock.ts';
import type { EventStore } from '../../domain/event-store.ts';
import type { DataOf } from '../../domain/events/catalogue.ts';
import { load } from '../../domain/handle.ts';
import { streams } from '../../domain/streams.ts';

/**
 * The backfills of a task that were requested before one of what is missing, and share some of its span. Each of
 * several that were requested at the same time gives way to those that stand before it in the log, which every process
 * sees in the same order, and none that is requested later comes before it: so no nominal time is run by two of them.
 *
 * Of one before, all up to its `up_to` is decided for good, by its own stream; what lies behind it is waited for while
 * it is under way, and the end of what it has decided to run as well: that may not have been requested yet, or may
 * still be canceled with it.
 */
export class BackfillRivals {
  readonly #store: EventStore;
  readonly #id: string;
  readonly #others: () => Promise<ReadonlySet<string>>;
  /** Those before it. Null: not looked for yet. */
  #before: Map<string, BackfillState> | null = null;

  /** @param others ids of all backfills of the task that stand before this one in the log, and any others */
  constructor(store: EventStore, id: string, others: () => Promise<ReadonlySet<string>>) {
    this.#store = store;
    this.#id = id;
    this.#others = others;
  }

  /** The ids of all that came before; what these have run is not missing. */
  get ids(): string[] {
    return [...(this.#before?.keys() ?? [])];
  }

  /** Reads how those before it stand now: before the streams of the runs are asked. */
  async look(request: DataOf<'BackfillRequested'>): Promise<void> {
    this.#before ??= await this.#find(request);
    for (const [id, known] of this.#before) {
      // All that it will ever say.
      if (known.state === 'completed' || hasEnded(known)) continue;
      const { state } = await load(this.#store, streams.backfill(id), backfillFold);
      this.#before.set(id, state);
    }
  }

  /** Whether one of them may still run a nominal time, or decide it, as of the last look. Else the streams of runs say. */
  mayStillRun(nominal: string): boolean {
    for (const rival of this.#before?.values() ?? []) {
      if (rival.state === 'none') continue;
      const { request, progress } = rival;
      if (progress.unfinished.includes(nominal)) return true;
      const isBehind = rival.state !== 'running' || nominal <= (progress.up_to ?? '');
      if (!isBehind && nominal >= request.from && nominal <= request.to) return true;
    }
    return false;
  }

  async #find(request: DataOf<'BackfillRequested'>): Promise<Map<string, BackfillState>> {
    const before = new Map<string, BackfillState>();
    for (const id of request.earlier) before.set(id, { state: 'none' });
    const own = await this.#first(this.#id);
    const span = { from: fromIso(request.from), to: fromIso(request.to) };
    for (const id of await this.#others()) {
      if (id === this.#id || before.has(id)) continue;
      const other = await this.#first(id);
      if (other === null || own === null || other.position >= own.position) continue;
      if (overlaps(other.request, span)) before.set(id, { state: 'none' });
    }
    return before;
  }

  async #first(
    id: string,
  ): Promise<{ readonly position: string; readonly request: DataOf<'BackfillRequested'> } | null> {
    const [first] = await this.#store.readStream(streams.backfill(id), { limit: 1 });
    if (first?.type !== 'BackfillRequested') return null;
    return { position: first.position, request: first.data };
  }
}

/** Whether a canceled backfill has nothing more to say. */
function hasEnded(backfill: BackfillState): boolean {
  return backfill.state === 'canceled' && backfill.progress.unfinished.length === 0;
}
