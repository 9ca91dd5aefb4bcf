import { describeSmallWindow, smallLimits } from './event-store-following.ts';
import { describeEventStoreContract, type EventStoreSubject } from './event-store.ts';
import type { EventStore } from '../../domain/event-store.ts';
import { silent } from '../../observability/telemetry.ts';
import { openEventStoreDb } from '../../stores/eventstoredb/event-store.ts';
import type { FollowerLimits } from '../../stores/following/log-follower.ts';
import type { Timings } from '../../stores/eventstoredb/connecting/timings.ts';
import { EventStoreDbServer } from '../support/eventstoredb-server/server.ts';
import { leavesNothingOpen } from '../support/leaks.ts';
import { plainCodec } from '../support/plain-codec.ts';
import { realServerAt } from '../support/left-out.ts';

const realServer = realServerAt('SVC_TEST_ESDB_URL');

/** An adapter on a server, and another in its place when the first is closed. */
async function subjectOver(
  url: string,
  options: {
    readonly timings: Partial<Timings>;
    readonly recognisesDuplicatesAnywhere: boolean;
    readonly limits?: FollowerLimits;
  },
): Promise<EventStoreSubject> {
  const open = (): Promise<EventStore> =>
    openEventStoreDb({ url, codec: plainCodec, telemetry: silent, ...options });
  const store = await open();
  let current = store;
  return {
    store,
    async reopen() {
      await current.close();
      current = await open();
      return current;
    },
    close: () => current.close(),
    capabilities: {
      recognisesDuplicatesAnywhere: options.recognisesDuplicatesAnywhere,
      truncatesTheWholeLog: false,
      listsFromPositions: true,
    },
  };
}

describe('the contract of the event store, in EventStoreDB', () => {
  let server: EventStoreDbServer;

  // One for all tests, like a real one: each test finds the leftovers of earlier ones.
  before(async () => {
    server = await EventStoreDbServer.start();
    server.write('$users', '$User', '"$admin"');
  });
  after(() => server.stop());
  leavesNothingOpen();

  describeEventStoreContract('over the stand-in', () =>
    subjectOver(server.url, {
      // Quiet subscriptions are checked more often than in production, to keep tests fast.
      timings: { probeMs: 50 },
      recognisesDuplicatesAnywhere: true,
    }),
  );

  describeSmallWindow('over the stand-in with a small window', () =>
    subjectOver(server.url, {
      timings: { probeMs: 50 },
      limits: smallLimits,
      recognisesDuplicatesAnywhere: true,
    }),
  );

  if (realServer !== undefined) {
    describeSmallWindow('over that server with a small window', () =>
      subjectOver(realServer, {
        timings: {},
        limits: smallLimits,
        recognisesDuplicatesAnywhere: false,
      }),
    );
    describeEventStoreContract('over the server that the environment names', () =>
      // With any expected revision, a server compares ids only with those in its memory.
      subjectOver(realServer, { timings: {}, recognisesDuplicatesAnywhere: false }),
    );
  }
});
