import type { EventStore } from '../../domain/event-store.ts';
import { silent } from '../../observability/telemetry.ts';
import { openSqliteEventStore } from '../../stores/sqlite/event-log/event-store.ts';
import { plainCodec } from '../support/plain-codec.ts';
import { makeTemporaryDirectory } from '../support/temporary-directory.ts';
import { describeEventStoreContract } from './event-store.ts';

describeEventStoreContract('the embedded event log', async () => {
  const directory = await makeTemporaryDirectory();
  const open = (): Promise<EventStore> =>
    openSqliteEventStore({ directory: directory.path, codec: plainCodec, telemetry: silent });
  let store = await open();
  return {
    store,
    async reopen() {
      await store.close();
      store = await open();
      return store;
    },
    async close() {
      await store.close();
      await directory.remove();
    },
    capabilities: {
      recognisesDuplicatesAnywhere: true,
      truncatesTheWholeLog: true,
      listsFromPositions: false,
    },
  };
});
