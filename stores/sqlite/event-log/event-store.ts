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
} from '../../../domain/event-store.ts';
import type { EndListener, LogEngine, LogPage, LogPart } from '../../../domain/log-engine.ts';
import type { Telemetry } from '../../../observability/telemetry.ts';
import { followedLog } from '../../following/followed-log.ts';
import type { FollowerLimits } from '../../following/log-follower.ts';
import { withTimeout } from '../../waiting.ts';
import { CommitAnnouncer } from './burst/commit-announcer.ts';
import { Rehearsal } from './burst/rehearsal.ts';
import { openNotices, type Notices } from './following/notices.ts';
import { Tail } from './following/tail.ts';
import { formatPosition, isPosition, parsePosition } from './position.ts';
import { LogReader } from './reading/reader.ts';
import { LogFileCheck } from './log-file-check.ts';
import { logFile } from './schema.ts';
import { Writer } from './writing/writer.ts';

/** The most events per call of `readPage`, to keep the event loop responsive. */
const MAX_PAGE_EVENTS = 1_000;
/** Milliseconds within which a ping must be answered. */
const PING_TIMEOUT_MS = 1_900;
/** Milliseconds to wait for another process's lock on the log. */
const LOCK_TIMEOUT_MS = 30_000;
/** Milliseconds between polls where other processes notify this one; a notifier may have been killed. */
const POLL_MS_WITH_NOTICES = 250;
/** Milliseconds between polls where nobody can notify this process. */
const POLL_MS_WITHOUT_NOTICES = 100;
/** Prefix of the log's notices, followed by the last position, or {@link LATER}. */
const NOTICE = 'log ';
/** Announces that another notice will follow. */
const LATER = 'later';

export interface SqliteEventStoreOptions {
  /** The log's folder; created if missing. */
  readonly directory: string;
  readonly codec: EventCodec;
  readonly telemetry: Telemetry;
  /** A shared connection to other processes, closed by its owner. Default: the log opens one. */
  readonly notices?: Notices;
  /** Milliseconds to wait for another process's lock before `UNAVAILABLE`. Default: 30,000. */
  readonly lockTimeout?: number;
  /** Creates and changes nothing, and refuses appends. Default: false. */
  readonly readOnly?: boolean;
  /** With `readOnly`: other processes write the log, so files may be created beside it. Default: false. */
  readonly isWritten?: boolean;
  /** Limits of its follower's memory; default: the limits of production. */
  readonly limits?: FollowerLimits;
  /** Largest size of the log in bytes; appends beyond it are `UNAVAILABLE`. Default: no limit. */
  readonly maxBytes?: number;
}

/**
 * Opens the embedded event log: one SQLite file that any number of processes of a machine may write and follow.
 * @throws EventStoreError `NEWER_SCHEMA` for a log of a newer release, `UNAVAILABLE` with the reason
 */
export async function openSqliteEventStore(options: SqliteEventStoreOptions): Promise<EventStore> {
  const store = new SqliteEventStore(options);
  await store.open();
  return followedLog(store, options.telemetry, options.limits);
}

