import type { Worker } from 'node:worker_threads';
import {
  EventStoreError,
  type AppendResult,
  type EncodedEvent,
  type StreamAppend,
} from '../../../../domain/event-store.ts';
import type { Telemetry } from '../../../../observability/telemetry.ts';
import { startThread } from '../../start-thread.ts';
import type { RehearsedSequence } from '../burst/rehearsal.ts';
import { formatPosition } from '../position.ts';
import type {
  WriteFailure,
  WriterAnswer,
  WriterRequest,
  WriterSettings,
  WriteSequence,
  WrittenAppend,
} from './protocol.ts';

/** The messages that report failures. */
const NOT_REOPENED = 'could not reopen the event log';
const DIED = 'the thread that writes the log has died; restarting it for the next request';

/** Sequences per message; the thread starts on them while this one produces more in the same turn. */
const MAX_SEQUENCES_PER_MESSAGE = 128;

/** Appends made durable together, in log order. */
export interface Committed {
  /** Positions without gaps; `last` belongs to the last event. */
  readonly first: number;
  readonly last: number;
  readonly createdAt: number;
  readonly appends: readonly CommittedAppend[];
  readonly mayAnnounceLater: boolean;
}

export interface CommittedAppend extends Pick<StreamAppend, 'stream' | 'events'> {
  /** The approximate size of the events. */
  readonly bytes: number;
  /** The revision of the last event. */
  readonly revision: number;
  /** The position of the last event. */
  readonly position: number;
}

/** A request awaiting its answer. */
interface Pending {
  /** Empty for requests that are not appends. */
  readonly appends: readonly StreamAppend[];
  /** The approximate size of each append. */
  readonly bytes: readonly number[];
  readonly resolve: (results: readonly AppendResult[]) => void;
  readonly reject: (error: EventStoreError) => void;
  /** Time of the request, by the monotonic clock. */
  readonly since: number;
  /** Whether all of it may be announced later. */
  readonly mayAnnounceLater: boolean;
}

/** The process's writer thread, seen from the main thread. Restarted when it dies. */
export class Writer {
  readonly #settings: WriterSettings;
  readonly #telemetry: Telemetry;
  readonly #startThread: (settings: WriterSettings) => Worker;
  readonly #onCommit: (committed: Committed) => void;
  #worker: Worker | undefined;
  #exited: Promise<void> = Promise.resolve();
  readonly #pending = new Map<number, Pending>();
  /** How many pending requests may be announced later. */
  #pendingLater = 0;
  #lastTicket = 0;
  /** Collected during this tick. */
  #sequences: WriteSequence[] = [];
  #flushing = false;
  #closing = false;
  /** Whether a thread has died since the last append. */
  #hasDied = false;

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

  /** Whether any pending request may be announced later. */
  get isWritingForLater(): boolean {
    return this.#pendingLater > 0;
  }

