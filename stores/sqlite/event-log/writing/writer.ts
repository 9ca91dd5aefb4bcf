import type { Worker } from 'node:worker_threads';
import {
  EventStoreError,
  type AppendResult,
  type EncodedEvent,
  type StreamAppend,
} from '../../../../domain/event-store.ts';
import type { Telemetry } from '../../../../observability/telemetry.ts';
import { startThread } from '../../read-model/start-thread.ts';
import type { RehearsedSequence } from '../burst/rehearsal.ts';
import { formatPosition } from '../position.ts';
import {
  AppendPacker,
  expectedFromNumber,
  expectedToNumber,
  NONE,
  type WriteAppend,
  type WriteFailure,
  type WriterAnswer,
  type WriterRequest,
  type WriterSettings,
} from './protocol.ts';

/** Sequences per message; the thread starts on them while this one produces more in the same turn. */
const MAX_SEQUENCES_PER_MESSAGE = 128;

/** Appends made durable together, in log order. */
export interface Committed {
  /** Positions without gaps; `last` belongs to the last event. */
  readonly first: number;
  readonly last: number;
  readonly createdAt: number;
  readonly appends: readonly CommittedAppend[];
  readonly mayBeToldLater: boolean;
}

export interface CommittedAppend extends Pick<StreamAppend, 'stream' | 'events'> {
  /** Of the last event. */
  readonly revision: number;
  /** Of the last event. */
  readonly position: number;
}

/** A request awaiting its answer. */
interface Pending {
  /** Empty for requests that are not appends. */
  readonly appends: readonly StreamAppend[];
  readonly resolve: (results: readonly AppendResult[]) => void;
  readonly reject: (error: EventStoreError) => void;
  /** Time of the request, by the monotonic clock. */
  readonly since: number;
  /** Whether all of it may be announced later. */
  readonly later: boolean;
}

/** The process's writer thread, seen from the main thread. Restarted when it dies. */
export class Writer {
  readonly #settings: WriterSettings;
  readonly #telemetry: Telemetry;
  readonly #startThread: (settings: WriterSettings) => Worker;
  readonly #onCommit: (committed: Committed) => void;
  #worker: Worker | undefined;
  #gone: Promise<void> = Promise.resolve();
  readonly #pending = new Map<number, Pending>();
  /** How many of them may be announced later. */
  #pendingLater = 0;
  #lastTicket = 0;
  /** Collected during this tick. */
  readonly #packer = new AppendPacker();
  #flushing = false;
  #closing = false;

  /**
   * @param parts.onCommit called before the callers get their answers
   * @param parts.startThread replaces the writer thread in tests
   */
  constructor(parts: {
    readonly settings: WriterSettings;
    readonly telemetry: Telemetry;
    readonly onCommit: (committed: Committed) => void;
    readonly startThread?: (settings: WriterSettings) => Worker;
  }) {
    this.#settings = parts.settings;
    this.#telemetry = parts.telemetry;
    this.#onCommit = parts.onCommit;
    this.#startThread =
      parts.startThread ??
      ((settings) => startThread('./writer-thread', import.meta.url, settings));
  }

  /** Resolves when the thread has opened the log. @throws EventStoreError `UNAVAILABLE`, `NEWER_SCHEMA` */
  start(): Promise<void> {
    return this.#start(this.#settings);
  }

  /** Whether any request awaits its answer. */
  get isWriting(): boolean {
    return this.#pending.size > 0;
  }

  /** Whether any of them may be announced later. */
  get isWritingForLater(): boolean {
    return this.#pendingLater > 0;
  }

