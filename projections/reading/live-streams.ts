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

const MAX_STREAMS = 50_000;

/** Characters of JSON of all cached states together: tasks may have payloads of 256 KiB. */
const MAX_WEIGHT = 32 * 1024 * 1024;

/**
 * Folded streams of one kind, cached in memory and kept up to date by following the log. A stream is read once; changes
 * by any process arrive with the subscription.
 *
 * States may be slightly stale: fine for authentication and pinned facts. A decision appends with an expected revision.
 */
export class LiveStreams<S, E extends DomainEvent> {
  readonly #store: EventStore;
  readonly #prefix: string;
  readonly #fold: Fold<S, E>;
  readonly #keepsMissing: boolean;
  readonly #cached: WeighedCache<Loaded<S>>;
  readonly #loading = new Map<string, { promise: Promise<Loaded<S>>; seen: number }>();
  /** The subscription has delivered everything up to here. */
  #reached: Position = BEGINNING;
  readonly #listeners: ((id: string | null) => void)[] = [];
  /** How often {@link follow} has started. */
  #followings = 0;

  /**
   * @param options.capacity how many streams are cached. Default: 50,000
   * @param options.keepsMissing whether it is also cached that a stream has no events, for {@link getOrMissing}. Not for
   *   streams whose ids anybody can choose: they would take the place of others. Default: false
   */
  constructor(
    store: EventStore,
    prefix: string,
    fold: Fold<S, E>,
    options: { readonly capacity?: number; readonly keepsMissing?: boolean } = {},
  ) {
    this.#store = store;
    this.#prefix = prefix;
    this.#fold = fold;
    this.#keepsMissing = options.keepsMissing ?? false;
    this.#cached = new WeighedCache({
      entries: options.capacity ?? MAX_STREAMS,
      weight: MAX_WEIGHT,
    });
  }

  /**
   * Follows the log from its current end until the signal is aborted. `get` may be called once `started` was called.
   */
  async follow(signal: AbortSignal, started: () => void = () => {}): Promise<void> {
    const after = await this.#store.head();
    // Nothing has kept the earlier states up to date.
    this.#cached.clear();
    this.#followings += 1;
    this.#reached = after;
    started();
    this.#notify(null);
    for await (const message of this.#store.subscribe({
      after,
      prefixes: [this.#prefix],
      signal,
    })) {
      if (message.kind === 'caught-up') this.#reached = message.position;
      else for (const event of message.events) this.#take(event);
    }
  }

  /** The cached state of the stream; read from the log if it is not cached, or only cached as missing. */
  get(id: string): Promise<Loaded<S>> | Loaded<S> {
    const known = this.#cached.get(id);
    if (known !== undefined && known.revision !== 'none') return known;
    return this.#read(id);
  }

  /**
   * Like {@link get}, but also returns from memory that a stream has no events. It may then miss a stream that another
   * process has just begun. For facts that every run needs, such as whether its owner is disabled.
   */
  getOrMissing(id: string): Promise<Loaded<S>> | Loaded<S> {
    return this.#cached.get(id) ?? this.#read(id);
  }

  #read(id: string): Promise<Loaded<S>> {
    const pending = this.#loading.get(id);
    if (pending) return pending.promise;
    const entry = { promise: this.#load(id), seen: -1 };
    this.#loading.set(id, entry);
    return entry.promise;
  }

  /**
   * Takes over the state that a command of this process has just produced, before the subscription delivers the event.
   */
  learn(id: string, { state, revision, position }: Loaded<S>): void {
    if (revision === 'none' || position === null) return;
    // The subscription has already delivered this event, and perhaps later ones that were not cached.
    if (position <= this.#reached) return;
    this.#keep(id, { state, revision, position });
  }

  /**
   * Calls the listener with the id of each stream that changes, or with null if any stream may have changed unnoticed.
   */
  onChange(listener: (id: string | null) => void): void {
    this.#listeners.push(listener);
  }

  /** The cached state, without reading. */
  peek(id: string): Loaded<S> | undefined {
    return this.#cached.peek(id);
  }

  async #load(id: string): Promise<Loaded<S>> {
    try {
      for (;;) {
        const followings = this.#followings;
        const loaded = await load(this.#store, this.#prefix + id, this.#fold);
        // Following restarted during the read: events in between may be missing.
        if (this.#followings !== followings) continue;
        const seen = this.#loading.get(id)?.seen ?? -1;
        // An event arrived during the read, and the state read does not contain it: read again.
        if (loaded.revision !== 'none' ? loaded.revision < seen : seen >= 0) continue;
        const isKept = loaded.revision !== 'none' || this.#keepsMissing;
        return isKept ? this.#keep(id, loaded) : loaded;
      }
    } finally {
      this.#loading.delete(id);
    }
  }

  /** Caches a state unless a newer one is cached. @returns the newer of the two */
  #keep(id: string, loaded: Loaded<S>): Loaded<S> {
    const known = this.#cached.peek(id);
    if (known && lastOf(known) >= lastOf(loaded)) return known;
    this.#cached.set(id, loaded);
    return loaded;
  }

  #take(event: RecordedEvent): void {
    this.#reached = event.position;
    const id = idOf(event.stream);
    const pending = this.#loading.get(id);
    if (pending) pending.seen = Math.max(pending.seen, event.revision);
    const known = this.#cached.peek(id);
    if (known && event.revision > lastOf(known)) {
      if (event.revision === lastOf(known) + 1 && event.fault === undefined) {
        const state = this.#fold.evolve(known.state, event as unknown as E, event);
        this.#cached.set(id, { state, revision: event.revision, position: event.position });
      } else {
        this.#cached.delete(id);
      }
    }
    this.#notify(id);
  }

  #notify(id: string | null): void {
    for (const listener of this.#listeners) listener(id);
  }
}

/** The revision of a stream's last event; -1 without any. */
const lastOf = ({ revision }: Loaded<unknown>): number => (revision === 'none' ? -1 : revision);
