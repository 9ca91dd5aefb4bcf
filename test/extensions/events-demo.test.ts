import { expect } from 'chai';
import { Agent } from 'node:http';
import { requireReadable } from '../../domain/event-store.ts';
import type { ReceivedResponse } from '../support/api-client.ts';
import { EventStream } from '../support/event-stream.ts';
import { eventually } from '../support/signals.ts';
import { removed, useHosting, withoutScopes } from './hosting.ts';

const replayed = ({ headers }: ReceivedResponse): unknown => headers['idempotent-replayed'];

describe('the event demonstration', () => {
  const hosting = useHosting();

  it('sends each entry to five hundred subscribers, once and in order', async () => {
    const { client, url } = await hosting().start();
    const agent = new Agent({ maxSockets: 600 });
    const address = `${url}/ext/events_demo/subscribe/news`;
    const subscribers = await Promise.all(
      Array.from({ length: 500 }, () => EventStream.open(address, 'reader', {}, agent)),
    );
    const published: unknown[] = [];
    for (let n = 0; n < 5; n += 1) {
      const answer = await client.post('/ext/events_demo/publish/news', { n });
      published.push(answer.at('event_id'));
    }
    await eventually(() => {
      const behind = subscribers.filter(({ messages }) => messages.length < 5);
      expect(behind).to.have.lengthOf(0);
    });
    const received = new Set(
      subscribers.map(({ messages }) => messages.map(({ id }) => id).join()),
    );
    expect([...received]).to.deep.equal([published.join()]);
    for (const each of subscribers) each.close();
    agent.destroy();
  });

  it('lets a hundred subscribers reconnect at once, each at its own position', async () => {
    const { client, url } = await hosting().start();
    const ids: unknown[] = [];
    for (let n = 0; n < 10; n += 1) {
      ids.push((await client.post('/ext/events_demo/publish/news', { n })).at('event_id'));
    }
    const agent = new Agent({ maxSockets: 200 });
    const address = `${url}/ext/events_demo/subscribe/news`;
    const open = (place: number, how: 'again' | 'start' | 'both') => {
      const headers = { ...(how === 'start' ? {} : { 'last-event-id': String(ids[place]) }) };
      return EventStream.open(
        how === 'again' ? address : `${address}?from=start`,
        'reader',
        headers,
        agent,
      );
    };
    const subscribers = await Promise.all(
      Array.from({ length: 99 }, async (_, n) => {
        const how = (['again', 'start', 'both'] as const)[n % 3] ?? 'again';
        const place = n % 10;
        return {
          stream: await open(place, how),
          wanted: how === 'start' ? ids : ids.slice(place + 1),
        };
      }),
    );
    ids.push((await client.post('/ext/events_demo/publish/news', { n: 10 })).at('event_id'));
    await eventually(() => {
      for (const { stream, wanted } of subscribers) {
        const due = wanted === ids ? ids : [...wanted, ids[10]];
        expect(stream.messages.map(({ id }) => id)).to.deep.equal(due);
      }
    });
    for (const { stream } of subscribers) stream.close();
    agent.destroy();
  });

  it('ends the stream of a client whose token is no longer valid, or which has lost the scope', async () => {
    const { client, url } = await hosting().start();
    const open = (name: string) => EventStream.open(`${url}/ext/events_demo/subscribe/news`, name);
    const streams = await Promise.all(['leaving', 'losing', 'reader'].map(open));
    const tools = await EventStream.open(`${url}/ext/mcp_http/sse`, 'leaving');
    const [leaving, losing, reader] = streams;
    await client.post('/ext/events_demo/publish/news', { n: 1 });
    await eventually(() => {
      for (const { messages } of streams) expect(messages).to.have.lengthOf(1);
    });
    removed.add('leaving');
    withoutScopes.add('losing');
    await eventually(() => {
      expect([leaving?.ended, tools.ended]).to.deep.equal([true, true]);
    });
    await client.post('/ext/events_demo/publish/news', { n: 2 });
    await eventually(() => {
      expect(reader?.messages).to.have.lengthOf(2);
      expect(losing?.ended).to.equal(true);
    });
    expect(losing?.messages).to.have.lengthOf(1);
    expect(leaving?.messages).to.have.lengthOf(1);
    reader?.close();
  });

  it('omits an entry that cannot be read, and delivers the others', async () => {
    const { client, url } = await hosting().start();
    const { store } = hosting();
    const readStream = store.readStream.bind(store);
    const broken = new Set<number>([1]);
    store.readStream = async (name, part) => {
      const page = (await readStream(name, part)).map((event) =>
        name === 'demo-news' && broken.has(event.revision) ? { ...event, fault: 'broken' } : event,
      );
      return part?.faulty === true ? page : page.map(requireReadable);
    };
    const publish = async (n: number) =>
      (await client.post('/ext/events_demo/publish/news', { n })).at('event_id');
    const ids = [await publish(0), await publish(1), await publish(2)];
    const address = `${url}/ext/events_demo/subscribe/news`;
    const all = await EventStream.open(`${address}?from=start`, 'reader');
    await eventually(() => {
      expect(all.messages.map(({ id }) => id)).to.deep.equal([ids[0], ids[2]]);
    });
    broken.add(2);
    const next = await EventStream.open(address, 'reader');
    expect(next.status).to.equal(200);
    const last = await publish(3);
    await eventually(() => {
      expect(next.messages.map(({ id }) => id)).to.deep.equal([last]);
    });
    for (const stream of [all, next]) stream.close();
  });

  it('returns the position of a published entry in the log', async () => {
    const { client } = await hosting().start();
    const published = await client.post('/ext/events_demo/publish/news', { n: 1 });
    const position = await hosting().store.head();
    expect([published.status, published.header('x-event-position')]).to.deep.equal([200, position]);
  });

  it('publishes once for the same Idempotency-Key', async () => {
    const { client } = await hosting().start();
    const publish = (body: unknown, key: string, stream = 'news') =>
      client.post(`/ext/events_demo/publish/${stream}`, body, {
        headers: { 'idempotency-key': key },
      });
    const first = await publish({ n: 1 }, 'a');
    expect([first.status, replayed(first)]).to.deep.equal([200, undefined]);
    const again = await publish({ n: 1 }, 'a');
    expect([again.status, replayed(again)]).to.deep.equal([200, 'true']);
    expect(again.json).to.deep.equal(first.json);
    expect(again.header('x-event-position')).to.equal(first.header('x-event-position'));
    const others = await Promise.all([
      publish({ n: 2 }, 'a'),
      publish({ n: 1 }, 'a', 'weather'),
      publish({ n: 1 }, ''),
      publish({ n: 2 }, 'b'),
    ]);
    expect(others.map(({ status }) => status)).to.deep.equal([409, 409, 400, 200]);
    const entries = await hosting().store.readStream('demo-news');
    expect(entries.map(({ data }) => data)).to.deep.equal([{ data: { n: 1 } }, { data: { n: 2 } }]);
  });

  it('completes an interrupted command when it is repeated with the same key', async () => {
    const { client } = await hosting().start();
    const { store } = hosting();
    const append = store.append.bind(store);
    const headers = { 'idempotency-key': 'interrupted' };
    const publish = () => client.post('/ext/events_demo/publish/news', { n: 1 }, { headers });
    store.append = async (stream, events, expected) => {
      if (events[0]?.type === 'CommandAnswered') throw new Error('the process has died');
      return append(stream, events, expected);
    };
    expect((await publish()).status).to.equal(500);
    store.append = append;
    const completed = await publish();
    expect([completed.status, replayed(completed)]).to.deep.equal([200, undefined]);
    expect(await store.readStream('demo-news')).to.have.lengthOf(1);
  });

  it('rejects a caller without permission, an invalid stream, and an invalid position', async () => {
    const { client } = await hosting().start();
    const answers = await Promise.all([
      client.post('/ext/events_demo/publish/a', {}, { token: 'reader' }),
      client.get('/ext/events_demo/subscribe/a', { token: 'scoped' }),
      client.post('/ext/events_demo/publish/a'),
      client.post('/ext/events_demo/publish/a%20b', {}),
      client.get('/ext/events_demo/subscribe/a?from=end'),
      client.get('/ext/events_demo/subscribe/a', { headers: { 'last-event-id': 'x' } }),
      client.get('/ext/events_demo/subscribe/a', { headers: { 'last-event-id': '1-7' } }),
    ]);
    expect(answers.map(({ status }) => status)).to.deep.equal([403, 403, 400, 400, 400, 400, 400]);
    expect(answers.slice(2).map((each) => each.at('details.field'))).to.deep.equal([
      'body',
      'stream',
      'from',
      'Last-Event-ID',
      'Last-Event-ID',
    ]);
  });
});
