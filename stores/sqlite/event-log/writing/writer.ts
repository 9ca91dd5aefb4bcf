import type { Worker } from 'node:worker_threads';
import {
  EventStoreError,
  type AppendResult,
  type EncodedEvent,
  type StreamAppend,
} from '../../../../domain/event-store.ts';
import { TransientMap } from '../../../../domain/transient-map.ts';
import type { Telemetry } from '../../../../observability/telemetry.ts';
import { startThread } from '../../read-model/start-thread.ts';
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

/** So many sequences are sent at once: the thread begins with them while this one makes more in the same turn. */
const ENOUGH = 128;

/** Appends that were made durable together, in the order of the log. */
export interface Committed {
  /** Positions without a gap; `last` is that of the last event. */
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

/** A sequence of appends as it would go to the log. */
export interface Rehearsed {
  readonly appends: readonly StreamAppend[];
  readonly encoded: readonly (readonly EncodedEvent[])[];
}

/** Someone waits for an answer. */
interface Pending {
  /** None for what is not an append. */
  readonly appends: readonly StreamAppend[];
  readonly resolve: (results: readonly AppendResult[]) => void;
  readonly reject: (error: EventStoreError) => void;
  /** When it was asked for, by the monotonic clock. */
  readonly since: number;
  /** All of it may be told later. */
  readonly later: boolean;
}

/** This process's writer thread, seen from the main thread. Started again when it dies. */
export class Writer {
  readonly #settings: WriterSettings;
  readonly #telemetry: Telemetry;
  readonly #startThread: (settings: WriterSettings) => Worker;
  readonly #onCommit: (committed: Committed) => void;
  #worker: Worker | undefined;
  #gone: Promise<void> = Promise.resolve();
  readonly #pending = new TransientMap<number, Pending>();
  /** How many of them may be told later. */
  #pendingLater = 0;
  #lastTicket = 0;
  /** What this tick has brought together. */
  readonly #packer = new AppendPacker();
  #flushing = false;
  #closing = false;

  /**
   * @param parts.onCommit called before the callers get their answers
   * @param parts.startThread starts a thread that speaks the protocol; default: `writer-thread`
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

  /** Whether somebody waits for an answer. */
  get isWriting(): boolean {
    return this.#pending.size > 0;
  }

  /** Whether there is something among it that may be told later. */
  get isWritingForLater(): boolean {
    return this.#pendingLater > 0;
  }

  /** Sends a sequence of appends that were encoded already. */
  append(
    appends: readonly StreamAppend[],
    encoded: readonly (readonly EncodedEvent[])[],
  ): Promise<readonly AppendResult[]> {
    return new Promise((resolve, reject) => {
      const ticket = this.#expect(appends, resolve, reject);
      if (ticket === undefined) return;
      this.#packer.add({ ticket, appends: toWrites(appends, encoded) });
      if (this.#packer.size >= ENOUGH) this.#flush();
      if (this.#flushing) return;
      this.#flushing = true;
      setImmediate(() => {
        this.#flushing = false;
        this.#flush();
      });
    });
  }

  /** Sends a truncation; it comes after the appends sent before, and in parts, between which is done what was sent after. */
  async truncate(stream: string, before: number): Promise<void> {
    await this.#ask((ticket) => ({ kind: 'truncate', ticket, stream, before }));
  }

  /**
   * Has sequences of appends written to a log in memory, which is thrown away. Resolves also where that could not be
   * done; the thread says so in the log of the service.
   */
  async rehearse(sequences: readonly Rehearsed[]): Promise<void> {
    const packer = new AppendPacker();
    for (const [ticket, { appends, encoded }] of sequences.entries()) {
      packer.add({ ticket, appends: toWrites(appends, encoded) });
    }
    await this.#ask((ticket) => ({ kind: 'rehearse', ticket, packed: packer.take() }));
  }

  /** Has the WAL's file made as long as it becomes under load, between what is sent meanwhile. */
  async makeRoom(): Promise<void> {
    await this.#ask((ticket) => ({ kind: 'make-room', ticket }));
  }

  /** Resolves when everything sent before has been done, of truncations a part at least. */
  async ping(): Promise<void> {
    await this.#ask((ticket) => ({ kind: 'ping', ticket }));
  }

  /** Finishes what was sent, and ends the thread. */
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

  /** Notes who waits, and keeps the process alive as long as anyone does. */
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
      // Whoever waits has been told the same.
      this.#telemetry.log.error('the event log could not be opened again', { error });
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
          // Until here the start keeps the process alive (also one that is refused, until its end says so);
          // afterwards only what is pending does.
          if (this.#pending.size === 0 && !this.#closing) worker.unref();
        } else if (answer.kind === 'refused') {
          // Nothing can have been written, as nothing was opened.
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
  const writes: WriteAppend[] = [];
  for (const [i, { stream, expected }] of appends.entries()) {
    writes.push({ stream, expected: expectedToNumber(expected), events: encoded[i] ?? [] });
  }
  return writes;
}

function toError(failure: WriteFailure): EventStoreError {
  const { code, message, stream, expected, actual } = failure;
  return new EventStoreError(code, message, {
    ...(stream === undefined ? {} : { stream }),
    ...(expected === undefined ? {} : { expected: expectedFromNumber(expected) }),
    ...(actual === undefined ? {} : { actual: actual === NONE ? 'none' : actual }),
  });
}

/**
 * A small whole number as one: to V8 what comes out of a Float64Array is a double, and so is from then on every field that
 * it is put into, with all that was compiled for whole ones compiled anew.
 */
function wholeNumber(double: number): number {
  const whole = double | 0;
  return whole === double ? whole : double;
}
