import type { RecordedEvent } from '../../domain/event-store.ts';
import { createEventCodec } from '../../domain/events/codec.ts';
import { silent } from '../../observability/telemetry.ts';
import { openEventStoreDb } from '../../stores/eventstoredb/event-store.ts';
import type { Log } from '../support/eventstoredb-server/log.ts';
import { EventStoreDbServer } from '../support/eventstoredb-server/server.ts';
import { MongoServer } from '../support/mongodb-server/server.ts';
import type { ServiceSettings } from '../support/service-process.ts';
import { Ledger } from './ledger.ts';

/**
 * The two servers of a distributed service, as stand-ins in the test's own process, which can
 * become unavailable.
 */
export class Servers {
  readonly #mongo: MongoServer;
  #eventStore: EventStoreDbServer;

  private constructor(eventStore: EventStoreDbServer, mongo: MongoServer) {
    this.#eventStore = eventStore;
    this.#mongo = mongo;
  }

  static async start(): Promise<Servers> {
    return new Servers(await EventStoreDbServer.start(), await MongoServer.start());
  }

  /** The settings that a service needs for them. */
  get settings(): ServiceSettings {
    return {
      SVC_EVENT_STORE_URL: this.#eventStore.url,
      SVC_READ_MODEL_URL: this.#mongo.url('service'),
      JWT_SECRET_KEY: 'the same for all the processes of the test',
    };
  }

  /** The calls that the event store has received. */
  get calls(): Pick<EventStoreDbServer, 'subscriptions' | 'readsOfLog' | 'appends'> {
    return this.#eventStore;
  }

  stopEventStore(): void {
    this.#eventStore.stop();
  }

  /** Comes back at the same address, with all its data. */
  async resumeEventStore(): Promise<void> {
    const { port, log } = this.#eventStore;
    this.#eventStore = await EventStoreDbServer.start({ port, log });
  }

  /** The log as it is now. */
  get log(): Log {
    return this.#eventStore.log;
  }

  /** Continues with another log, as after a restore from a backup. No process may run. */
  async putBack(log: Log): Promise<void> {
    const { port } = this.#eventStore;
    this.#eventStore.stop();
    this.#eventStore = await EventStoreDbServer.start({ port, log });
  }

  stopReadModel(): Promise<void> {
    return this.#mongo.stop();
  }

  resumeReadModel(): Promise<void> {
    return this.#mongo.resume();
  }

  /** All events of the log now. */
  async ledger(): Promise<Ledger> {
    const store = await openEventStoreDb({
      url: this.#eventStore.url,
      codec: createEventCodec(),
      telemetry: silent,
    });
    try {
      const events: RecordedEvent[] = [];
      for (;;) {
        const page = await store.readAll(events.at(-1)?.position ?? '', 1000);
        if (page.length === 0) return new Ledger(events);
        events.push(...page);
      }
    } finally {
      await store.close();
    }
  }

  async stop(): Promise<void> {
    this.stopEventStore();
    await this.#mongo.stop();
  }
}
