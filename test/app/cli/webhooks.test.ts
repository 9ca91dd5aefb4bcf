import { expect } from 'chai';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { newId } from '../../../domain/ids.ts';
import { streams } from '../../../domain/streams.ts';
import { QuickClock } from '../../support/quick-clock.ts';
import { useRunningApi } from '../../support/running-api.ts';
import { svc, type Called } from './command-line.ts';

const url = 'https://receiver.example/hook';

describe('svc webhooks', () => {
  const api = useRunningApi();

  const callAs = (token: string | null, words: readonly string[]): Promise<Called> =>
    svc(['webhooks', ...words], { env: { SVC_URL: api().url, SVC_TOKEN: token ?? '' } });
  const call = (...words: readonly string[]): Promise<Called> =>
    callAs(api().admin.client.token, words);
  const newAgent = async (webhook_url: string | null = url): Promise<string> => {
    const body = { name: newId(Date.now()), scopes: [], webhook_url };
    return (await api().admin.client.post('/agents', body)).textAt('id');
  };
  /** A test message that is being delivered. */
  const send = async (agent: string): Promise<string> => {
    const [, delivery = ''] = /: (\S+)\n$/.exec((await call('test', agent)).out) ?? [];
    return delivery;
  };
  const attempt = { attempt: 1, secret_version: 0, took_ms: 12, url };
  const deliver = (delivery: string): Promise<void> =>
    api().append(streams.webhook(delivery), [
      { type: 'WebhookDelivered', data: { ...attempt, status: 200, answer: 'ok' } },
    ]);
  const fail = (delivery: string, retry_at: string | null): Promise<void> => {
    const error = 'the receiver answered 410';
    const end = retry_at === null ? ('gone' as const) : null;
    const data = { ...attempt, status: 410, answer: '', error, retry_at, end };
    return api().append(streams.webhook(delivery), [{ type: 'WebhookFailed', data }]);
  };
  /** Waits until the views have the appended events. */
  const seen = async (agent: string): Promise<void> => {
    const after = await api().store.head();
    await api().admin.client.get(`/agents/${agent}/webhooks/deliveries?after=${after}`);
  };

  it('shows a new secret of the named agent or the caller', async () => {
    const agent = await newAgent();
    const made = await call('secret', agent);
    expect(made.out).to.match(
      new RegExp(`^id +${agent}\nsecret +whsec_[A-Za-z0-9+/=]+\nversion +1\n$`),
    );
    expect(made).to.include({ code: 0, err: '' });
    expect((await call('secret', agent, '--json')).json).to.include({
      agent_id: agent,
      version: 2,
    });
    const own = await call('secret', '--json');
    expect(own.json).to.include({ agent_id: api().admin.id, version: 1 });
  });

  it('sends a test message and lists its response', async () => {
    const agent = await newAgent();
    expect((await call('list', agent)).out).to.equal('no deliveries\n');
    const sent = await call('test', agent);
    expect(sent.out).to.match(/^the message is on its way: \S+\n$/);
    expect(sent.err).to.equal(`to see the response: svc webhooks list ${agent}\n`);
    const [, first = ''] = /: (\S+)\n$/.exec(sent.out) ?? [];
    const [second, third] = [await send(agent), await send(agent)];
    await deliver(first);
    await fail(second, '2026-03-01T09:00:05.000Z');
    await fail(third, null);
    await seen(agent);
    const { out } = await call('ls', agent);
    expect(out).to.match(/^ID +TYPE +RUN OR TASK +STATE +CREATED +ATTEMPT +NEXT ATTEMPT +ANSWER\n/);
    for (const row of [
      `${first} +webhook.test +delivered +\\S+ \\S+Z +1 +200`,
      `${second} +webhook.test +pending +\\S+ \\S+Z +1 +2026-03-01 09:00:05Z +the receiver answered 410`,
      `${third} +webhook.test +failed +\\S+ \\S+Z +1 +gone: the receiver answered 410`,
    ]) {
      expect(out).to.match(new RegExp(`^${row}$`, 'm'));
    }
    const quiet = await call('test', agent, '--json');
    expect(quiet.err).to.equal('');
    expect(quiet.json['details']).to.include({ agent_id: agent, state: 'pending' });
  });

  it('lists by state and type, page by page or all', async () => {
    const agent = await newAgent();
    const ids = [await send(agent), await send(agent), await send(agent)];
    await deliver(ids[0] ?? '');
    await seen(agent);
    const page = await call('list', agent, '--limit', '2');
    expect(page.out).to.match(/\n2 of 3 deliveries; continue with --cursor \S+, or use --all\n$/);
    const [, cursor = ''] = /--cursor (\S+),/.exec(page.out) ?? [];
    const rest = await call('list', agent, '--limit', '2', '--cursor', cursor, '--json');
    expect(rest.json).to.include({ total: 3, has_more: false });
    const all = await call('list', agent, '--limit', '1', '--all', '--json');
    const items = all.json['items'] as readonly { readonly id: string }[];
    expect(items.map(({ id }) => id)).to.deep.equal(ids.toReversed());
    const done = await call('list', agent, '--state', 'delivered', '--type', 'webhook.test');
    expect(done.out).to.include(ids[0]).and.not.include(ids[1]);
    expect((await call('list', agent, '--type', 'run.failed')).out).to.equal('no deliveries\n');
    expect((await call('list')).out).to.equal('no deliveries\n');
  });

  it('repeats a finished delivery', async () => {
    const agent = await newAgent();
    const delivery = await send(agent);
    const early = await call('repeat', delivery, '--agent', agent);
    expect(early).to.include({ code: 5, err: 'svc: this delivery is in progress\n' });
    await deliver(delivery);
    const again = await call('repeat', delivery, '--agent', agent);
    expect(again).to.include({ code: 0, out: 'the message is on its way again\n' });
    // It does not belong to the caller.
    expect((await call('repeat', delivery)).code).to.equal(3);
  });

  it('reports errors with their exit codes', async () => {
    const agent = await newAgent(null);
    const { client } = await api().signIn(['tasks:read']);
    const unreadable = `x.${Buffer.from('[]').toString('base64url')}.x`;
    const admin = api().admin.client.token;
    for (const [token, words, code, says] of [
      [admin, ['test', agent], 5, 'the agent has no webhook_url'],
      [admin, ['secret', newId(0)], 3, 'agent'],
      [admin, ['repeat', newId(0)], 3, 'webhook_delivery'],
      [admin, ['list', agent, '--state', 'sent'], 2, 'Allowed choices are pending, delivered'],
      [admin, ['list', agent, '--type', 'run.started'], 2, 'Allowed choices are run.succeeded'],
      [admin, ['list', agent, '--limit', '0'], 2, 'a whole number from 1 to 200'],
      [admin, ['list', agent, '--cursor', 'none'], 2, 'cursor'],
      [admin, ['secret', ''], 2, "the agent's id is empty"],
      [admin, ['repeat', newId(0), '--agent', ''], 2, "the agent's id is empty"],
      [admin, ['repeat', ''], 2, 'the id of the delivery is empty'],
      [admin, ['repeat'], 2, "missing required argument 'delivery'"],
      [admin, ['secret', agent, agent], 2, 'too many arguments'],
      [admin, [], 2, 'Usage: svc webhooks'],
      [client.token, ['list'], 4, 'admin'],
      ['token', ['test'], 4, 'it names no agent'],
      [unreadable, ['test'], 4, 'it names no agent'],
    ] as const) {
      const called = await callAs(token, words);
      expect(called, words.join(' ')).to.include({ code, out: '' });
      expect(called.err, words.join(' ')).to.include(says);
    }
  });

  it('requests a secret once, but a message again, if the response is lost', async () => {
    const asked: string[] = [];
    const server = createServer(({ url: path = '', socket }) => {
      asked.push(path);
      socket.destroy();
    }).listen(0, '127.0.0.1');
    await once(server, 'listening');
    try {
      const { port } = server.address() as AddressInfo;
      const env = { SVC_URL: `http://127.0.0.1:${port}`, SVC_TOKEN: 'token' };
      for (const verb of ['secret', 'test']) {
        const called = await svc(['webhooks', verb, 'a'], { env, clock: new QuickClock() });
        expect(called).to.include({ code: 6, out: '' });
      }
    } finally {
      server.close();
    }
    const again = Array<string>(3).fill('/agents/a/webhook-test');
    expect(asked).to.deep.equal(['/agents/a/webhook-secret', ...again]);
  });
});
