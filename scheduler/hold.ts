import type { EventStore, RecordedEvent } from '../domain/event-store.ts';
import type { OperationsEvent } from '../domain/events/catalogue.ts';
import { load } from '../domain/handle.ts';
import {
  missedOrder,
  operationsFold,
  type MissedOrder,
  type OperationsState,
} from '../domain/operators/operations.ts';
import { streams } from '../domain/streams.ts';

/** The hold as schedulers and workers read it before each step. */
export interface HoldView {
  /** During a hold, nothing fires, no run starts, and neither waits nor waiting runs time out. */
  readonly held: boolean;
  /** The policy that the end of the last hold set for fires that were due before it. */
  readonly missed: MissedOrder | null;
}

/** For a service without operators. */
export const neverHeld: HoldView = { held: false, missed: null };

/** Whether operators hold the service: read once, then followed live. Nothing fires until it is known. */
export class Hold implements HoldView {
  readonly #store: EventStore;
  readonly #listeners = new Set<() => void>();
  #revision = -1;
  #state: OperationsState | null = null;
  held = true;
  missed: MissedOrder | null = null;

  constructor(store: EventStore) {
    this.#store = store;
  }

  /** Calls the listener when the hold starts or ends. */
  onChange(listener: () => void): void {
    this.#listeners.add(listener);
  }

  /** Follows the orders until the signal is aborted. The last known state stays in force while the log is unavailable. */
  async follow(signal: AbortSignal, started: () => void): Promise<void> {
    const stream = streams.operations();
    const after = await this.#store.head();
    const { state, revision } = await load(this.#store, stream, operationsFold);
    this.#take(state, revision === 'none' ? -1 : revision);
    started();
    for await (const message of this.#store.subscribe({ after, prefixes: [stream], signal })) {
      if (message.kind !== 'events') continue;
      for (const event of message.events) this.#apply(event);
    }
  }

  #apply(event: RecordedEvent): void {
    if (event.revision <= this.#revision) return;
    const before = this.#state ?? operationsFold.initial;
    const state = operationsFold.evolve(before, event as unknown as OperationsEvent, event);
    this.#take(state, event.revision);
  }

  #take(state: OperationsState, revision: number): void {
    this.#state = state;
    this.#revision = revision;
    this.missed = missedOrder(state);
    const held = state.hold !== null;
    if (held === this.held) return;
    this.held = held;
    for (const listener of this.#listeners) listener();
  }
}
