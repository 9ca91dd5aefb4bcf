import { createEventCodec } from '../../domain/events/codec.ts';
import { openEventStoreDb } from '../../stores/eventstoredb/event-store.ts';
import { openMongoReadModel } from '../../stores/mongodb/read-model.ts';
import { EventStoreDbServer } from './eventstoredb-server/server.ts';
import { MongoServer } from './mongodb-server/server.ts';
import type { OpenStores } from './api-stores.ts';

/** Opens EventStoreDB and MongoDB, on servers of the tests. */
export const openStandIns: OpenStores = async (_directory, telemetry) => {
  const [events, documents] = await Promise.all([EventStoreDbServer.start(), MongoServer.start()]);
  return {
    log: await openEventStoreDb({ url: events.url, codec: createEventCodec(), telemetry }),
    kept: await openMongoReadModel({ url: documents.url(), database: 'views', telemetry }),
    stop: async () => {
      events.stop();
      await documents.stop();
    },
  };
};
