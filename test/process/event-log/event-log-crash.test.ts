import { expect } from 'chai';
import type { EventStore } from '../../../domain/event-store.ts';
import { silent } from '../../../observability/telemetry.ts';
import { openSqliteEventStore } from '../../../stores/sqlite/event-log/event-store.ts';
import { event } from '../../contracts/event-store-subject.ts';
import { plainCodec } from '../../support/plain-codec.ts';
import { useTemporaryDirectory } from '../../support/temporary-directory.ts';
import { Child } from './event-log-family.ts';

describe('the embedded event log, when a process is killed', function () {
  this.timeout(180_000);
  const directory = useTemporaryDirectory();

  it('keeps acknowledged events in order, and accepts more', async () => {
    const child = await Child.over(directory());
    child.order({ kind: 'append-for-ever', stream: 'one' });
    await child.messages.count(200, { limitMs: 30_000 });
    await child.kill();
    const acknowledged = child.messages.values.flatMap((message) =>
      message.kind === 'acknowledged' ? [message.id] : [],
    );
    const store = await open();
    try {
      const ids: string[] = [];
      for (;;) {
        const page = await store.readStream('one', { from: ids.length });
        if (page.length === 0) break;
        ids.push(...page.map(({ id }) => id));
      }
      expect(acknowledged.length).to.be.greaterThan(100);
      // The last events may not have been acknowledged.
      expect(ids.slice(0, acknowledged.length)).to.deep.equal(acknowledged);
      const next = await store.append('one', [event(0)], ids.length - 1);
      expect(next.revision).to.equal(ids.length);
      expect(await store.readAll('', 1000)).to.have.lengthOf(Math.min(1000, ids.length + 1));
    } finally {
      await store.close();
    }
  });

  it('lets another process continue to follow it', async () => {
    const [writer, follower] = [await Child.over(directory()), await Child.over(directory())];
    follower.order({ kind: 'follow' });
    await follower.until('following');
    writer.order({ kind: 'append-for-ever', stream: 'one' });
    await follower.messages.wait(({ kind }) => kind === 'came');
    await writer.kill();
    const store = await open();
    try {
      const last = event(0);
      await store.append('after', [last], 'none');
      await follower.messages.wait((message) => message.kind === 'came' && message.id === last.id);
    } finally {
      await store.close();
      await follower.close();
    }
    const came = follower.messages.values.flatMap((message) =>
      message.kind === 'came' ? [message.id] : [],
    );
    expect(new Set(came).size).to.equal(came.length);
  });

  function open(): Promise<EventStore> {
    return openSqliteEventStore({
      directory: directory(),
      codec: plainCodec,
      telemetry: silent,
    });
  }
});
