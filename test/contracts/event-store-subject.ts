import { randomUUID } from 'node:crypto';
import { expect } from 'chai';
import {
  EventStoreError,
  type EventStore,
  type EventStoreErrorCode,
  type NewEvent,
  type Position,
  type RecordedEvent,
  type SubscriptionMessage,
} from '../../domain/event-store.ts';
import type { JsonObject } from '../../domain/json.ts';
import { BROKEN_KEY, NEWER_VERSION } from '../support/plain-codec.ts';
import { WaitTimeoutError } from '../support/signals.ts';

/**
 * An engine under test, opened with {@link import('../support/plain-codec.ts').plainCodec}. The log need
 * not be empty, and others may be writing to it.
 */
export interface EventStoreSubject {
  readonly store: EventStore;
  /** Closes the store and opens another over the same log; `close` then closes that one. */
  reopen(): Promise<EventStore>;
  /** Closes whatever is open. */
  close(): Promise<void>;
  readonly capabilities: EventStoreCapabilities;
}

/** Differences between engines that the port allows. */
export interface EventStoreCapabilities {
  /** Repeated appends with any expected revision are recognised by their ids, even after further appends. */
  readonly recognisesDuplicatesAnywhere: boolean;
  /** Truncated events disappear from `readAll` at once. */
  readonly truncatesTheWholeLog: boolean;
  /** Streams are listed by reading the log from a position; a shared log may be long. */
  readonly listsFromPositions: boolean;
}

/** Returns the subject of the running test. */
export type Subject = () => EventStoreSubject;

/** A unique stream name with a unique prefix. */
export function newStream(prefix = newPrefix()): string {
  return `${prefix}${randomUUID()}`;
}

export function newPrefix(): string {
  return `contract${randomUUID().slice(0, 8)}-`;
}

/** An event with this number in its data. */
export function event(number: number, payload: JsonObject = {}): NewEvent {
  const id = randomUUID();
  return {
    id,
    type: 'EventPublished',
    data: {
      event_id: id,
      topic: 'contract',
      payload: { number, ...payload },
      source_agent_id: 'agent-1',
      published_at: '2026-01-01T00:00:00.000Z',
      triggered_tasks: [],
    },
    metadata: {
      commandId: `command-${number}`,
      $correlationId: 'correlation-1',
      actor: 'service',
      source: 'contract',
      schemaVersion: '1',
      occurredAt: '2026-01-01T00:00:00.000Z',
    },
  };
}

/** Events with the numbers from `first`. */
export function events(count: number, first = 0): NewEvent[] {
  return Array.from({ length: count }, (_, i) => event(first + i));
}

/** An event with arbitrary data. */
export function eventWithData(data: unknown): NewEvent {
  return { ...event(0), data } as NewEvent;
}

/** An event that the codec finds faulty when it reads it. */
export function brokenEvent(): NewEvent {
  return eventWithData({ [BROKEN_KEY]: true });
}

/** An event that the codec takes for one of a newer release. */
export function newerEvent(): NewEvent {
  const known = event(0);
  return { ...known, metadata: { ...known.metadata, schemaVersion: NEWER_VERSION } };
}

export function idsOf(some: readonly { readonly id: string }[]): string[] {
  return some.map(({ id }) => id);
}

/** Expects a rejection with this code, and returns the error. */
export async function rejected(
  code: EventStoreErrorCode,
  promise: Promise<unknown>,
): Promise<EventStoreError> {
  const error: unknown = await promise.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  expect(error, `a rejection with ${code}`).to.be.instanceOf(EventStoreError);
  const fault = error as EventStoreError;
  expect(fault.code, fault.message).to.equal(code);
  return fault;
}

/** The events after a position in streams with a prefix. */
export async function readAllOf(
  store: EventStore,
  after: Position,
  prefix: string,
  page = 100,
): Promise<RecordedEvent[]> {
  const found: RecordedEvent[] = [];
  let position = after;
  for (;;) {
    const read = await store.readAll(position, page);
    const last = read.at(-1);
    if (last === undefined) return found;
    found.push(...read.filter(({ stream }) => stream.startsWith(prefix)));
    position = last.position;
  }
}

/** A subscription from which a test takes messages. */
export class Follower {
  readonly events: RecordedEvent[] = [];
  readonly #abort = new AbortController();
  readonly #messages: AsyncIterator<SubscriptionMessage>;

  constructor(store: EventStore, after: Position, prefixes?: readonly string[]) {
    this.#messages = store
      .subscribe({
        after,
        signal: this.#abort.signal,
        ...(prefixes === undefined ? {} : { prefixes }),
      })
      [Symbol.asyncIterator]();
  }

  /** The next message; undefined when the subscription has ended. Keeps the events. */
  async next(): Promise<SubscriptionMessage | undefined> {
    const result = await within(30_000, this.#messages.next());
    if (result.done === true) return undefined;
    if (result.value.kind === 'events') this.events.push(...result.value.events);
    return result.value;
  }

  /** Takes messages until a number of events have arrived, and returns them. */
  async count(count: number): Promise<readonly RecordedEvent[]> {
    while (this.events.length < count) await this.#more();
    return this.events;
  }

  /** Takes messages until it has caught up at or beyond a position, and returns that message's position. */
  async caughtUp(at: Position): Promise<Position> {
    for (;;) {
      const message = await this.#more();
      if (message.kind === 'caught-up' && message.position >= at) return message.position;
    }
  }

  async #more(): Promise<SubscriptionMessage> {
    const message = await this.next();
    if (message === undefined) throw new Error('the subscription has ended');
    return message;
  }

  abort(): void {
    this.#abort.abort();
  }

  /** Aborts, and takes the remaining messages. */
  async end(): Promise<void> {
    this.abort();
    while ((await this.next()) !== undefined);
  }
}

/** The promise's outcome, or a rejection after a timeout. */
export async function within<T>(milliseconds: number, promise: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(
      () => reject(new WaitTimeoutError(`nothing came within ${milliseconds} ms`)),
      milliseconds,
    );
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}
