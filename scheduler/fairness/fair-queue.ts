import { Heap } from '../heap.ts';
import { Fifo } from './fifo.ts';

/** The owner of waiting work. An agent belongs to one namespace. */
export interface Party {
  readonly namespace: string;
  /** The agent's id. */
  readonly agent: string;
}

/** The scope of a limit. */
export type HeldScope = 'agent' | 'namespace';

export interface FairQueueOptions<T> {
  /** The order of one agent's items. */
  readonly before: (a: T, b: T) => boolean;
  readonly partyOf: (item: T) => Party;
  /** Whether an item still waits. Others are skipped without using a turn. */
  readonly isLive: (item: T) => boolean;
  /** The share of a namespace, 1 or more. Default: 1 for each. */
  readonly weightOf?: ((namespace: string) => number) | undefined;
}

/** The waiting items of one agent. */
interface Flow<T> {
  readonly agent: string;
  readonly lane: Lane<T>;
  readonly items: Heap<T>;
  /** Whether it is in its lane's turns. */
  hasTurn: boolean;
  /** Whether it is skipped until it is released. */
  isHeld: boolean;
}

/** The agents of one namespace. Lanes are never removed: there is one per namespace. */
interface Lane<T> {
  readonly namespace: string;
  readonly flows: Fifo<Flow<T>>;
  /** The agent that had the last turn. */
  served: Flow<T> | null;
  /** How many more items it may have in this turn. */
  deficit: number;
  hasTurn: boolean;
  isHeld: boolean;
}

/**
 * A queue that is fair by deficit round robin (Shreedhar and Varghese 1995). Namespaces take turns by weight, the
 * agents of a namespace take turns within it, and an agent's own items are ordered by `before`. Every item costs one,
 * and a weight is at least one, so a turn always gives an item. Each operation takes O(log n) of an agent's items,
 * regardless of the number of waiting agents.
 */
export class FairQueue<T> {
  readonly #options: FairQueueOptions<T>;
  readonly #lanes = new Map<string, Lane<T>>();
  readonly #flows = new Map<string, Flow<T>>();
  readonly #turns = new Fifo<Lane<T>>();
  /** The namespace that had the last turn. */
  #served: Lane<T> | null = null;
  #size = 0;

  constructor(options: FairQueueOptions<T>) {
    this.#options = options;
  }

  /** The number of items in the queue. It is an upper bound, because items that no longer wait count too. */
  get size(): number {
    return this.#size;
  }

  /** The number of one agent's items in the queue, also an upper bound. */
  sizeOf(agent: string): number {
    return this.#flows.get(agent)?.items.size ?? 0;
  }

  push(item: T): void {
    const flow = this.#flowOf(this.#options.partyOf(item));
    this.#size += 1;
    flow.items.push(item);
    // The new first item may not need what its agent has been waiting for.
    if (flow.isHeld && flow.items.peek() === item) flow.isHeld = false;
    this.#giveTurn(flow);
  }

  /** The item whose turn it is; undefined if no item may go now. */
  peek(): T | undefined {
    for (let lane = this.#turns.first; lane !== undefined; lane = this.#turns.first) {
      const flow = lane.flows.first;
      if (flow === undefined) {
        // An empty lane keeps no credit.
        this.#endTurnOf(lane);
        lane.deficit = 0;
        continue;
      }
      const item = this.#firstOf(flow);
      if (item === undefined) {
        lane.flows.removeFirst();
        flow.hasTurn = false;
        this.#flows.delete(flow.agent);
        continue;
      }
      if (lane.deficit < 1) lane.deficit += this.#options.weightOf?.(lane.namespace) ?? 1;
      return item;
    }
    return undefined;
  }

  /** Takes the item whose turn it is. Its namespace and its agent have then had their turn. */
  pop(): T | undefined {
    const item = this.peek();
    const lane = this.#turns.first;
    const flow = lane?.flows.first;
    if (item === undefined || lane === undefined || flow === undefined) return undefined;
    this.#removeFirst(flow);
    lane.deficit -= 1;
    lane.served = flow;
    this.#served = lane;
    if (flow.items.size > 0) lane.flows.rotate();
    else {
      lane.flows.removeFirst();
      flow.hasTurn = false;
      this.#flows.delete(flow.agent);
    }
    if (lane.deficit < 1) this.#turns.rotate();
    return item;
  }

  /** Removes the item whose turn it is, and does not count that as a turn. */
  drop(): void {
    if (this.peek() === undefined) return;
    const flow = this.#turns.first?.flows.first;
    if (flow !== undefined) this.#removeFirst(flow);
  }

  /** Skips the agent or namespace whose turn it is until `release`. */
  hold(scope: HeldScope): void {
    const lane = this.#turns.first;
    const flow = lane?.flows.first;
    if (lane === undefined || flow === undefined) return;
    if (scope === 'namespace') {
      lane.isHeld = true;
      this.#endTurnOf(lane);
    } else {
      flow.isHeld = true;
      flow.hasTurn = false;
      lane.flows.removeFirst();
    }
  }

  /** The agent and its namespace get turns again. */
  release({ namespace, agent }: Party): void {
    const lane = this.#lanes.get(namespace);
    if (lane?.isHeld === true) {
      lane.isHeld = false;
      this.#giveTurnTo(lane);
    }
    const flow = this.#flows.get(agent);
    if (flow?.isHeld !== true) return;
    flow.isHeld = false;
    this.#giveTurn(flow);
  }

  #flowOf({ namespace, agent }: Party): Flow<T> {
    const known = this.#flows.get(agent);
    if (known !== undefined) return known;
    let lane = this.#lanes.get(namespace);
    if (lane === undefined) {
      const flows = new Fifo<Flow<T>>();
      lane = { namespace, flows, served: null, deficit: 0, hasTurn: false, isHeld: false };
      this.#lanes.set(namespace, lane);
    }
    const items = new Heap<T>(this.#options.before);
    const flow = { agent, lane, items, hasTurn: false, isHeld: false };
    this.#flows.set(agent, flow);
    return flow;
  }

  #giveTurn(flow: Flow<T>): void {
    if (flow.isHeld || flow.hasTurn) return;
    flow.hasTurn = true;
    enter(flow.lane.flows, flow, flow.lane.served);
    this.#giveTurnTo(flow.lane);
  }

  #giveTurnTo(lane: Lane<T>): void {
    if (lane.isHeld || lane.hasTurn) return;
    lane.hasTurn = true;
    enter(this.#turns, lane, this.#served);
  }

  #endTurnOf(lane: Lane<T>): void {
    this.#turns.removeFirst();
    lane.hasTurn = false;
  }

  /** The first live item of an agent; drops the others before it. */
  #firstOf(flow: Flow<T>): T | undefined {
    for (let item = flow.items.peek(); item !== undefined; item = flow.items.peek()) {
      if (this.#options.isLive(item)) return item;
      this.#removeFirst(flow);
    }
    return undefined;
  }

  #removeFirst(flow: Flow<T>): void {
    flow.items.pop();
    this.#size -= 1;
  }
}

/**
 * Adds to the end, but before the entry that has just had its turn. Otherwise, a newcomer might wait until that entry
 * has had a second turn.
 */
function enter<T>(turns: Fifo<T>, newcomer: T, served: T | null): void {
  if (turns.last === served && served !== null) turns.addBeforeLast(newcomer);
  else turns.add(newcomer);
}
