import {
  BEGINNING,
  type EventStore,
  type Position,
  type RecordedEvent,
} from '../../domain/event-store.ts';
import type { DomainEvent } from '../../domain/events/catalogue.ts';
import { load, type Fold, type Loaded } from '../../domain/handle.ts';
import { idOf } from '../../domain/streams.ts';
import { WeighedCache } from './weighed-cache.ts';

/** A cached stream is dropped when this many others were used since. */
const CAPACITY = 50_000;

/** Of all cached states together, in characters of JSON: tasks may have payloads of 256 KiB. */
const WEIGHT = 32 * 1024 * 1024;

/**
 * Folded streams of one kind, in memory, kept up to date by following the log. What was read once costs no
 * further read; a change made by any process is here as soon as the log's subscription brings it.
 *
 * What it says may be a moment old: good for authentication and for pinned facts; whoever decides
 * appends with an expected revision.
 */
export class LiveStreams<S, E extends DomainEvent> {
  private readonly store: EventStore;
  private readonly prefix: string;
  private readonly fold: Fold<S, E>;
  private readonly cached: WeighedCache<Loaded<S>>;
  private readonly loading = new Map<string, { promise: Promise<Loaded<S>>; seen: number }>();
  /** The subscription has brought everything up to here. */
  private reached: Position = BEGINNING;
  /** How often following has begun. */
  private followings = 0;
  /** Called after a cached or arriving stream has changed. */
  onEvent: ((id: string, event: RecordedEvent) => void) | undefined;

  constructor(store: EventStore, prefix: string, fold: Fold<S, E>, capacity = CAPACITY) {
    this.store = store;
    this.prefix = prefix;
    this.fold = fold;
    this.cached = new WeighedCache({ entries: capacity, weight: WEIGHT });
  }

  /**
   * Follows the log from its present end until the signal is aborted. `get` may be called once
   * `started` has been called.
   */
  async follow(signal: AbortSignal, started: () => void = () => {}): Promise<void> {
    const after = await this.store.head();
    // What was read before is not kept up to date by what follows.
    this.cached.clear();
    this.followings += 1;
    this.reached = after;
    started();
    for await (const message of this.store.subscribe({ after, prefixes: [this.prefix], signal })) {
      if (message.kind === 'caught-up') this.reached = message.position;
      else for (const event of message.events) this.take(event);
    }
  }

  /** The stream's state as far as it is known here. */
  get(id: string): Promise<Loaded<S>> | Loaded<S> {
    const known = this.cached.get(id);
    if (known) return known;
    const pending = this.loading.get(id);
    if (pending) return pending.promise;
    const entry = { promise: this.load(id), seen: -1 };
    this.loading.set(id, entry);
    return entry.promise;
  }

  /**
   * Takes over what a command of this process has just made of a stream, so that what comes after it here
   * does not meet the state before it in the moment until the subscription brings the event.
   */
  learn(id: string, { state, revision, position }: Loaded<S>): void {
    if (revision === 'none' || position === null) return;
    // The subscription is further: it has brought this event, and perhaps later ones, that nobody kept.
    if (position <= this.reached) return;
    this.keep(id, { state, revision, position });
  }

  /** What is cached, without reading. */
  peek(id: string): Loaded<S> | undefined {
    return this.cached.peek(id);
  }

  private async load(id: string): Promise<Loaded<S>> {
    try {
      for (;;) {
        const { followings } = this;
        const loaded = await load(this.store, this.prefix + id, this.fold);
        // Begun anew while the read was under way: it may lack what came between.
        if (this.followings !== followings) continue;
        const seen = this.loading.get(id)?.seen ?? -1;
        // An event arrived while the read was under way and is not in it: read again.
        if (loaded.revision !== 'none' ? loaded.revision < seen : seen >= 0) continue;
        return loaded.revision === 'none' ? loaded : this.keep(id, loaded);
      }
    } finally {
      this.loading.delete(id);
    }
  }

  /** Keeps a stream unless it is known further already; gives what is known now. */
  private keep(id: string, loaded: Loaded<S>): Loaded<S> {
    const known = this.cached.peek(id);
    if (known && Number(known.revision) >= Number(loaded.revision)) return known;
    this.cached.set(id, loaded);
    return loaded;
  }

  private take(event: RecordedEvent): void {
    this.reached = event.position;
    const id = idOf(event.stream);
    const pending = this.loading.get(id);
    if (pending) pending.seen = Math.max(pending.seen, event.revision);
    const known = this.cached.peek(id);
    if (known && known.revision !== 'none') {
      if (event.revision === known.revision + 1 && event.fault === undefined) {
        const state = this.fold.evolve(known.state, event as unknown as E, event);
        this.cached.set(id, { state, revision: event.revision, position: event.position });
      } else if (event.revision > known.revision) {
        this.cached.delete(id);
      }
    }
    this.onEvent?.(id, event);
  }
}
