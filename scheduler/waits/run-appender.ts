import {
  EventStoreError,
  isConflict,
  type NewEvent,
  type Position,
} from '../../domain/event-store.ts';
import type { RunEvent } from '../../domain/events/catalogue.ts';
import { load, toNewEvents, type CommandContext } from '../../domain/handle.ts';
import { evolveSlimWaits, noWaits, type Wait } from '../../domain/runs/run-waits.ts';
import { runFold } from '../../domain/runs/run.ts';
import { streams } from '../../domain/streams.ts';
import type { RunParts } from '../runs/run-work.ts';

export type AppenderParts = Pick<RunParts, 'store' | 'queue'>;

/** Attempts of an append that loses races, and of one whose answers are lost. */
const MAX_RACES = 20;
const MAX_LOST_ANSWERS = 6;

/** Limits of one append: events, and their characters as JSON. */
const MAX_EVENTS = 100;
const MAX_CHARACTERS = 256 * 1024;

/** What to append to a run, depending on its waits. */
export interface RunChangeOrder {
  /** @throws what the order's promise then rejects with; no events: there is nothing to do */
  readonly decide: (waits: readonly Wait[]) => readonly RunEvent[];
  readonly context: CommandContext;
  /** Of the events as JSON, roughly. */
  readonly size: number;
}

interface Pending extends RunChangeOrder {
  readonly resolve: (position: Position | null) => void;
  readonly reject: (error: unknown) => void;
}

/** The waits of a run as of a revision. */
interface Snapshot {
  readonly waits: readonly Wait[];
  readonly revision: number | 'none';
}

/**
 * Appends to runs what comes from outside while they wait. Orders for one run go into one append, and wait for the one
 * before. A run that this process's queue knows is not read, except after a lost race.
 */
export class RunAppender {
  readonly #parts: AppenderParts;
  /** By run. */
  readonly #pending = new Map<string, Pending[]>();

  constructor(parts: AppenderParts) {
    this.#parts = parts;
  }

  /**
   * Decides on the run's present waits, and appends.
   * @returns the position of the events; null where there was nothing to do
   * @throws what `decide` throws; EventStoreError
   */
  append(runId: string, order: RunChangeOrder): Promise<Position | null> {
    return new Promise((resolve, reject) => {
      const pending = { ...order, resolve, reject };
      const known = this.#pending.get(runId);
      if (known !== undefined) {
        known.push(pending);
        return;
      }
      const orders = [pending];
      this.#pending.set(runId, orders);
      // Orders of the same turn go together.
      queueMicrotask(() => void this.#work(runId, orders));
    });
  }

  /** Never rejects. */
  async #work(runId: string, orders: Pending[]): Promise<void> {
    let known: Snapshot | null = null;
    while (orders.length > 0) {
      const some = takeSome(orders);
      try {
        known = await this.#appendTogether(runId, some, known);
      } catch (error) {
        for (const { reject } of some) reject(error);
        known = null;
      }
    }
    this.#pending.delete(runId);
  }

  /** @returns the run as it is then */
  async #appendTogether(
    runId: string,
    orders: readonly Pending[],
    before: Snapshot | null,
  ): Promise<Snapshot> {
    const { store } = this.#parts;
    const stream = streams.run(runId);
    let known = this.#newest(runId, before) ?? (await this.#load(stream));
    for (let races = 0, lost = 0; ;) {
      const { events, settle, waits, all } = decideAll(stream, orders, known.waits);
      try {
        const { revision, position } =
          events.length === 0
            ? { revision: known.revision, position: null }
            : await store.append(stream, events, known.revision);
        if (events.length > 0) this.#tell(runId, all, Number(revision));
        settle(position);
        return { waits, revision };
      } catch (error) {
        const isLost = error instanceof EventStoreError && error.code === 'OUTCOME_UNKNOWN';
        if (!isLost && !isConflict(error)) throw error;
        if (isLost ? (lost += 1) >= MAX_LOST_ANSWERS : (races += 1) >= MAX_RACES) throw error;
        const isOwn = isLost && (await this.#hasEvent(stream, events));
        if (isOwn) {
          settle(null);
          return await this.#load(stream);
        }
        known = await this.#advance(runId, stream, known);
      }
    }
  }

  /** A run that is executed here learns of it from the log, with its execution. */
  #tell(runId: string, events: readonly RunEvent[], last: number): void {
    const { queue } = this.#parts;
    const run = queue.get(runId);
    if (run === undefined || run.taken) return;
    let revision = last - events.length;
    if (run.revision !== revision) return;
    for (const event of events) queue.applied(run, event, (revision += 1));
  }

  /** The run as the queue knows it, or as it was after the last append here. */
  #newest(runId: string, before: Snapshot | null): Snapshot | null {
    const run = this.#parts.queue.get(runId);
    const queued = run === undefined ? null : { waits: run.waits, revision: run.revision };
    if (queued === null || before === null) return queued ?? before;
    return Number(before.revision) > queued.revision ? before : queued;
  }

  /** After a lost race: what the queue has learned meanwhile, or the events that are missing. */
  async #advance(runId: string, stream: string, known: Snapshot): Promise<Snapshot> {
    const newer = this.#newest(runId, known);
    if (newer !== null && newer.revision !== known.revision) return newer;
    if (known.revision === 'none') return this.#load(stream);
    let { waits, revision } = known;
    const behind = await this.#parts.store.readStream(stream, { from: Number(revision) + 1 });
    for (const event of behind) {
      waits = evolveSlimWaits(waits, event as RunEvent);
      revision = event.revision;
    }
    return { waits, revision };
  }

  async #load(stream: string): Promise<Snapshot> {
    const { state, revision } = await load(this.#parts.store, stream, runFold);
    return { waits: 'request' in state ? state.waits : noWaits, revision };
  }

  async #hasEvent(stream: string, events: readonly NewEvent[]): Promise<boolean> {
    const last = await this.#parts.store.readStream(stream, {
      direction: 'backwards',
      limit: MAX_EVENTS,
    });
    const [first] = events;
    return last.some(({ id }) => id === first?.id);
  }
}

function takeSome(orders: Pending[]): readonly Pending[] {
  let count = 0;
  let characters = 0;
  for (const { size } of orders) {
    characters += size;
    if (count > 0 && (count === MAX_EVENTS || characters > MAX_CHARACTERS)) break;
    count += 1;
  }
  return orders.splice(0, count);
}

/** Each order sees the waits as those before it leave them. */
function decideAll(
  stream: string,
  orders: readonly Pending[],
  before: readonly Wait[],
): {
  readonly all: readonly RunEvent[];
  readonly events: readonly NewEvent[];
  readonly waits: readonly Wait[];
  /** Tells each order how it ended. */
  readonly settle: (position: Position | null) => void;
} {
  let waits = before;
  const all: RunEvent[] = [];
  const events: NewEvent[] = [];
  const ends: ((position: Position | null) => void)[] = [];
  for (const { decide, context, resolve, reject } of orders) {
    try {
      const decided = decide(waits);
      waits = decided.reduce(evolveSlimWaits, waits);
      all.push(...decided);
      events.push(...toNewEvents(stream, decided, context));
      ends.push((position) => resolve(decided.length === 0 ? null : position));
    } catch (error) {
      ends.push(() => reject(error));
    }
  }
  return { all, events, waits, settle: (position) => ends.forEach((end) => end(position)) };
}