class SqliteEventStore implements LogEngine {
  readonly #options: SqliteEventStoreOptions;
  readonly #writer: Writer;
  readonly #announcer = new CommitAnnouncer({
    publish: (last) => this.#notices?.publish(`${NOTICE}${last}`),
    announce: () => this.#notices?.publish(`${NOTICE}${LATER}`),
    deliver: (committed) => this.#opened?.tail.committed(committed),
    isMoreComing: () => this.#writer.isWritingForLater,
  });
  readonly #rehearsal: Rehearsal;
  #opened:
    | { readonly reader: LogReader; readonly tail: Tail; readonly file: LogFileCheck }
    | undefined;
  #notices: Notices | undefined;
  #unsubscribe: () => void = () => {};

  constructor(options: SqliteEventStoreOptions) {
    this.#options = options;
    this.#writer = new Writer({
      settings: {
        file: logFile(options.directory),
        create: true,
        lockTimeout: options.lockTimeout ?? LOCK_TIMEOUT_MS,
        maxBytes: options.maxBytes,
      },
      telemetry: options.telemetry,
      onCommit: (committed) => this.#announcer.add(committed),
    });
    this.#rehearsal = new Rehearsal((sequences) => this.#writer.rehearse(sequences));
  }

  async open(): Promise<void> {
    const { directory, codec, telemetry, readOnly = false, isWritten = false } = this.#options;
    if (!readOnly) await this.#writer.start();
    try {
      const reader = new LogReader(logFile(directory), codec, readOnly && !isWritten);
      const isWriting = (): boolean => this.#writer.isWriting || this.#announcer.isHolding;
      const notices = (this.#notices =
        this.#options.notices ?? (await openNotices(readOnly ? null : directory)));
      const pollInterval = notices.isReachable ? POLL_MS_WITH_NOTICES : POLL_MS_WITHOUT_NOTICES;
      const tail = new Tail(reader, { telemetry, isWriting, pollInterval });
      this.#opened = { reader, tail, file: new LogFileCheck(logFile(directory)) };
      this.#unsubscribe = notices.subscribe((message) => {
        if (!message.startsWith(NOTICE)) return;
        const what = message.slice(NOTICE.length);
        if (what === LATER) this.#opened?.tail.expectNotice();
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
    const encoded = appends.map((append) => this.#encode(append));
    await this.#rehearsal.run({ appends, encoded });
  }

  async readStream(stream: string, part: StreamPart = {}): Promise<readonly RecordedEvent[]> {
    return this.#reader().stream(stream, part);
  }

  async readPage({ after, prefixes, share, limit }: LogPart): Promise<LogPage> {
    const most = limit === undefined ? undefined : Math.min(limit, MAX_PAGE_EVENTS);
    return this.#reader().page(parsePosition(after), { prefixes, share }, most);
  }

  async readAllBackwards(
    before: Position | null,
    limit: number,
  ): Promise<readonly RecordedEvent[]> {
    const end = before === null ? Number.MAX_SAFE_INTEGER : parsePosition(before);
    return this.#reader().before(end, Math.min(limit, MAX_PAGE_EVENTS));
  }

  async followEnd(listener: EndListener, signal: AbortSignal): Promise<void> {
    await this.#open().tail.follow(listener, signal);
  }

  async listStreams(options: Parameters<EventStore['listStreams']>[0]): Promise<StreamPage> {
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
    const { reader, tail } = this.#open();
    const head = reader.head();
    // This does not wait for events that another process has just written.
    tail.hasReached(head);
    return formatPosition(head);
  }

  async reaches(position: Position): Promise<boolean> {
    return position <= (await this.head());
  }

  async hasHad(landmark: Landmark): Promise<boolean> {
    return this.#reader().hasHad(landmark);
  }

  async ping(): Promise<void> {
    this.#open().file.checkNow();
    this.#reader().head();
    if (this.#options.readOnly === true) return;
    const answered = await withTimeout(
      this.#writer.ping().then(() => true),
      PING_TIMEOUT_MS,
    );
    if (answered === undefined) {
      const text = `the event log has not answered within ${PING_TIMEOUT_MS} ms`;
      throw new EventStoreError('UNAVAILABLE', text);
    }
  }

  async close(): Promise<void> {
    await this.#writer.close();
    this.#announcer.releaseAll();
    this.#unsubscribe();
    const opened = this.#opened;
    this.#opened = undefined;
    opened?.reader.close();
    if (this.#options.notices === undefined) await this.#notices?.close();
  }

  #append(appends: readonly StreamAppend[]): Promise<readonly AppendResult[]> {
    try {
      this.#requireWritable();
      this.#opened?.file.check();
      const encoded = appends.map((append) => this.#encode(append));
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
      const text = `not a valid revision: ${expected}`;
      throw new EventStoreError('INVALID_EVENT', text, { stream });
    }
    return events.map((event) => this.#options.codec.encode(event));
  }

  #requireWritable(): void {
    if (this.#options.readOnly !== true) return;
    throw new EventStoreError('UNAVAILABLE', 'the event log was opened for reading only');
  }

  #open(): { readonly reader: LogReader; readonly tail: Tail; readonly file: LogFileCheck } {
    if (this.#opened === undefined) {
      throw new EventStoreError('UNAVAILABLE', 'the event log is closed');
    }
    return this.#opened;
  }

  #reader(): LogReader {
    return this.#open().reader;
  }
}
