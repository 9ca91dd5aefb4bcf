/** An event as the stand-in stores it. */
export interface StoredEvent {
  readonly id: string;
  readonly stream: string;
  readonly revision: number;
  readonly type: string;
  readonly contentType: string;
  readonly data: Uint8Array;
  readonly metadata: Uint8Array;
  /** Milliseconds since 1970. */
  readonly created: number;
  /** Equal to `prepare`, except for events of one old transaction, which share its end position. */
  readonly commit: number;
  /** The position of the event itself. */
  readonly prepare: number;
}

export type ProposedEvent = Pick<StoredEvent, 'id' | 'type' | 'contentType' | 'data' | 'metadata'>;

/**
 * An append's expectation: -1 no stream, -2 anything, -4 some event; otherwise the last revision.
 */
export type Expected = number;
export const NO_STREAM = -1;
export const ANY = -2;
export const STREAM_EXISTS = -4;

export type Written =
  | { readonly kind: 'written'; readonly last: StoredEvent; readonly repeated: boolean }
  | { readonly kind: 'wrong-version'; readonly current: number }
  | { readonly kind: 'deleted' };

/** A position in `$all`. */
export interface Place {
  readonly commit: bigint;
  readonly prepare: bigint;
}

/**
 * Beyond every event (`EventNumber.DeletedStream`): the `$tb` of a soft-deleted stream, and the
 * revision of the event that deletes a stream permanently. It is a string because no JavaScript
 * number has this value.
 */
export const FOREVER_TEXT = '9223372036854775807';
export const FOREVER = Number(FOREVER_TEXT);

/**
 * The log of the stand-in, with the rules of a real server. Positions are byte offsets with gaps.
 * Repeated ids are recognised only if the expectation is below the stream's revision. Truncated
 * events stay in `$all`.
 */
export class Log {
  readonly #all: StoredEvent[] = [];
  readonly #streams = new Map<string, StoredEvent[]>();
  readonly #tombstones = new Set<string>();
  readonly #listeners = new Set<() => void>();
  #offset = 1_000;
  /** Start positions of events, including scavenged ones. */
  readonly #places = new Set<number>([0]);
  /** Written events that are not visible yet; undefined while everything is visible at once. */
  #unshown: StoredEvent[] | undefined;

  /**
   * Whether the events of an append form an explicit transaction, which programs could write over
   * TCP before 24.2. Otherwise each is committed by itself (`PrepareFlags.IsCommitted` in the
   * server's AllReader).
   */
  writesTransactions = false;

  /** Every event, including the server's own, in the order of `$all`. */
  get all(): readonly StoredEvent[] {
    return this.#all;
  }

