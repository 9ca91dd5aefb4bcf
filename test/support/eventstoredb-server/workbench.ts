import { setMaxListeners } from 'node:events';
import {
  BEGINNING,
  type EventStore,
  type NewEvent,
  type RecordedEvent,
  type SubscriptionMessage,
} from '../../../domain/event-store.ts';
import { silent, type Telemetry } from '../../../observability/telemetry.ts';
import { openEventStoreDb } from '../../../stores/eventstoredb/event-store.ts';
import type { Timings } from '../../../stores/eventstoredb/connecting/timings.ts';
import { leavesNothingOpen } from '../leaks.ts';
import { plainCodec } from '../plain-codec.ts';
import { EventStoreDbServer } from './server.ts';
import { SilentPort } from './silent-port.ts';

/** Short pauses, and timeouts that a busy machine does not exceed while the server responds. */
export const quickTimings: Timings = {
  connectMs: 3_000,
  establishMs: 5_000,
  appendAttemptMs: 3_000,
  appendOverallMs: 4_000,
  readMs: 5_000,
  pingMs: 3_000,
  firstPauseMs: 2,
  longestPauseMs: 20,
  longestResubscribePauseMs: 20,
  probeMs: 20,
  heartbeatMs: 40,
  silenceMs: 60,
  behindMs: 300,
};

/** For tests in which the server does not respond, and the timeout has to pass. */
export const hastyTimings = {
  connectMs: 500,
  appendAttemptMs: 300,
  readMs: 1_000,
  pingMs: 500,
} as const;

/** A running stand-in with the means to open adapters on it; all is closed after the test. */
export class Workbench {
  server: EventStoreDbServer;
  readonly #stores: EventStore[] = [];
  readonly #servers: EventStoreDbServer[];
  readonly #silent: SilentPort[] = [];

  constructor(server: EventStoreDbServer) {
    this.server = server;
    this.#servers = [server];
  }

  /** Opens an adapter on the stand-in, or on another connection string. */
  async open(
    options: {
      readonly timings?: Partial<Timings>;
      readonly telemetry?: Telemetry;
      readonly url?: string;
    } = {},
  ): Promise<EventStore> {
    const store = await openEventStoreDb({
      url: options.url ?? this.server.url,
      codec: plainCodec,
      telemetry: options.telemetry ?? silent,
      timings: { ...quickTimings, ...options.timings },
    });
    this.#stores.push(store);
    return store;
  }

  /** A server at the stopped one's address, with the same log unless another is given. */
  async restart(log = this.server.log): Promise<void> {
    const { port } = this.server;
    this.server = await EventStoreDbServer.start({ port, log });
    this.#servers.push(this.server);
  }

  /** Opens a port that accepts connections and never responds; default: any free one. */
  async openSilentPort(port = 0): Promise<SilentPort> {
    const silentPort = await SilentPort.open(port);
    this.#silent.push(silentPort);
    return silentPort;
  }

  async close(): Promise<void> {
    await Promise.all(this.#stores.map((store) => store.close()));
    for (const silentPort of this.#silent) silentPort.close();
    for (const server of this.#servers) server.stop();
  }
}

/**
 * Called inside a `describe`: gives each of its tests a {@link Workbench}. A test fails if the
 * adapter leaves something open.
 */
export function onWorkbench(): () => Workbench {
  let current: Workbench | undefined;
  afterEach(async () => {
    await current?.close();
    current = undefined;
  });
  leavesNothingOpen();
  beforeEach(async () => {
    current = new Workbench(await EventStoreDbServer.start());
  });
  return () => {
    if (current === undefined) throw new Error('There is a workbench only during a test');
    return current;
  };
}

/** An event that contains its number. */
export function numbered(number: number, id: string = crypto.randomUUID()): NewEvent {
  return {
    id,
    type: 'EventPublished',
    data: { number },
    metadata: {
      commandId: `command-${number}`,
      $correlationId: 'correlation',
      actor: 'service',
      source: 'test',
      schemaVersion: '1',
      occurredAt: '2026-01-02T03:04:05.678Z',
    },
  } as unknown as NewEvent;
}

/** The numbers of events made by {@link numbered}. */
export function numbersOf(events: readonly RecordedEvent[]): readonly number[] {
  return events.map(({ data }) => (data as unknown as { number: number }).number);
}

/** From 0 up to a number, exclusive. */
export function upTo(count: number): readonly number[] {
  return Array.from({ length: count }, (_, index) => index);
}

/** What a subscription has delivered so far. */
export interface Received {
  readonly messages: readonly SubscriptionMessage[];
  readonly events: readonly RecordedEvent[];
}

/** Takes messages until there are enough, and then leaves the subscription. */
export async function take(
  subscription: AsyncIterable<SubscriptionMessage>,
  isEnough: (received: Received) => boolean | Promise<boolean>,
): Promise<Received> {
  const messages: SubscriptionMessage[] = [];
  const events: RecordedEvent[] = [];
  for await (const message of subscription) {
    messages.push(message);
    if (message.kind === 'events') events.push(...message.events);
    if (await isEnough({ messages, events })) break;
  }
  return { messages, events };
}

/** For {@link take}: until it reports that it has caught up. */
export function caughtUp({ messages }: Received): boolean {
  return messages.at(-1)?.kind === 'caught-up';
}

/**
 * That many subscriptions to all runs, with the total number of their messages, and a function that
 * ends them.
 */
export function followedByMany(
  store: EventStore,
  count: number,
): { heard(): number; stop(): Promise<void> } {
  const stop = new AbortController();
  setMaxListeners(0, stop.signal);
  const options = { after: BEGINNING, prefixes: ['run-'], signal: stop.signal };
  let heard = 0;
  const following = upTo(count).map(() =>
    take(store.subscribe(options), ({ messages }) => {
      heard += Number(messages.at(-1)?.kind === 'events');
      return false;
    }),
  );
  return {
    heard: () => heard,
    async stop() {
      stop.abort();
      await Promise.all(following);
    },
  };
}