  /** Sends a sequence of encoded appends. */
  append(
    appends: readonly StreamAppend[],
    encoded: readonly (readonly EncodedEvent[])[],
  ): Promise<readonly AppendResult[]> {
    return new Promise((resolve, reject) => {
      const ticket = this.#expect(appends, resolve, reject);
      if (ticket === undefined) return;
      this.#packer.add({ ticket, appends: toWrites(appends, encoded) });
      if (this.#packer.size >= MAX_SEQUENCES_PER_MESSAGE) this.#flush();
      if (this.#flushing) return;
      this.#flushing = true;
      setImmediate(() => {
        this.#flushing = false;
        this.#flush();
      });
    });
  }

  /** Truncates after earlier appends, in steps between which later requests are handled. */
  async truncate(stream: string, before: number): Promise<void> {
    await this.#ask((ticket) => ({ kind: 'truncate', ticket, stream, before }));
  }

  /** See `burst/rehearsal.ts`. */
  async rehearse(sequences: readonly RehearsedSequence[]): Promise<void> {
    const packer = new AppendPacker();
    for (const [ticket, { appends, encoded }] of sequences.entries()) {
      packer.add({ ticket, appends: toWrites(appends, encoded) });
    }
    await this.#ask((ticket) => ({ kind: 'rehearse', ticket, packed: packer.take() }));
  }

  /** Resolves when all earlier requests are done; truncations at least in part. */
  async ping(): Promise<void> {
    await this.#ask((ticket) => ({ kind: 'ping', ticket }));
  }

  /** Finishes all requests, and ends the thread. */
  async close(): Promise<void> {
    if (!this.#closing) {
      this.#closing = true;
      this.#flush();
      this.#worker?.ref();
      this.#post({ kind: 'close' });
    }
    await this.#gone;
  }

  #ask(request: (ticket: number) => WriterRequest): Promise<unknown> {
    return new Promise((resolve, reject) => {
      const ticket = this.#expect([], resolve, reject);
      if (ticket === undefined) return;
      this.#flush();
      this.#post(request(ticket));
    });
  }

  /** Registers a request, and keeps the process alive while any is pending. */
  #expect(
    appends: readonly StreamAppend[],
    resolve: Pending['resolve'],
    reject: Pending['reject'],
  ): number | undefined {
    if (this.#closing) {
      reject(new EventStoreError('UNAVAILABLE', 'the event log is closed'));
      return undefined;
    }
    if (this.#worker === undefined) void this.#restart();
    if (this.#pending.size === 0) this.#worker?.ref();
    const ticket = ++this.#lastTicket;
    const later = appends.length > 0 && appends.every(({ mayBeToldLater }) => mayBeToldLater);
    if (later) this.#pendingLater += 1;
    this.#pending.set(ticket, { appends, resolve, reject, since: performance.now(), later });
    return ticket;
  }

  #flush(): void {
    if (this.#packer.size === 0) return;
    const packed = this.#packer.take();
    this.#post({ kind: 'appends', packed }, [packed.numbers.buffer as ArrayBuffer]);
  }

  #post(request: WriterRequest, transfer: ArrayBuffer[] = []): void {
    this.#worker?.postMessage(request, transfer);
  }

  async #restart(): Promise<void> {
    try {
      await this.#start({ ...this.#settings, create: false });
    } catch (error) {
      // The pending requests have received the same error.
      this.#telemetry.log.error('could not reopen the event log', { error });
    }
  }

