import { expect } from 'chai';
import { Agent } from 'node:http';
import { EventStream } from '../support/event-stream.ts';
import { eventually } from '../support/signals.ts';
import { useHosting } from './hosting.ts';

describe('the event demonstration', () => {
  const hosting = useHosting();

  it('tells five hundred subscribers of each entry, once and in order', async () => {
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
    const told = new Set(subscribers.map(({ messages }) => messages.map(({ id }) => id).join()));
    expect([...told]).to.deep.equal([published.join()]);
    for (const each of subscribers) each.close();
    agent.destroy();
  });

  it('refuses who may not, what is no stream, and what is no place in it', async () => {
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
      'after',
      'after',
    ]);
  });
});
