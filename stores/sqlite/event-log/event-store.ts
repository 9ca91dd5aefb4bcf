import { setMaxListeners } from 'node:events';
import {
  EventStoreError,
  type AppendResult,
  type EncodedEvent,
  type EventCodec,
  type EventStore,
  type ExpectedRevision,
  type Landmark,
  type NewEvent,
  type Position,
  type RecordedEvent,
  type StreamAppend,
  type StreamPage,
  type StreamPart,
  type SubscriptionMessage,
} from '../../../domain/event-store.ts';
import type { StreamShare } from '../../../domain/stream-share.ts';
import type { Telemetry } from '../../../observability/telemetry.ts';
import { Announcer } from './following/announcer.ts';
import { openNotices, type Notices } from './following/notices.ts';
import { formatPosition, isPosition, parsePosition } from './position.ts';
import type { ReadAhead } from './reading/read-ahead.ts';
import { LogReader } from './reading/reader.ts';
import { SameFile } from './same-file.ts';
import { logFile } from './schema.ts';
import { subscribe } from './following/subscription.ts';
import { Tail } from './following/tail.ts';
import { Writer, type Rehearsed } from './writing/writer.ts';

/** Most events that one call of `readAll` gives, so that it never holds the event loop for long. */
const MOST_OF_ALL = 1_000;
/** Milliseconds in which the log has to answer a ping. */
const PING_TIMEOUT = 1_900;
/** Milliseconds to wait for another process to let go of the log. */
const LOCK_TIMEOUT = 30_000;
/** Milliseconds between looks at the file where other processes tell of what they write: one may have been killed first. */
const LOOK_WHERE_TOLD = 250;
/** The same where nobody can tell this process anything. */
const LOOK_WHERE_NOT = 100;
/** How the notices of the log begin: up to which position it goes, or {@link LATER}. */
const NOTICE = 'log ';
/** Of what is being written, one is told in another notice. */
const LATER = 'later';

export interface SqliteEventStoreOptions {
  /** The folder of the log; made when it is not there. */
  readonly directory: string;
  readonly codec: EventCodec;
  readonly telemetry: Telemetry;
  /** A connection to the other processes that someone else made, and closes. Default: one of its own. */
  readonly notices?: Notices;
  /** Milliseconds to wait for another process to let go of the log before `UNAVAILABLE`. Default: 30,000. */
  readonly lockTimeout?: number;
  /** To look at a log that is there: nothing is made and nobody told, and appends are refused. Default: false. */
  readonly readOnly?: boolean;
  /** With `readOnly`: others write it meanwhile, so that files may have to be made beside it. Default: false. */
  readonly isWritten?: boolean;
  /** Bytes beyond which the log may not grow; an append that would is `UNAVAILABLE`. Default: the disk. */
  readonly maxBytes?: number;
}

/**
 * Opens the embedded event log: one SQLite file, which any number of processes of a machine may write and
 * follow.
 *
 * @throws EventStoreError `NEWER_SCHEMA` for a log of a newer release, by name; `UNAVAILABLE` when it
 *   can't be opened, saying why
 */
export async function openSqliteEventStore(options: SqliteEventStoreOptions): Promise<EventStore> {
  const store = new SqliteEventStore(options);
  await store.open();
  return store;
}

