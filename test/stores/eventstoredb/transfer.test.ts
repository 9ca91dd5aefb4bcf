import { expect } from 'chai';
import type { EncodedEvent } from '../../../domain/event-store.ts';
import type { LogTransfer } from '../../../domain/log-transfer.ts';
import { silent } from '../../../observability/telemetry.ts';
import { defaultTimings } from '../../../stores/eventstoredb/connecting/timings.ts';
import { openEventStoreDbTransfer } from '../../../stores/eventstoredb/transfer.ts';
import {
  numbered,
  onWorkbench,
  quickTimings,
} from '../../support/eventstoredb-server/workbench.ts';

/** More than two parts. */
const EVENTS = 1_200;

describe('transferring the log of an EventStoreDB server', () => {
  const bench = onWorkbench();
  let log: LogTransfer | undefined;
  afterEach(() => log?.close());

  /** With its own timeouts, and frequent attempts to reconnect. */
  const open = (): LogTransfer => {
    const { firstPauseMs, longestPauseMs } = quickTimings;
    const timings = { firstPauseMs, longestPauseMs };
    log = openEventStoreDbTransfer({ url: bench().server.url, telemetry: silent, timings });
    return log;
  };

  const fill = (): void => {
    for (let n = 0; n < EVENTS; n += 1) {
      bench().server.write(`run-${n}`, 'EventPublished', '{}', '{}');
    }
  };

  /** Stops the server. The result restarts it after a longer outage than a request would survive. */
  const leave = async (): Promise<() => Promise<void>> => {
    const { connectMs, readMs, appendAttemptMs, appendOverallMs } = defaultTimings;
    const timings = { connectMs, readMs, appendAttemptMs, appendOverallMs };
    const other = await bench().open({ timings });
    await other.append('task-1', [numbered(1)], 'none');
    bench().server.stop();
    return async () => {
      const refused = await Promise.allSettled([
        other.append('task-1', [numbered(2)], 0),
        other.readStream('task-1'),
      ]);
      expect(refused.map(({ status }) => status)).to.deep.equal(['rejected', 'rejected']);
      await bench().restart();
    };
  };

  it('reports within a few seconds that the server is down', async () => {
    bench().server.stop();
    const begun = performance.now();
    const read = await open().contents()[Symbol.asyncIterator]().next().catch(kept);
    expect(read).to.include({ code: 'UNAVAILABLE' });
    // Half the timeout for a server that goes down later.
    expect(performance.now() - begun).to.be.lessThan(15_000);
  }).timeout(60_000);

  it('continues reading after an outage of the server', async () => {
    fill();
    let events = 0;
    let away: Promise<void> | undefined;
    for await (const part of open().contents()) {
      events += part.events.length;
      away ??= (await leave())();
    }
    await away;
    expect(events).to.equal(EVENTS);
  }).timeout(60_000);

  it('continues appending after an outage of the server', async () => {
    const moving = open();
    const append = (stream: string): Promise<void> =>
      moving.append([{ stream, expected: 'none', events: [encoded()] }]);
    await append('run-1');
    const comeBack = await leave();
    await Promise.all([append('run-2'), comeBack()]);
    const streams = bench().server.log.all.map(({ stream }) => stream);
    expect(streams).to.deep.equal(['run-1', 'task-1', 'run-2']);
  }).timeout(60_000);
});

const kept = (error: unknown): unknown => error;

const encoded = (): EncodedEvent => ({
  id: crypto.randomUUID(),
  type: 'EventPublished',
  data: '{}',
  metadata: '{}',
});
