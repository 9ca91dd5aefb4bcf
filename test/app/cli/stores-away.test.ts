import { expect } from 'chai';
import { join } from 'node:path';
import { currentSchedules } from '../../../app/cli/store/current-schedules.ts';
import { decorate } from '../../../domain/decorate.ts';
import { createEventCodec } from '../../../domain/events/codec.ts';
import type { EventStore } from '../../../domain/event-store.ts';
import { silent } from '../../../observability/telemetry.ts';
import { openSqliteEventStore } from '../../../stores/sqlite/event-log/event-store.ts';
import { openSqliteReadModel } from '../../../stores/sqlite/read-model/read-model.ts';
import { EventStoreDbServer } from '../../support/eventstoredb-server/server.ts';
import { MongoServer } from '../../support/mongodb-server/server.ts';
import { useTemporaryDirectory } from '../../support/temporary-directory.ts';
import { svc } from './command-line.ts';

describe('the command line on unavailable stores', () => {
  const directory = useTemporaryDirectory();

  for (const words of [['simulate'], ['owed'], ['admin', 'reset']]) {
    it(`exits with the reason: svc ${words.join(' ')}`, async () => {
      const server = await EventStoreDbServer.start();
      server.stop();
      const env = { SVC_DATA_DIR: directory(), SVC_EVENT_STORE_URL: server.url };
      const { code, err } = await svc(words, { env });
      expect(err).to.include('EventStoreDB');
      expect(code).to.equal(6);
    });
  }

  it('exits with the reason: svc import with unavailable views', async () => {
    const made = { SVC_DATA_DIR: join(directory(), 'made') };
    const codec = createEventCodec();
    const at = { directory: made.SVC_DATA_DIR, codec, telemetry: silent };
    await (await openSqliteEventStore(at)).close();
    const folder = join(directory(), 'archive');
    expect((await svc(['export', folder], { env: made })).code).to.equal(0);
    const server = await MongoServer.start();
    await server.stop();
    const env = { SVC_DATA_DIR: join(directory(), 'aim'), SVC_READ_MODEL_URL: server.url() };
    const { code, err } = await svc(['import', folder], { env });
    expect(err).to.include('MongoDB');
    expect(code).to.equal(6);
  });

  it('waits for an interrupted store within its limit', async () => {
    const where = { directory: directory(), telemetry: silent };
    const store = await openSqliteEventStore({ ...where, codec: createEventCodec() });
    const readModel = await openSqliteReadModel(where);
    const interrupted = new AbortController();
    // Like EventStoreDB's, which recovers whenever the server does.
    const subscribe: EventStore['subscribe'] = async function* ({ after, signal }) {
      const ended = new Promise<void>((end) => signal.addEventListener('abort', () => end()));
      interrupted.abort();
      await ended;
      if (!signal.aborted) yield { kind: 'caught-up', position: after };
    };
    try {
      const away = decorate(store, { subscribe });
      const refused: unknown = await currentSchedules(away, readModel, interrupted.signal)
        .next()
        .catch((error: unknown) => error);
      expect(String(refused)).to.include('interrupted');
    } finally {
      await readModel.close();
      await store.close();
    }
  });
});
