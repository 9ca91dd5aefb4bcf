/** An event as the stand-in keeps it. */
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
  /** The same as `prepare`, but for events of one old transaction, which share where that ends. */
  readonly commit: number;
  /** Where the event itself stands. */
  readonly prepare: number;
}

export type ProposedEvent = Pick<StoredEvent, 'id' | 'type' | 'contentType' | 'data' | 'metadata'>;

/** What a writer expects: -1 no stream, -2 anything, -4 some event; else the last revision. */
export type Expected = number;
export const NO_STREAM = -1;
export const ANY = -2;
export const STREAM_EXISTS = -4;

export type Written =
  | { readonly kind: 'written'; readonly last: StoredEvent; readonly repeated: boolean }
  | { readonly kind: 'wrong-version'; readonly current: number }
  | { readonly kind: 'deleted' };

/** A place in `$all`. */
export interface Place {
  readonly commit: bigint;
  readonly prepare: bigint;
}

/**
 * Beyond every event (`EventNumber.DeletedStream`): the `$tb` of a stream that was deleted softly, and the revision of the
 * event that ends a stream for ever. No number of JavaScript is exactly that, hence the text.
 */
export const FOREVER_TEXT = '9223372036854775807';
export const FOREVER = Number(FOREVER_TEXT);

/**
 * The log of the stand-in, with the rules of a real server: positions are byte offsets with gaps,
 * repeated ids are recognised only where the expectation lies behind the stream, and what is truncated
 * stays in `$all`.
 */
export class Log {
  readonly #all: StoredEvent[] = [];
  readonly #streams = new Map<string, StoredEvent[]>();
  readonly #tombstones = new Set<string>();
  readonly #listeners = new Set<() => void>();
  #offset = 1_000;
  /** Where events begin, or began before a scavenge. */
  readonly #places = new Set<number>([0]);
  /** What is written and not shown yet; undefined while everything is shown at once. */
  #unshown: StoredEvent[] | undefined;

  /**
   * Whether the events of an append stand as those of an explicit transaction, which programs could write over TCP before
   * 24.2. Otherwise each is committed by itself (`PrepareFlags.IsCommitted` in the server's AllReader).
   */
  writesTransactions = false;

  /** Every event, the engine's own included, in the order of `$all`. */
  get all(): readonly StoredEvent[] {
    return this.#all;
  }

  /** Where a page of a read would begin that comes after all there is (`nextPos` in the server's AllReader). */
  get behindAll(): Place {
    return { commit: BigInt(this.#offset), prepare: 0n };
  }

  /** The same log, as a backup has it: with the places and times of its events. It goes on by itself. */
  copy(): Log {
    const copy = new Log();
    copy.#all.push(...this.#all);
    for (const [stream, events] of this.#streams) copy.#streams.set(stream, [...events]);
    for (const stream of this.#tombstones) copy.#tombstones.add(stream);
    for (const place of this.#places) copy.#places.add(place);
    copy.#offset = this.#offset;
    return copy;
  }

  /** Calls back after each write, until the returned function is called. */
  onWrite(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /**
   * From now on what is written is not shown, until {@link show}. A server checks an append against what it has written,
   * and shows what is replicated and indexed besides (`StorageWriterService`, `IndexCommitterService`): in between, it
   * tells of conflicts with what nobody can read.
   */
  holdBack(): void {
    this.#unshown ??= [];
  }

  /** Shows what was held back, and from now on everything at once. */
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
   * Takes what is truncated out of the log, but for the last event of each stream, as a scavenge does; of one that has
   * ended, all but what ended it.
   */
  scavenge(): void {
    const kept = this.#all.filter(({ stream, revision }) => {
      if (this.#tombstones.has(stream)) return revision === FOREVER;
      const isLast = revision === this.currentRevision(stream);
      return isLast || revision >= this.#truncatedBefore(stream);
    });
    this.#all.splice(0, this.#all.length, ...kept);
  }

  /** Hides what is there; the stream may begin again, with the next revision. */
  softDelete(stream: string): void {
    const data = Buffer.from(`{"$tb":${FOREVER_TEXT}}`);
    this.#write(`$$${stream}`, [systemEvent('$metadata', data)]);
  }

  /** Ends a stream for ever, by an event of its own that no reader of the stream sees, and every one of the log. */
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

  /** Whether there is no such stream, as a reader sees it. */
  isGone(stream: string): boolean {
    const first = this.#streams.get(stream)?.[0];
    if (first === undefined || !this.isShown(first)) return true;
    return this.#isDeleted(stream);
  }

  /** The revision of a stream's last event, whether or not it is visible; `NO_STREAM` for none. */
  currentRevision(stream: string): number {
    return (this.#streams.get(stream)?.length ?? 0) - 1;
  }

  /** What a reader of the stream sees, ascending. */
  visible(stream: string): readonly StoredEvent[] {
    const written = this.#streams.get(stream) ?? [];
    const present = written.filter((event) => this.isShown(event));
    const metadata = this.#metadata(stream);
    const count = typeof metadata.$maxCount === 'number' ? metadata.$maxCount : present.length;
    const first = Math.max(this.#truncatedBefore(stream), present.length - count);
    return present.slice(Math.min(first, present.length));
  }

  /** The index in `all` of the first event at or after a place. */
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
   * Whether the log can be read from a place: a server reads what stands there as the length of an event, and makes
   * nothing of a place where none begins (`TFChunkReadSide`), nor backwards of one beyond the end (`TFChunkReader`), nor
   * at all of one that is none (`Position`).
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

  /** Where nothing is expected: known by the ids alone, wherever they stand, and all of them or none. */
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
