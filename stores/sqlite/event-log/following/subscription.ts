import {
  EventStoreError,
  type Position,
  type SubscriptionMessage,
} from '../../../../domain/event-store.ts';
import type { StreamShare } from '../../../../domain/stream-share.ts';
import type { Telemetry } from '../../../../observability/telemetry.ts';
import { formatPosition, parsePosition } from '../position.ts';
import { ReadAhead } from '../reading/read-ahead.ts';
import type { LogReader, Page } from '../reading/reader.ts';
import { Subscriber } from './subscriber.ts';
import type { Tail } from './tail.ts';

/** Milliseconds before reading is tried again after a fault: at first, and at most. */
const FIRST_RETRY = 50;
const LAST_RETRY = 2_000;

/** Positions behind the end of the log from which on a thread that reads ahead is worth its start. */
const FAR_BEHIND = 20_000;

/** What a subscription is made over. */
export interface SubscriptionSource {
  readonly reader: LogReader;
  readonly tail: Tail;
  readonly telemetry: Telemetry;
  /** Aborted when the store is closed. */
  readonly closed: AbortSignal;
  /** What reads ahead, until its thread has gone: whoever closes the store waits for that. */
  readonly ahead: Set<ReadAhead>;
}

/**
 * Iterates over the log from a position: reads the file page by page until it reaches the tail, then takes
 * what the tail hands over. A consumer that is too slow for that falls back to reading the file.
 */
export async function* subscribe(
  source: SubscriptionSource,
  options: {
    readonly after: Position;
    readonly prefixes?: readonly string[];
    readonly share?: StreamShare | undefined;
    readonly ahead?: boolean;
    readonly once?: boolean;
    readonly onPassed?: (position: Position) => void;
    readonly signal: AbortSignal;
  },
): AsyncGenerator<SubscriptionMessage, void, undefined> {
  const { tail, closed } = source;
  const { signal, once = false, onPassed } = options;
  if (options.share !== undefined && !once) {
    throw new TypeError('a share of the streams is read once: what comes is followed whole');
  }
  const subscriber = new Subscriber(parsePosition(options.after), options);
  const mayAhead = options.ahead === true && !signal.aborted;
  const ahead = mayAhead ? aheadOf(source, subscriber) : undefined;
  if (ahead !== undefined) source.ahead.add(ahead);
  const wake = (): void => {
    void ahead?.end();
    subscriber.wake();
  };
  signal.addEventListener('abort', wake);
  closed.addEventListener('abort', wake);
  /** The position of the last `caught-up`. */
  let told = -1;
  try {
    while (!signal.aborted) {
      if (closed.aborted) throw new EventStoreError('UNAVAILABLE', 'the event log is closed');
      const delivery =
        subscriber.take() ?? (await behind(source, subscriber, { signal, ahead, once }));
      if (delivery === undefined) {
        if (!subscriber.live) continue;
        if (told < subscriber.position) {
          told = subscriber.position;
          yield { kind: 'caught-up', position: formatPosition(told) };
          if (once) return;
        } else {
          await subscriber.wait();
        }
        continue;
      }
      if (delivery.events.length > 0) yield { kind: 'events', events: delivery.events };
      else onPassed?.(formatPosition(subscriber.position));
      if (delivery.error !== undefined) throw delivery.error;
    }
  } finally {
    signal.removeEventListener('abort', wake);
    closed.removeEventListener('abort', wake);
    tail.leave(subscriber);
    await ahead?.end();
    if (ahead !== undefined) source.ahead.delete(ahead);
  }
}

/** The next page of the file for a subscriber that is not live, which it may become by that. */
async function behind(
  source: SubscriptionSource,
  subscriber: Subscriber,
  {
    signal,
    ahead,
    once,
  }: {
    readonly signal: AbortSignal;
    readonly ahead: ReadAhead | undefined;
    readonly once: boolean;
  },
): Promise<(Pick<Page, 'events'> & { readonly error: Error | undefined }) | undefined> {
  if (subscriber.live) return undefined;
  // Also between pages, so that reading a long log leaves the event loop to others.
  await new Promise<void>((resolve) => setImmediate(resolve));
  const { prefixes, share } = subscriber;
  const packed = await ahead?.next(subscriber.position);
  const page =
    packed === undefined
      ? await read(source, subscriber, signal, once)
      : // Whether more has come since can't be said here.
        source.reader.unpacked({ ...packed, isLast: false }, { prefixes, share });
  if (page === undefined) return undefined;
  subscriber.position = page.upTo;
  // Before the end, it would be told that this was all; the tail itself knows no end before it has followed.
  if (page.isLast && share === undefined) source.tail.join(subscriber);
  // It ends here, and the tail knows of no shares.
  else if (page.isLast) subscriber.live = true;
  return { events: page.events, error: page.unreadable?.error };
}

/** What reads ahead of a subscriber, until where the log ends now; undefined where that is near. */
function aheadOf(
  { reader, telemetry }: SubscriptionSource,
  { position, prefixes, share }: Subscriber,
): ReadAhead | undefined {
  let until: number;
  try {
    until = reader.head();
  } catch (error) {
    // Reading waits for the log, and says so.
    if (error instanceof EventStoreError && error.code === 'UNAVAILABLE') return undefined;
    throw error;
  }
  if (until - position < FAR_BEHIND) return undefined;
  return new ReadAhead({ file: reader.file, until, prefixes, share }, telemetry);
}

/** Reads a page, unless `once` again and again while the file can't be read; undefined when it was ended meanwhile. */
async function read(
  { reader, closed, telemetry }: SubscriptionSource,
  { position, prefixes, share }: Subscriber,
  signal: AbortSignal,
  once: boolean,
): Promise<Page | undefined> {
  for (let retry = FIRST_RETRY; !signal.aborted && !closed.aborted;) {
    try {
      return reader.page(position, { prefixes, share });
    } catch (error) {
      if (once || !(error instanceof EventStoreError && error.code === 'UNAVAILABLE')) throw error;
      telemetry.log.warn(error.message, { retryMilliseconds: retry });
      await pause(retry, [signal, closed]);
      retry = Math.min(LAST_RETRY, retry * 2);
    }
  }
  return undefined;
}

/** Resolves after a time, or when one of the signals is aborted. */
function pause(milliseconds: number, signals: readonly AbortSignal[]): Promise<void> {
  return new Promise((resolve) => {
    const end = (): void => {
      clearTimeout(timer);
      for (const signal of signals) signal.removeEventListener('abort', end);
      resolve();
    };
    const timer = setTimeout(end, milliseconds);
    for (const signal of signals) signal.addEventListener('abort', end, { once: true });
  });
}