class SqliteEventStore implements EventStore {
  readonly #options: SqliteEventStoreOptions;
  readonly #writer: Writer;
  readonly #announcer = new Announcer({
    publish: (last) => this.#notices?.publish(`${NOTICE}${last}`),
    publishLater: () => this.#notices?.publish(`${NOTICE}${LATER}`),
    handOn: (committed) => this.#opened?.tail.committed(committed),
    isMoreComing: () => this.#writer.isWritingForLater,
  });
  readonly #closing = new AbortController();
  readonly #ahead = new Set<ReadAhead>();
  /** What this turn has brought together. */
  readonly #rehearsed: Rehearsed[] = [];
  #rehearsing: Promise<void> | undefined;
  #opened: { readonly reader: LogReader; readonly tail: Tail; readonly file: SameFile } | undefined;
  #notices: Notices | undefined;
  #unsubscribe: () => void = () => {};

  constructor(options: SqliteEventStoreOptions) {
    this.#options = options;
    // Each subscription listens: that is no leak.
    setMaxListeners(0, this.#closing.signal);
    this.#writer = new Writer({
      settings: {
        file: logFile(options.directory),
        create: true,
        lockTimeout: options.lockTimeout ?? LOCK_TIMEOUT,
        maxBytes: options.maxBytes,
      },
      telemetry: options.telemetry,
      onCommit: (committed) => this.#announcer.take(committed),
    });
  }

  async open(): Promise<void> {
    const { directory, codec, telemetry, readOnly = false, isWritten = false } = this.#options;
    if (!readOnly) await this.#writer.start();
    try {
      const reader = new LogReader(logFile(directory), codec, readOnly && !isWritten);
      const isWriting = (): boolean => this.#writer.isWriting || this.#announcer.isHolding;
      const notices = (this.#notices =
        this.#options.notices ?? (await openNotices(readOnly ? null : directory)));
      const lookEvery = notices.isReachable ? LOOK_WHERE_TOLD : LOOK_WHERE_NOT;
      const tail = new Tail(reader, { telemetry, isWriting, lookEvery });
      this.#opened = { reader, tail, file: new SameFile(logFile(directory)) };
      this.#unsubscribe = notices.subscribe((message) => {
        if (!message.startsWith(NOTICE)) return;
        const what = message.slice(NOTICE.length);
        if (what === LATER) this.#opened?.tail.willBeNoticed();
        else this.#opened?.tail.noticed(Number(what));
      });
    } catch (error) {
      await this.close();
      throw error;
    }
  }

  append(
    stream: string,
    events: readonly NewEvent[],
    expected: ExpectedRevision,
  ): Promise<AppendResult> {
    return this.#append([{ stream, events, expected }]).then(([result]) => {
      if (result === undefined) throw new Error('an append was answered without a result');
      return result;
    });
  }

  async appendInOrder(appends: readonly StreamAppend[]): Promise<readonly AppendResult[]> {
    return appends.length === 0 ? [] : this.#append(appends);
  }

  prepare(events: readonly NewEvent[]): void {
    for (const event of events) this.#options.codec.prepareEvent?.(event);
  }

  async rehearse(appends: readonly StreamAppend[]): Promise<void> {
    this.#requireWritable();
    const encoded: EncodedEvent[][] = [];
    for (const append of appends) encoded.push(this.#encode(append));
    this.#rehearsed.push({ appends, encoded });
    this.#rehearsing ??= new Promise((resolve) => setImmediate(resolve)).then(() => {
      this.#rehearsing = undefined;
      return this.#writer.rehearse(this.#rehearsed.splice(0));
    });
    await this.#rehearsing;
  }

  async makeRoom(): Promise<void> {
    this.#requireWritable();
    await this.#writer.makeRoom();
  }

  async readStream(stream: string, part: StreamPart = {}): Promise<readonly RecordedEvent[]> {
    return this.#reader().stream(stream, part);
  }

  async readAll(after: Position, limit: number): Promise<readonly RecordedEvent[]> {
    const page = this.#reader().page(parsePosition(after), {}, Math.min(limit, MOST_OF_ALL));
    if (page.events.length === 0 && page.unreadable !== undefined) throw page.unreadable.error;
    return page.events;
  }

  async readAllBackwards(
    before: Position | null,
    limit: number,
  ): Promise<readonly RecordedEvent[]> {
    const end = before === null ? Number.MAX_SAFE_INTEGER : parsePosition(before);
    return this.#reader().before(end, Math.min(limit, MOST_OF_ALL));
  }

  async *subscribe(options: {
    readonly after: Position;
    readonly prefixes?: readonly string[];
    readonly share?: StreamShare | undefined;
    readonly ahead?: boolean;
    readonly once?: boolean;
    readonly onPassed?: (position: Position) => void;
    readonly signal: AbortSignal;
  }): AsyncGenerator<SubscriptionMessage, void, undefined> {
    const { reader, tail } = this.#open();
    const { telemetry } = this.#options;
    const { signal: closed } = this.#closing;
    yield* subscribe({ reader, tail, telemetry, closed, ahead: this.#ahead }, options);
  }

  async listStreams(options: {
    readonly prefix: string;
    readonly after?: string;
    readonly limit: number;
  }): Promise<StreamPage> {
    return this.#reader().streams(options.prefix, options.after ?? '', options.limit);
  }

  async truncate(stream: string, before: number): Promise<void> {
    this.#requireWritable();
    await this.#writer.truncate(stream, before);
  }

  isPosition(text: string): boolean {
    return isPosition(text);
  }

  async head(): Promise<Position> {
    return formatPosition(this.#reader().head());
  }

  async reaches(position: Position): Promise<boolean> {
    return position <= (await this.head());
  }

  async hasHad(landmark: Landmark): Promise<boolean> {
    return this.#reader().hasHad(landmark);
  }

  async ping(): Promise<void> {
    this.#open().file.look();
    this.#reader().head();
    if (this.#options.readOnly === true) return;
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<never>((_, reject) => {
      timer = setTimeout(() => {
        const text = `the event log has not answered within ${PING_TIMEOUT} ms`;
        reject(new EventStoreError('UNAVAILABLE', text));
      }, PING_TIMEOUT);
    });
    try {
      await Promise.race([this.#writer.ping(), late]);
    } finally {
      clearTimeout(timer);
    }
  }

  async close(): Promise<void> {
    this.#closing.abort();
    await Promise.all(Array.from(this.#ahead, (ahead) => ahead.end()));
    await this.#writer.close();
    this.#announcer.releaseAll();
    this.#unsubscribe();
    const opened = this.#opened;
    this.#opened = undefined;
    opened?.tail.close();
    opened?.reader.close();
    if (this.#options.notices === undefined) await this.#notices?.close();
  }

  #append(appends: readonly StreamAppend[]): Promise<readonly AppendResult[]> {
    try {
      this.#requireWritable();
      this.#opened?.file.check();
      const encoded: EncodedEvent[][] = [];
      for (const append of appends) encoded.push(this.#encode(append));
      return this.#writer.append(appends, encoded);
    } catch (error) {
      return Promise.reject(error instanceof Error ? error : new Error(String(error)));
    }
  }

  #encode({ stream, events, expected }: StreamAppend): EncodedEvent[] {
    if (events.length === 0) {
      throw new EventStoreError('INVALID_EVENT', 'an append needs an event', { stream });
    }
    if (typeof expected === 'number' && !(Number.isSafeInteger(expected) && expected >= 0)) {
      const text = `not a revision that a stream can be at: ${expected}`;
      throw new EventStoreError('INVALID_EVENT', text, { stream });
    }
    const encoded: EncodedEvent[] = [];
    for (const event of events) encoded.push(this.#options.codec.encode(event));
    return encoded;
  }

  #requireWritable(): void {
    if (this.#options.readOnly !== true) return;
    throw new EventStoreError('UNAVAILABLE', 'the event log was opened for reading only');
  }

  #open(): { readonly reader: LogReader; readonly tail: Tail; readonly file: SameFile } {
    if (this.#opened === undefined) {
      throw new EventStoreError('UNAVAILABLE', 'the event log is closed');
    }
    return this.#opened;
  }

  #reader(): LogReader {
    return this.#open().reader;
  }
}
