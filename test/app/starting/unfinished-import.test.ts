import { expect } from 'chai';
import {
  onceImportCompleted,
  rejectUnfinishedImport,
} from '../../../app/starting/unfinished-import.ts';
import { createEventCodec } from '../../../domain/events/codec.ts';
import type { EventStore } from '../../../domain/event-store.ts';
import type { CommandContext } from '../../../domain/handle.ts';
import { newId } from '../../../domain/ids.ts';
import { beginImport, completeImport } from '../../../domain/operators/import.ts';
import { silent } from '../../../observability/telemetry.ts';
import { openEventStoreDb } from '../../../stores/eventstoredb/event-store.ts';
import { event } from '../../contracts/event-store-subject.ts';
import { EventStoreDbServer } from '../../support/eventstoredb-server/server.ts';

const EXPORT = 'the export';

describe('a log with an aborted import', () => {
  let server: EventStoreDbServer;
  let store: EventStore;
  beforeEach(async () => {
    server = await EventStoreDbServer.start();
    store = await open();
    await beginImport(store, EXPORT, 10, context());
  });
  afterEach(async () => {
    await store.close();
    server.stop();
  });

  const open = (): Promise<EventStore> =>
    openEventStoreDb({
      url: server.url,
      codec: createEventCodec(),
      telemetry: silent,
      // Long enough for a busy machine; reads from an unavailable server take as long.
      timings: { connectMs: 5_000, readMs: 5_000, appendOverallMs: 20_000 },
    });
  const messageOf = (refused: Promise<unknown>): Promise<string> =>
    refused.then(
      () => 'not refused',
      (error: unknown) => String(error),
    );

  it('prevents a start', async () => {
    expect(await messageOf(rejectUnfinishedImport(store))).to.include('run the same svc import');
  });

  it('rejects appends and subscriptions after an outage at the start, until the import is completed', async () => {
    const { port, log } = server;
    server.stop();
    const away = await open();
    try {
      const late = await rejectUnfinishedImport(away);
      server = await EventStoreDbServer.start({ port, log });
      const { signal } = new AbortController();
      const first = (): Promise<unknown> =>
        late.subscribe({ after: '', signal })[Symbol.asyncIterator]().next();
      const uses = [() => late.append('topic-a', [event(1)], 'none'), () => late.ping(), first];
      for (const use of uses) {
        expect(await messageOf(use())).to.include('run the same svc import');
      }
      expect(await late.readStream('topic-a')).to.deep.equal([]);
      await completeImport(store, EXPORT, 10, context());
      await late.ping();
      expect(await late.append('topic-a', [event(1)], 'none')).to.deep.include({ revision: 0 });
    } finally {
      await away.close();
    }
  });

  it('is checked once', async () => {
    await completeImport(store, EXPORT, 10, context());
    const whole = onceImportCompleted(store);
    await whole.ping();
    const { reads } = server;
    await whole.append('topic-a', [event(1)], 'none');
    expect(server.reads).to.equal(reads);
  });
});

function context(): CommandContext {
  const now = Date.now();
  const id = newId(now);
  return { commandId: id, actor: 'service', source: 'test', correlationId: id, now };
}