  /** Sends a sequence of encoded appends. */
  append(
    appends: readonly StreamAppend[],
    encoded: readonly (readonly EncodedEvent[])[],
  ): Promise<readonly AppendResult[]> {
    return new Promise((resolve, reject) => {
      const bytes = encoded.map(sizeOf);
      const ticket = this.#expect({ appends, bytes, resolve, reject });
      if (ticket === undefined) return;
      this.#sequences.push(toSequence(ticket, { appends, encoded }));
      if (this.#sequences.length >= MAX_SEQUENCES_PER_MESSAGE) this.#flush();
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
    await this.#request((ticket) => ({ kind: 'truncate', ticket, stream, before }));
  }

  /** See `burst/rehearsal.ts`. */
  async rehearse(sequences: readonly RehearsedSequence[]): Promise<void> {
    const written = sequences.map((sequence, n) => toSequence(n, sequence));
    await this.#request((ticket) => ({ kind: 'rehearse', ticket, sequences: written }));
  }

  /** Resolves when all earlier requests are done; truncations at least in part. */
  async ping(): Promise<void> {
    await this.#request((ticket) => ({ kind: 'ping', ticket }));
  }

  /** Finishes all requests, and ends the thread. */
  async close(): Promise<void> {
    if (!this.#closing) {
      this.#closing = true;
      this.#flush();
      this.#worker?.ref();
      this.#post({ kind: 'close' });
    }
    await this.#exited;
  }

  #request(request: (ticket: number) => WriterRequest): Promise<unknown> {
    return new Promise((resolve, reject) => {
      const ticket = this.#expect({ appends: [], bytes: [], resolve, reject });
      if (ticket === undefined) return;
      this.#flush();
      this.#post(request(ticket));
    });
  }

  /** Registers a request, and keeps the process alive while any is pending. */
  #expect(expected: Pick<Pending, 'appends' | 'bytes' | 'resolve' | 'reject'>): number | undefined {
    const { appends } = expected;
    if (this.#closing) {
      expected.reject(new EventStoreError('UNAVAILABLE', 'the event log is closed'));
      return undefined;
    }
    if (this.#worker === undefined) void this.#restart();
    if (this.#pending.size === 0) this.#worker?.ref();
    const ticket = ++this.#lastTicket;
    const mayAnnounceLater =
      appends.length > 0 && appends.every(({ mayAnnounceLater }) => mayAnnounceLater);
    if (mayAnnounceLater) this.#pendingLater += 1;
    this.#pending.set(ticket, { ...expected, since: performance.now(), mayAnnounceLater });
    return ticket;
  }

  #flush(): void {
    if (this.#sequences.length === 0) return;
    this.#post({ kind: 'appends', sequences: this.#sequences });
    this.#sequences = [];
  }

  #post(request: WriterRequest): void {
    this.#worker?.postMessage(request);
  }

  async #restart(): Promise<void> {
    try {
      await this.#start({ ...this.#settings, create: false });
      this.#telemetry.failures.worked(NOT_REOPENED);
    } catch (error) {
      // The pending requests have received the same error.
      this.#telemetry.failures.failed(NOT_REOPENED, error);
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
      this.#exited = new Promise((exited) => {
        worker.on('exit', () => {
          if (ready && !this.#closing) {
            this.#hasDied = true;
            this.#telemetry.failures.failed(DIED, end);
          }
          this.#worker = undefined;
          this.#rejectAll(end);
          reject(end);
          exited();
        });
      });
    });
  }

  #rejectAll(error: EventStoreError): void {
    const waiting = [...this.#pending.values()];
    this.#pending.clear();
    this.#pendingLater = 0;
    this.#sequences = [];
    for (const { appends, reject } of waiting) {
      if (appends.length > 0) this.#countFailure(error.code);
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
        this.#countFailure(answer.failure.code);
        this.#take(answer.ticket)?.reject(toError(answer.failure));
        break;
      case 'warning':
        this.#telemetry.log.warn(answer.message);
        break;
    }
    if (this.#pending.size === 0 && !this.#closing) this.#worker?.unref();
  }

  #settleAppends(answer: Extract<WriterAnswer, { readonly kind: 'appended' }>): void {
    const { results, createdAt, timing } = answer;
    if (this.#hasDied) {
      this.#hasDied = false;
      this.#telemetry.failures.worked(DIED);
    }
    const settled: (() => void)[] = [];
    const written: CommittedAppend[] = [];
    let events = 0;
    let conflicts = 0;
    let mayAnnounceLater = true;
    const now = performance.now();
    let since = now;
    for (const { ticket, appended, failure } of results) {
      const pending = this.#take(ticket);
      if (pending === undefined) continue;
      for (const [i, { duplicate, revision, position }] of appended.entries()) {
        const append = pending.appends[i];
        if (duplicate || append === undefined) continue;
        events += append.events.length;
        mayAnnounceLater &&= pending.mayAnnounceLater;
        const { stream, events: those } = append;
        written.push({ stream, events: those, bytes: pending.bytes[i] ?? 0, revision, position });
      }
      since = Math.min(since, pending.since);
      if (failure?.code === 'CONFLICT') conflicts += 1;
      else if (failure !== undefined) this.#countFailure(failure.code);
      settled.push(() => {
        if (failure !== undefined) pending.reject(toError(failure));
        else pending.resolve(appended.map(toResult));
      });
    }
    const last = written.at(-1);
    if (last !== undefined) {
      const first = last.position - events + 1;
      const { position } = last;
      this.#onCommit({ first, last: position, createdAt, appends: written, mayAnnounceLater });
    }
    this.#telemetry.count('event_log_events_total', {}, events);
    this.#telemetry.count('event_log_conflicts_total', {}, conflicts);
    this.#telemetry.observe('event_store_append_seconds', (now - since) / 1000);
    this.#telemetry.observe('event_log_commit_seconds', timing.writing / 1000);
    this.#telemetry.observe('event_log_lock_wait_seconds', timing.waitedForLock / 1000);
    for (const settle of settled) settle();
  }

  #countFailure(code: string): void {
    this.#telemetry.count('event_store_failures_total', { code });
  }

  #take(ticket: number): Pending | undefined {
    const pending = this.#pending.get(ticket);
    this.#pending.delete(ticket);
    if (pending?.mayAnnounceLater) this.#pendingLater -= 1;
    return pending;
  }
}

function sizeOf(events: readonly EncodedEvent[]): number {
  return events.reduce((bytes, { data, metadata }) => bytes + data.length + metadata.length, 0);
}

function toSequence(ticket: number, { appends, encoded }: RehearsedSequence): WriteSequence {
  const writes = appends.map(({ stream, expected }, i) => {
    return { stream, expected, events: encoded[i] ?? [] };
  });
  return { ticket, appends: writes };
}

function toResult({ revision, position, duplicate }: WrittenAppend): AppendResult {
  return { revision, position: formatPosition(position), duplicate };
}

function toError({ code, message, ...details }: WriteFailure): EventStoreError {
  return new EventStoreError(code, message, details);
}
