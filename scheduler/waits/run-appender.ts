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

/** The most attempts of an append that loses races, and of one whose responses are lost. */
const MAX_RACES = 20;
const MAX_LOST_ANSWERS = 6;

/** Limits of one append: its events, and their characters as JSON. */
const MAX_EVENTS = 100;
const MAX_CHARACTERS = 256 * 1024;

/** An order to append to a run, depending on its waits. */
export interface RunChangeOrder {
  /** @returns the events; empty if there is nothing to do @throws the error with which the order's promise rejects */
  readonly decide: (waits: readonly Wait[]) => readonly RunEvent[];
  readonly context: CommandContext;
  /** The approximate size of the events as JSON. */
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
 * Appends events from outside to runs that wait. Orders for one run share an append, and wait for the previous one. If
 * this process's queue knows the run, its stream is only read after a lost race.
 */
export class RunAppender {
  readonly #parts: AppenderParts;
  /** Pending orders by run. */
  readonly #pending = new Map<string, Pending[]>();

  constructor(parts: AppenderParts) {
    this.#parts = parts;
  }

  /**
   * Decides based on the run's present waits, and appends.
   * @returns the position of the events; null if there was nothing to do
   * @throws errors of `decide`; EventStoreError
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
      // Orders of the same turn of the event loop go together.
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

  /** @returns the run after the append */
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

  /** If the run is executed here, its execution learns of the event from the log. */
  #tell(runId: string, events: readonly RunEvent[], last: number): void {
    const { queue } = this.#parts;
    const run = queue.get(runId);
    if (run === undefined || run.taken) return;
    let revision = last - events.length;
    if (run.revision !== revision) return;
    for (const event of events) queue.applied(run, event, (revision += 1));
  }

  /** The run in the state known to the queue, or after the last append of this process. */
  #newest(runId: string, before: Snapshot | null): Snapshot | null {
    const run = this.#parts.queue.get(runId);
    const queued = run === undefined ? null : { waits: run.waits, revision: run.revision };
    if (queued === null || before === null) return queued ?? before;
    return Number(before.revision) > queued.revision ? before : queued;
  }

  /** After a lost race, uses the newer state of the queue, or reads the missing events. */
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

/** Each order sees the waits in the state after the earlier orders. */
function decideAll(
  stream: string,
  orders: readonly Pending[],
  before: readonly Wait[],
): {
  readonly all: readonly RunEvent[];
  readonly events: readonly NewEvent[];
  readonly waits: readonly Wait[];
  /** Settles the promise of each order. */
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
