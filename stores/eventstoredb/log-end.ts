import { BEGINNING, type EventCodec, type Position } from '../../domain/event-store.ts';
import type { EndListener, LogEntry } from '../../domain/log-engine.ts';
import { pause, pauseAfter, unlessAborted } from '../waiting.ts';
import { entryOf, isSystemEvent, type ClientEvent } from './client-event.ts';
import { describeError } from './connecting/client-errors.ts';
import { Feed } from './feed.ts';
import type { LogParts } from './log-parts.ts';
import { laterPosition, toPosition, isKnown } from './position.ts';
import { SilenceCheck } from './silence-check.ts';

/** The message when a subscription has to be replaced. */
const LOST = 'subscription lost; subscribing again';

/**
 * Follows the end of the log: see the port's `followEnd`. Each client subscription that ends is replaced by another, from
 * the last event delivered.
 */
export class LogEnd {
  readonly #log: LogParts;
  readonly #codec: EventCodec;
  readonly #listener: EndListener;
  readonly #signal: AbortSignal;
  /** Everything up to here was delivered; undefined before the end of the log is known. */
  #position: Position | undefined;
  /** Failed attempts since the last delivery. */
  #failures = 0;
  /** The error of a read that made the last attempt fail. */
  #error: unknown;

  constructor(log: LogParts, codec: EventCodec, listener: EndListener, signal: AbortSignal) {
    this.#log = log;
    this.#codec = codec;
    this.#listener = listener;
    this.#signal = signal;
  }

  /** Resolves when the signal is aborted. @throws EventStoreError `UNAVAILABLE` for a server that sends no positions */
  async follow(): Promise<void> {
    const { timings, telemetry } = this.#log;
    while (!this.#signal.aborted) {
      const reason = await this.#attempt();
      if (reason === undefined) return;
      this.#failures += 1;
      telemetry.count('eventstore_resubscriptions_total');
      // A failed read has its own reason.
      telemetry.failures.failed(LOST, this.#error ?? new Error(reason), { after: this.#position });
      this.#error = undefined;
      const { firstPauseMs, longestResubscribePauseMs } = timings;
      await pause(
        pauseAfter(this.#failures, firstPauseMs, longestResubscribePauseMs),
        this.#signal,
      );
    }
  }

  /** One client subscription. Returns why it was lost, or undefined when it is to end. */
  async #attempt(): Promise<string | undefined> {
    const { connection, identity, telemetry } = this.#log;
    let from: Position | undefined;
    try {
      from = await unlessAborted(this.#whereFrom(), this.#signal);
    } catch (error) {
      this.#error = error;
      return describeError(error);
    }
    if (from === undefined) return undefined;
    telemetry.count('eventstore_calls_total', { call: 'subscribe' });
    const feed = new Feed(connection, from, () => identity.connectionLost());
    const wake = (): void => feed.wake();
    this.#signal.addEventListener('abort', wake);
    try {
      return await this.#receive(feed);
    } finally {
      this.#signal.removeEventListener('abort', wake);
      feed.close();
    }
  }

  /** Where to subscribe. At first that is the end of the log, which the listener receives. @throws EventStoreError */
  async #whereFrom(): Promise<Position> {
    const { identity, reader } = this.#log;
    await identity.check();
    if (this.#position !== undefined) return reader.subscribablePosition(this.#position);
    const end = await reader.end();
    if (!this.#signal.aborted) {
      this.#position = end;
      this.#listener.begins(end);
    }
    return end;
  }

  /** Delivers the events of one feed. Returns why it was lost, or undefined when it is to end. */
  async #receive(feed: Feed): Promise<string | undefined> {
    const check = new SilenceCheck(this.#log, this.#position ?? BEGINNING, () => feed.wake());
    while (!this.#signal.aborted) {
      const taken = feed.take();
      if (taken.length > 0) {
        this.#deliver(taken);
        check.passed(this.#position ?? BEGINNING);
        continue;
      }
      if (feed.ended !== undefined) return feed.ended;
      const wait = check.look();
      if (check.failure !== undefined) {
        this.#error = check.failure;
        return describeError(check.failure);
      }
      if (check.isSilent) return 'an event of the log did not arrive';
      if (check.isComplete) this.#isAlive();
      this.#passTo(check.nothingUpTo);
      await feed.wait(wait);
    }
    return undefined;
  }

  /** Notes that the client's subscription works. */
  #isAlive(): void {
    if (this.#failures > 0) this.#log.telemetry.failures.worked(LOST);
    this.#failures = 0;
  }

  /** Moves on past the engine's own events. */
  #passTo(position: Position): void {
    const before = this.#position ?? BEGINNING;
    if (position <= before) return;
    this.#position = position;
    this.#listener.grows({ entries: [], upTo: position });
  }

  #deliver(taken: readonly ClientEvent[]): void {
    const before = this.#position ?? BEGINNING;
    let upTo = before;
    const entries: LogEntry[] = [];
    for (const event of taken) {
      const position = isKnown(event.position) ? toPosition(event.position) : undefined;
      // Never deliver an event twice, however the server interprets "after".
      if (position !== undefined && position <= upTo) continue;
      if (!isSystemEvent(event)) entries.push(entryOf(event, this.#codec));
      upTo = laterPosition(upTo, position ?? upTo);
      this.#log.highWaterMark.noteEvent(upTo, event.id);
    }
    if (upTo === before) return;
    this.#position = upTo;
    this.#isAlive();
    this.#listener.grows({ entries, upTo });
  }
}
