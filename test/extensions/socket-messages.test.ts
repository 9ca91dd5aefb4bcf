import { expect } from 'chai';
import WebSocket from 'ws';
import { eventually } from '../support/signals.ts';
import { settle } from '../support/virtual-clock.ts';
import { manifestOf, reached, useHosting } from './hosting.ts';

/** Messages of one connection that are handled at a time, by the contract. */
const MAX_CONCURRENT = 32;

describe('the messages of a WebSocket', () => {
  const hosting = useHosting();
  let client: WebSocket;
  let closed: Promise<number>;

  const module = `export function setup({ websocket }) {
    reached.begun = [];
    reached.waiting = [];
    reached.most = 0;
    let underWay = 0;
    websocket('work', (socket) => {
      reached.close = (code) => socket.close(code);
      socket.onMessage(async ({ n }) => {
        reached.begun.push(n);
        reached.most = Math.max(reached.most, (underWay += 1));
        if (!reached.open) await new Promise((proceed) => reached.waiting.push(proceed));
        underWay -= 1;
      });
    });
  }`;
  const begun = (): readonly number[] => reached['begun'] as readonly number[];
  const upTo = (count: number): number[] => Array.from({ length: count }, (_, n) => n);
  const finishAll = (): void => {
    reached['open'] = true;
    for (const proceed of reached['waiting'] as (() => void)[]) proceed();
  };
  const send = (count: number, more = ''): void => {
    for (const n of upTo(count)) client.send(JSON.stringify({ n, more }));
  };

  beforeEach(async () => {
    await hosting().write('busy', manifestOf('busy'), module);
    const { url } = await hosting().start();
    client = new WebSocket(`${url.replace('http', 'ws')}/ext/busy/ws/work`, ['svc.token', 'admin']);
    closed = new Promise((resolve) => client.once('close', resolve));
    await new Promise((open) => client.once('open', open));
  });
  afterEach(() => client.terminate());

  it('are handled in order, a limited number at a time, and none is lost', async () => {
    send(3_000);
    await eventually(() => begun().length >= MAX_CONCURRENT);
    await settle();
    expect(begun()).to.deep.equal(upTo(MAX_CONCURRENT));
    (reached['waiting'] as (() => void)[])[5]?.();
    await eventually(() => begun().length > MAX_CONCURRENT);
    finishAll();
    await eventually(() => void expect(begun()).to.deep.equal(upTo(3_000)));
    expect(reached['most']).to.equal(MAX_CONCURRENT);
  });

  it('are read no faster than they are handled', async () => {
    send(120, 'x'.repeat(500_000));
    await eventually(() => begun().length >= MAX_CONCURRENT);
    await settle(100);
    expect(client.bufferedAmount).to.be.greaterThan(0);
    finishAll();
    await eventually(() => void expect(begun()).to.deep.equal(upTo(120)));
    expect(client.bufferedAmount).to.equal(0);
  });

  it('are all handled if the client closes right after sending them', async () => {
    send(100);
    client.close(1000);
    await eventually(() => begun().length >= MAX_CONCURRENT);
    finishAll();
    await eventually(() => void expect(begun()).to.deep.equal(upTo(100)));
    expect(await closed).to.equal(1000);
  });

  it('are dropped once the extension has closed the connection, which the client notices', async () => {
    send(3_000);
    await eventually(() => begun().length >= MAX_CONCURRENT);
    (reached['close'] as (code: number) => void)(4_000);
    expect(await closed).to.equal(4_000);
    finishAll();
    await settle();
    expect(begun()).to.deep.equal(upTo(MAX_CONCURRENT));
  });
});

describe('a message from the client of a WebSocket', () => {
  const hosting = useHosting();

  it('ends the connection if JavaScript cannot represent a number in it, naming its path', async () => {
    const module = `export function setup({ websocket }) {
      reached.heard = [];
      websocket('say', (socket) => socket.onMessage((message) => reached.heard.push(message)));
    }`;
    await hosting().write('plain', manifestOf('plain'), module);
    const { url } = await hosting().start();
    const address = `${url.replace('http', 'ws')}/ext/plain/ws/say`;
    for (const [message, says] of [
      [
        '{"a": [1, {"id": 7615917337495251231}]}',
        /^a\.1\.id: must be an integer within .*got 76159/,
      ],
      [`{"${'é'.repeat(100)}": 1e400}`, /^é{61}$/],
    ] as const) {
      const client = new WebSocket(address, ['svc.token', 'admin']);
      const closed = new Promise((resolve) => {
        client.once('close', (code, reason) => resolve([code, reason.toString()]));
      });
      await new Promise((open) => client.once('open', open));
      client.send(message);
      const [code, reason] = (await closed) as [number, string];
      expect(code).to.equal(1007);
      expect(reason).to.match(says);
    }
    expect(reached['heard']).to.deep.equal([]);
  });
});

describe('a message to the client of a WebSocket', () => {
  const hosting = useHosting();

  it('is rejected if it is not JSON', async () => {
    const module = `export function setup({ websocket }) {
      websocket('say', (socket) => {
        reached.refused = [undefined, () => 1, Symbol('s'), 1n, { toJSON() {} }].map((message) => {
          try { return socket.send(message); } catch ({ name }) { return name; }
        });
        socket.send('done');
      });
    }`;
    await hosting().write('plain', manifestOf('plain'), module);
    const { url } = await hosting().start();
    const address = `${url.replace('http', 'ws')}/ext/plain/ws/say`;
    const client = new WebSocket(address, ['svc.token', 'admin']);
    const heard = await new Promise((resolve) => {
      client.once('message', (data: Buffer) => resolve(data.toString()));
    });
    client.terminate();
    expect(heard).to.equal('"done"');
    expect(reached['refused']).to.deep.equal(Array.from({ length: 5 }, () => 'TypeError'));
  });
});