  /** A copy like a backup, with the positions and times of its events. It continues separately. */
  copy(): Log {
    const copy = new Log();
    copy.#all.push(...this.#all);
    for (const [stream, events] of this.#streams) copy.#streams.set(stream, [...events]);
    for (const stream of this.#tombstones) copy.#tombstones.add(stream);
    for (const place of this.#places) copy.#places.add(place);
    copy.#offset = this.#offset;
    return copy;
  }

  /** Calls back after each write until the returned function is called. */
  onWrite(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /**
   * Hides further writes until {@link show}. A server checks an append against its written events,
   * but shows only replicated and indexed ones (`StorageWriterService`, `IndexCommitterService`).
   * In between, it reports conflicts with unreadable events.
   */
  holdBack(): void {
    this.#unshown ??= [];
  }

  /** Shows the hidden events, and from now on everything at once. */
  show(): void {
    const written = this.#unshown ?? [];
    this.#unshown = undefined;
    this.#tell(written);
  }

  isShown(event: StoredEvent): boolean {
    return this.#unshown?.includes(event) !== true;
  }

  append(stream: string, events: readonly ProposedEvent[], expected: Expected): Written {
    if (this.#tombstones.has(stream)) return { kind: 'deleted' };
    const present = this.#streams.get(stream) ?? [];
    const current = present.length - 1;
    const verdict = this.#check(stream, present, events, expected);
    if (verdict === 'wrong-version') return { kind: 'wrong-version', current };
    if (verdict !== 'new') return { kind: 'written', last: verdict, repeated: true };
    const beginsAgain = present.length > 0 && this.#isDeleted(stream);
    const last = this.#write(stream, events);
    if (beginsAgain) this.#undelete(stream, current + 1);
    return { kind: 'written', last, repeated: false };
  }

  /**
   * Removes truncated events from the log, except the last event of each stream, as a scavenge
   * does. Of a deleted stream, only the deleting event remains.
   */
  scavenge(): void {
    const kept = this.#all.filter(({ stream, revision }) => {
      if (this.#tombstones.has(stream)) return revision === FOREVER;
      const isLast = revision === this.currentRevision(stream);
      return isLast || revision >= this.#truncatedBefore(stream);
    });
    this.#all.splice(0, this.#all.length, ...kept);
  }

  /** Hides the stream's events; it may start again with the next revision. */
  softDelete(stream: string): void {
    const data = Buffer.from(`{"$tb":${FOREVER_TEXT}}`);
    this.#write(`$$${stream}`, [systemEvent('$metadata', data)]);
  }

  /** Deletes a stream permanently, by an event that is visible in the log but not in the stream. */
  tombstone(stream: string): void {
    this.#tombstones.add(stream);
    const event = {
      ...systemEvent('$streamDeleted', new Uint8Array()),
      contentType: 'application/octet-stream',
    };
    const place = this.#place(event);
    const revision = FOREVER;
    const created = Date.now();
    this.#tell([{ ...event, stream, revision, created, commit: place, prepare: place }]);
  }

  isTombstoned(stream: string): boolean {
    return this.#tombstones.has(stream);
  }

  /** Whether the stream does not exist for a reader. */
  isGone(stream: string): boolean {
    const first = this.#streams.get(stream)?.[0];
    if (first === undefined || !this.isShown(first)) return true;
    return this.#isDeleted(stream);
  }

  /** The revision of a stream's last event, whether or not it is visible; `NO_STREAM` for none. */
  currentRevision(stream: string): number {
    return (this.#streams.get(stream)?.length ?? 0) - 1;
  }

  /** The events that a reader of the stream sees, ascending. */
  visible(stream: string): readonly StoredEvent[] {
    const written = this.#streams.get(stream) ?? [];
    const present = written.filter((event) => this.isShown(event));
    const metadata = this.#metadata(stream);
    const count = typeof metadata.$maxCount === 'number' ? metadata.$maxCount : present.length;
    const first = Math.max(this.#truncatedBefore(stream), present.length - count);
    return present.slice(Math.min(first, present.length));
  }

  /** The index in `all` of the first event at or after a position. */
  indexOf(place: Place): number {
    let low = 0;
    let high = this.#all.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      const event = this.#all[middle];
      if (event !== undefined && isBefore(event, place)) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  /**
   * Whether the log can be read from a position. A server reads its bytes as the length of an
   * event, and rejects positions where none starts (`TFChunkReadSide`). It also rejects backward
   * reads from beyond the end (`TFChunkReader`) and invalid positions (`Position`).
   */
  canBeReadFrom({ commit, prepare }: Place, backwards: boolean): boolean {
    if (commit < prepare || commit > BigInt(FOREVER_TEXT)) return false;
    if (commit >= BigInt(this.#offset)) return !backwards || commit === BigInt(this.#offset);
    return this.#places.has(Number(commit));
  }

  #check(
    stream: string,
    present: readonly StoredEvent[],
    events: readonly ProposedEvent[],
    expected: Expected,
  ): 'new' | 'wrong-version' | StoredEvent {
    const current = present.length - 1;
    if (expected === STREAM_EXISTS) return current >= 0 ? 'new' : 'wrong-version';
    if (expected === ANY) return this.#checkAnywhere(present, events);
    if (expected === current) return 'new';
    if (expected > current) return 'wrong-version';
    const there = events.filter((event, index) => present[expected + 1 + index]?.id === event.id);
    if (there.length === events.length) {
      return present[expected + events.length] as StoredEvent;
    }
    const startsAgain = there.length === 0 && expected === NO_STREAM && this.#isDeleted(stream);
    return startsAgain ? 'new' : 'wrong-version';
  }

  /**
   * Checks an append without an expectation. It is a repetition only if all of its ids are in the
   * stream, wherever they are.
   */
  #checkAnywhere(
    present: readonly StoredEvent[],
    events: readonly ProposedEvent[],
  ): 'new' | 'wrong-version' | StoredEvent {
    let last: StoredEvent | undefined;
    for (const { id } of events) {
      const there = present.find((event) => event.id === id);
      if (there === undefined) return last === undefined ? 'new' : 'wrong-version';
      last = there;
    }
    return last ?? 'new';
  }

  #isDeleted(stream: string): boolean {
    return this.#truncatedBefore(stream) === FOREVER;
  }

  #undelete(stream: string, from: number): void {
    const data = Buffer.from(JSON.stringify({ $tb: from }));
    this.#write(`$$${stream}`, [systemEvent('$metadata', data)]);
  }

  #write(stream: string, events: readonly ProposedEvent[]): StoredEvent {
    const present = this.#streams.get(stream) ?? [];
    this.#streams.set(stream, present);
    const prepares = events.map((event) => this.#place(event));
    const end = prepares.at(-1) as number;
    const created = Date.now();
    const stored = events.map((event, index) => {
      const prepare = prepares[index] as number;
      const commit = this.writesTransactions ? end : prepare;
      return { ...event, stream, revision: present.length + index, created, commit, prepare };
    });
    present.push(...stored);
    this.#tell(stored);
    return present.at(-1) as StoredEvent;
  }

  #place(event: ProposedEvent): number {
    const place = this.#offset;
    this.#places.add(place);
    this.#offset += 97 + event.data.length + event.metadata.length;
    return place;
  }

  #tell(written: readonly StoredEvent[]): void {
    if (this.#unshown !== undefined) {
      this.#unshown.push(...written);
      return;
    }
    this.#all.push(...written);
    for (const listener of [...this.#listeners]) listener();
  }

  #truncatedBefore(stream: string): number {
    const { $tb } = this.#metadata(stream);
    return typeof $tb === 'number' ? $tb : 0;
  }

  #metadata(stream: string): Record<string, unknown> {
    const last = this.#streams.get(`$$${stream}`)?.at(-1);
    if (last === undefined) return {};
    return JSON.parse(Buffer.from(last.data).toString('utf8')) as Record<string, unknown>;
  }
}

function isBefore(event: StoredEvent, place: Place): boolean {
  const commit = BigInt(event.commit);
  return commit === place.commit ? BigInt(event.prepare) < place.prepare : commit < place.commit;
}

function systemEvent(type: string, data: Uint8Array): ProposedEvent {
  const id = crypto.randomUUID();
  return { id, type, contentType: 'application/json', data, metadata: new Uint8Array() };
}