  #start(settings: WriterSettings): Promise<void> {
    return new Promise((resolve, reject) => {
      const worker = this.#startThread(settings);
      this.#worker = worker;
      let ready = false;
      let end = new EventStoreError('OUTCOME_UNKNOWN', 'the thread that writes the log has died');
      worker.on('message', (answer: WriterAnswer) => {
        if (answer.kind === 'ready') {
          ready = true;
          resolve();
          // The start, even a refused one, keeps the process alive until here; afterwards pending requests do.
          if (this.#pending.size === 0 && !this.#closing) worker.unref();
        } else if (answer.kind === 'refused') {
          // Nothing was opened, so nothing was written.
          end = new EventStoreError(
            answer.incompatible ? 'NEWER_SCHEMA' : 'UNAVAILABLE',
            answer.message,
          );
        } else {
          this.#settle(answer);
        }
      });
      worker.on('error', (cause: unknown) => {
        end = new EventStoreError(
          'OUTCOME_UNKNOWN',
          `the thread that writes the log has died: ${cause instanceof Error ? cause.message : String(cause)}`,
          { cause },
        );
      });
      this.#gone = new Promise((gone) => {
        worker.on('exit', () => {
          if (ready && !this.#closing) this.#telemetry.log.error(end.message);
          this.#worker = undefined;
          this.#rejectAll(end);
          reject(end);
          gone();
        });
      });
    });
  }

  #rejectAll(error: EventStoreError): void {
    const waiting = [...this.#pending.values()];
    this.#pending.clear();
    this.#pendingLater = 0;
    this.#packer.take();
    for (const { appends, reject } of waiting) {
      if (appends.length > 0) this.#noteFailure(error.code);
      reject(error);
    }
  }

  #settle(answer: Exclude<WriterAnswer, { readonly kind: 'ready' | 'refused' }>): void {
    switch (answer.kind) {
      case 'appended':
        this.#settleAppends(answer);
        break;
      case 'done':
        this.#take(answer.ticket)?.resolve([]);
        break;
      case 'failed':
        this.#noteFailure(answer.failure.code);
        this.#take(answer.failure.ticket)?.reject(toError(answer.failure));
        break;
      case 'warning':
        this.#telemetry.log.warn(answer.message);
        break;
    }
    if (this.#pending.size === 0 && !this.#closing) this.#worker?.unref();
  }

  #settleAppends(answer: Extract<WriterAnswer, { readonly kind: 'appended' }>): void {
    const { results, failures, createdAt, timing } = answer;
    const failed = new Map(failures.map((failure) => [failure.ticket, failure]));
    const settled: (() => void)[] = [];
    const written: CommittedAppend[] = [];
    let events = 0;
    let conflicts = 0;
    let mayBeToldLater = true;
    let since = performance.now();
    const now = since;
    for (let at = 0; at < results.length;) {
      const ticket = Number(results[at++]);
      const count = Number(results[at++]);
      const pending = this.#take(ticket);
      const given: AppendResult[] = [];
      for (let i = 0; i < count; i += 1) {
        const duplicate = results[at++] === 1;
        const revision = wholeNumber(Number(results[at++]));
        const position = Number(results[at++]);
        given.push({ revision, position: formatPosition(position), duplicate });
        const append = pending?.appends[i];
        if (duplicate || append === undefined) continue;
        events += append.events.length;
        mayBeToldLater &&= pending?.later === true;
        written.push({ stream: append.stream, events: append.events, revision, position });
      }
      const failure = failed.get(ticket);
      if (pending === undefined) continue;
      if (pending.since < since) since = pending.since;
      if (failure?.code === 'CONFLICT') conflicts += 1;
      else if (failure !== undefined) this.#noteFailure(failure.code);
      settled.push(() =>
        failure === undefined ? pending.resolve(given) : pending.reject(toError(failure)),
      );
    }
    const last = written.at(-1);
    if (last !== undefined) {
      const first = last.position - events + 1;
      const { position } = last;
      this.#onCommit({ first, last: position, createdAt, appends: written, mayBeToldLater });
    }
    this.#telemetry.count('event_log_events_total', {}, events);
    this.#telemetry.count('event_log_conflicts_total', {}, conflicts);
    this.#telemetry.observe('event_store_append_seconds', (now - since) / 1000);
    this.#telemetry.observe('event_log_commit_seconds', timing.writing / 1000);
    this.#telemetry.observe('event_log_lock_wait_seconds', timing.waitedForLock / 1000);
    for (const settle of settled) settle();
  }

  #noteFailure(code: string): void {
    this.#telemetry.count('event_store_failures_total', { code });
  }

  #take(ticket: number): Pending | undefined {
    const pending = this.#pending.get(ticket);
    this.#pending.delete(ticket);
    if (pending?.later) this.#pendingLater -= 1;
    return pending;
  }
}

function toWrites(
  appends: readonly StreamAppend[],
  encoded: readonly (readonly EncodedEvent[])[],
): WriteAppend[] {
  return appends.map(({ stream, expected }, i) => {
    return { stream, expected: expectedToNumber(expected), events: encoded[i] ?? [] };
  });
}

function toError(failure: WriteFailure): EventStoreError {
  const { code, message, stream, expected, actual } = failure;
  return new EventStoreError(code, message, {
    ...(stream === undefined ? {} : { stream }),
    ...(expected === undefined ? {} : { expected: expectedFromNumber(expected) }),
    ...(actual === undefined ? {} : { actual: actual === NONE ? 'none' : actual }),
  });
}

/** An integer from a Float64Array as a V8 small integer. As a double it would deoptimise every field that it reaches. */
function wholeNumber(double: number): number {
  const whole = double | 0;
  return whole === double ? whole : double;
}
