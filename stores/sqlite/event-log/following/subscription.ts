import {
  EventStoreError,
  type EventStore,
  type SubscriptionMessage,
} from '../../../../domain/event-store.ts';
import type { Telemetry } from '../../../../observability/telemetry.ts';
import { pause } from '../../../waiting.ts';
import { formatPosition, parsePosition } from '../position.ts';
import type { LogReader, Page } from '../reading/reader.ts';
import { Subscriber } from './subscriber.ts';
import type { Tail } from './tail.ts';

/** What a failure is reported as. */
const UNREADABLE = 'could not read the event log; retrying';

/** Milliseconds before reading is retried after a fault: at first, and at most. */
const FIRST_RETRY_MS = 50;
const MAX_RETRY_MS = 2_000;

export type SubscribeOptions = Parameters<EventStore['subscribe']>[0];

/** What a subscription reads from. */
interface SubscriptionSource {
  readonly reader: LogReader;
  readonly tail: Tail;
  readonly telemetry: Telemetry;
  /** Aborted when the store is closed. */
  readonly closed: AbortSignal;
}

/**
 * Iterates over the log from a position: reads the file page by page until it reaches the tail, then receives from the
 * tail. A consumer that is too slow for that returns to reading the file.
 */
export async function* subscribe(
  source: SubscriptionSource,
  options: SubscribeOptions,
): AsyncGenerator<SubscriptionMessage, void, undefined> {
  const { tail, closed } = source;
  const { signal, once = false, onPassed } = options;
  if (options.share !== undefined && !once) {
    throw new TypeError('a share of the streams can only be read once, not followed');
  }
  const subscriber = new Subscriber(parsePosition(options.after), options);
  const wake = (): void => subscriber.wake();
  signal.addEventListener('abort', wake);
  closed.addEventListener('abort', wake);
  /** The position of the last `caught-up`. */
  let announced = -1;
  try {
    while (!signal.aborted) {
      if (closed.aborted) throw new EventStoreError('UNAVAILABLE', 'the event log is closed');
      const delivery = subscriber.take() ?? (await readBehind(source, subscriber, signal, once));
      if (delivery === undefined) {
        if (!subscriber.live) continue;
        if (announced < subscriber.position) {
          announced = subscriber.position;
          yield { kind: 'caught-up', position: formatPosition(announced) };
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
  }
}

/** The next page of the file for a subscriber behind the tail, which may reach it. */
async function readBehind(
  source: SubscriptionSource,
  subscriber: Subscriber,
  signal: AbortSignal,
  once: boolean,
): Promise<(Pick<Page, 'events'> & { readonly error: Error | undefined }) | undefined> {
  if (subscriber.live) return undefined;
  // Between pages too, so that reading a long log leaves the event loop to others.
  await new Promise<void>((resolve) => setImmediate(resolve));
  const page = await readPage(source, subscriber, signal, once);
  if (page === undefined) return undefined;
  subscriber.position = page.upTo;
  // Only a last page may join: the tail knows no end of the log before it has followed one.
  if (page.isLast && subscriber.share === undefined) source.tail.join(subscriber);
  // The subscription ends here, and the tail knows no shares.
  else if (page.isLast) subscriber.live = true;
  return { events: page.events, error: page.unreadable?.error };
}

/** Reads a page. Retries while the file cannot be read, except with `once`. Undefined when aborted meanwhile. */
async function readPage(
  { reader, closed, telemetry }: SubscriptionSource,
  { position, prefixes, share }: Subscriber,
  signal: AbortSignal,
  once: boolean,
): Promise<Page | undefined> {
  for (let retry = FIRST_RETRY_MS; !signal.aborted && !closed.aborted;) {
    try {
      const page = reader.page(position, { prefixes, share });
      telemetry.failures.worked(UNREADABLE);
      return page;
    } catch (error) {
      if (once || !(error instanceof EventStoreError && error.code === 'UNAVAILABLE')) throw error;
      telemetry.failures.failed(UNREADABLE, error);
      await pause(retry, AbortSignal.any([signal, closed]));
      retry = Math.min(MAX_RETRY_MS, retry * 2);
    }
  }
  return undefined;
}
