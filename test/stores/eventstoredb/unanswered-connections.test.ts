import { expect } from 'chai';
import { EventStoreError } from '../../../domain/event-store.ts';
import {
  followedByMany,
  hastyTimings,
  numbered,
  numbersOf,
  onWorkbench,
} from '../../support/eventstoredb-server/workbench.ts';
import { eventually } from '../../support/signals.ts';

/** The code that a promise rejects with. */
async function codeOf(promise: Promise<unknown>): Promise<string> {
  const error: unknown = await promise.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  expect(error).to.be.instanceOf(EventStoreError);
  return (error as EventStoreError).code;
}

/** Short enough for a test; a running server accepts a connection far sooner. */
const establishMs = 400;
const { connectMs, pingMs } = hastyTimings;
const timings = { establishMs, connectMs, pingMs, readMs: 2_000 };

describe('a connection attempt to EventStoreDB that is never answered', () => {
  const bench = onWorkbench();

  it('is abandoned, and another is made once a server listens there', async () => {
    const { url, port } = bench().server;
    bench().server.stop();
    const silentPort = await bench().openSilentPort(port);
    const store = await bench().open({ url, timings });
    expect(await codeOf(store.ping())).to.equal('UNAVAILABLE');
    expect(await codeOf(store.append('task-1', [numbered(1)], 'none'))).to.equal('UNAVAILABLE');

    silentPort.leave();
    await bench().restart();
    await eventually(() => store.ping());
    await store.append('task-1', [numbered(1)], 'none');
    expect(numbersOf(await store.readStream('task-1'))).to.deep.equal([1]);
  });

  it('is abandoned by a reader too, even when it replaces a working connection', async () => {
    const store = await bench().open({ timings });
    await eventually(() => store.ping());
    bench().server.stop();
    const silentPort = await bench().openSilentPort(bench().server.port);
    await eventually(async () => {
      expect(await codeOf(store.ping())).to.equal('UNAVAILABLE');
      return silentPort.came.values.length > 0;
    });

    silentPort.leave();
    await bench().restart();
    await eventually(() => store.ping());
  });

  it('is abandoned for the node that has become the leader in the meantime', async () => {
    const { server } = bench();
    const hung = await bench().openSilentPort();
    server.leaderPort = hung.port;
    const hosts = `127.0.0.1:${server.port},127.0.0.1:${server.port}`;
    const store = await bench().open({ url: `esdb://${hosts}?tls=false`, timings });
    expect(await codeOf(store.ping())).to.equal('UNAVAILABLE');
    await hung.came.wait();

    server.leaderPort = server.port;
    await eventually(() => store.ping());
    await store.append('task-1', [numbered(1)], 'none');
  });

  it('is abandoned by each of many subscriptions, whichever connection they use', async () => {
    const quiet = { establishMs, probeMs: 1_000, silenceMs: 10_000 };
    const store = await bench().open({ timings: quiet });
    const following = followedByMany(store, 60);
    await store.append('run-0', [numbered(1)], 'none');
    await eventually(() => following.heard() === 60, { what: 'all followers to receive an event' });
    bench().server.stop();
    const silentPort = await bench().openSilentPort(bench().server.port);
    await silentPort.came.count(2);

    silentPort.leave();
    await bench().restart();
    await eventually(() => store.ping());
    await store.append('run-0', [numbered(2)], 0);
    await eventually(() => following.heard() === 120, {
      what: 'all followers to receive an event again',
    });
    await following.stop();
  });

  it('is not shared by two stores in one process', async () => {
    const silentPort = await bench().openSilentPort();
    const url = `esdb://127.0.0.1:${silentPort.port}?tls=false`;
    const patient = { ...timings, establishMs: 60_000 };
    for (const store of [
      await bench().open({ url, timings: patient }),
      await bench().open({ url, timings: patient }),
    ]) {
      expect(await codeOf(store.ping())).to.equal('UNAVAILABLE');
    }
    await silentPort.came.count(2);
  });
});
