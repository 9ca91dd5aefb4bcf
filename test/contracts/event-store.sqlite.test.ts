import type { EventStore } from '../../domain/event-store.ts';
import { silent } from '../../observability/telemetry.ts';
import type { FollowerLimits } from '../../stores/following/log-follower.ts';
import { openSqliteEventStore } from '../../stores/sqlite/event-log/event-store.ts';
import { plainCodec } from '../support/plain-codec.ts';
import { makeTemporaryDirectory } from '../support/temporary-directory.ts';
import { describeSmallWindow, smallLimits } from './event-store-following.ts';
import { describeEventStoreContract, type EventStoreSubject } from './event-store.ts';

const subjectWith = async (limits?: FollowerLimits): Promise<EventStoreSubject> => {
  const directory = await makeTemporaryDirectory();
  const open = (): Promise<EventStore> =>
    openSqliteEventStore({
      directory: directory.path,
      codec: plainCodec,
      telemetry: silent,
      ...(limits === undefined ? {} : { limits }),
    });
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
};

describeEventStoreContract('the embedded event log', () => subjectWith());
describeSmallWindow('the embedded event log with a small window', () => subjectWith(smallLimits));
