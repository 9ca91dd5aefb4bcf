import { get } from 'node:http';
import { expect } from 'chai';
import { EventStream } from '../../support/event-stream.ts';
import { RunningApi } from '../../support/running-api.ts';
import { deferred, eventually, type Deferred } from '../../support/signals.ts';

/** Auditors that may watch one process concurrently. */
const MAX_AUDITORS = 50;

describe('clients of live streams that have not started', () => {
  let api: RunningApi;
  const opened: EventStream[] = [];
  beforeEach(async () => {
    api = await RunningApi.start();
  });
  afterEach(async () => {
    for (const stream of opened.splice(0)) stream.close();
    await api.close();
  });

  const open = async (path: string): Promise<EventStream> => {
    const stream = await EventStream.open(`${api.url}${path}`, api.admin.client.token);
    opened.push(stream);
    return stream;
  };

  /** Delays all reads of the log's end, as a distant server does. */
  const holdHead = (): { asked: () => number; gate: Deferred<void> } => {
    const { store } = api;
    const head = store.head.bind(store);
    const gate = deferred();
    let asked = 0;
    store.head = async () => {
      asked += 1;
      await gate.promise;
      return head();
    };
    return { asked: () => asked, gate };
  };

  for (const path of ['/audit/live', '/runs/live']) {
    it(`release everything when they disconnect from ${path}`, async () => {
      const held = holdHead();
      const headers = { authorization: `Bearer ${String(api.admin.client.token)}` };
      const leaving = get(`${api.url}${path}`, { agent: false, headers }).on('error', () => {});
      await eventually(() => held.asked() === 1);
      leaving.destroy();
      const ended = `http_requests_total{method="GET",endpoint="${path}"} 1`;
      await eventually(async () => (await api.metricsText()).includes(ended));
      held.gate.resolve();
      const staying = await open(path);
      await staying.named('live.started');
      await eventually(() => api.live.size + api.auditTail.size === 1);
    });
  }

  it('use the available places, and no more, when they arrive concurrently', async () => {
    const held = holdHead();
    let answered = 0;
    const all = Array.from({ length: MAX_AUDITORS + 10 }, async () => {
      const stream = await open('/audit/live');
      answered += 1;
      return stream;
    });
    await eventually(() => held.asked() + answered === MAX_AUDITORS + 10);
    held.gate.resolve();
    const statuses = (await Promise.all(all)).map(({ status }) => status);
    expect(statuses.filter((status) => status === 200)).to.have.length(MAX_AUDITORS);
    expect(statuses.filter((status) => status === 503)).to.have.length(10);
    expect(api.auditTail.size).to.equal(MAX_AUDITORS);
  });
});
