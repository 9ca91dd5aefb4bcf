import { expect } from 'chai';
import type { EventStore } from '../../../domain/event-store.ts';
import { numbered, onWorkbench } from '../../support/eventstoredb-server/workbench.ts';

describe('listing the streams of EventStoreDB', () => {
  const bench = onWorkbench();
  let store: EventStore;
  beforeEach(async () => {
    store = await bench().open();
  });

  const listed = async (): Promise<readonly string[]> => {
    const { streams } = await store.listStreams({ prefix: '', limit: 100 });
    return streams.map(({ stream }) => stream);
  };

  it('leaves out deleted streams, soft or permanent, and lists the others', async () => {
    for (const stream of ['task-1', 'task-2', 'task-3']) {
      await store.append(stream, [numbered(1)], 'none');
    }
    bench().server.log.softDelete('task-1');
    bench().server.log.tombstone('task-2');
    expect(await listed()).to.deep.equal(['task-3']);
  });

  it('lists streams of other writers, whatever metadata their events have', async () => {
    const metadata = ['', 'null', '[]', '7', 'no JSON', '{"occurredAt": 5}'];
    for (const [index, text] of metadata.entries()) {
      bench().server.write(`theirs-${index}`, 'Noted', '{}', text);
    }
    expect(await listed()).to.deep.equal(metadata.map((_, index) => `theirs-${index}`));
  });
});
