import { expect } from 'chai';
import { newId } from '../../../../domain/ids.ts';
import { streams } from '../../../../domain/streams.ts';
import { useRunningApi } from '../../../support/running-api.ts';

const url = 'https://receiver.example/hook';

describe('webhooks over HTTP', () => {
  const api = useRunningApi();

  const agent = async (
    webhook_url: string | null = url,
    namespace = 'default',
  ): Promise<string> => {
    const body = { name: newId(Date.now()), scopes: [], webhook_url, namespace };
    const created = await api().admin.client.post('/agents', body);
    expect(created.status, created.text).to.equal(201);
    return created.textAt('id');
  };

  /** A test message that was sent. */
  const sent = async (id: string): Promise<string> => {
    const answer = await api().admin.client.post(`/agents/${id}/webhook-test`);
    expect(answer.status, answer.text).to.equal(202);
    expect(answer.at('details')).to.include({ agent_id: id, state: 'pending' });
    return answer.textAt('details.delivery_id');
  };

  const delivered = (delivery: string, attempt = 1): Promise<void> =>
    api().append(streams.webhook(delivery), [
      {
        type: 'WebhookDelivered',
        data: { attempt, secret_version: 0, took_ms: 12, url, status: 200, answer: 'ok' },
      },
    ]);

  it('show a new secret once, and never write it to an event', async () => {
    const { client } = api().admin;
    const id = await agent();
    const first = await client.post(`/agents/${id}/webhook-secret`);
    expect(first.status, first.text).to.equal(200);
    expect(first.json).to.include({ agent_id: id, version: 1 });
    expect(first.textAt('webhook_secret')).to.match(/^whsec_[A-Za-z0-9+/=]+$/);
    const second = await client.post(`/agents/${id}/webhook-secret`);
    expect(second.at('version')).to.equal(2);
    expect(second.at('webhook_secret')).to.not.equal(first.at('webhook_secret'));
    expect(second.header('ETag')).to.equal('"2"');
    const events = await api().store.readStream(streams.agent(id));
    expect(events.map(({ type }) => type)).to.deep.equal([
      'AgentRegistered',
      'WebhookSecretRotated',
      'WebhookSecretRotated',
    ]);
    expect(JSON.stringify(events)).to.not.contain('whsec_');
  });

  it('can be tested with a message, which is listed with its responses', async () => {
    const { client } = api().admin;
    const id = await agent();
    const delivery = await sent(id);
    const path = `/agents/${id}/webhooks/deliveries`;
    const pending = await client.get(path);
    expect(pending.at('items.0')).to.deep.include({
      id: delivery,
      agent_id: id,
      type: 'webhook.test',
      state: 'pending',
      attempts: [],
      repeats: 0,
      event_id: null,
      finished_at: null,
    });
    expect(pending.at('items.0.payload.data')).to.deep.equal({ agent_id: id });
    await delivered(delivery);
    const after = await api().store.head();
    const done = await client.get(`${path}?after=${after}`);
    expect(done.at('items.0')).to.include({ state: 'delivered', next_attempt_at: null });
    expect(done.at('items.0.attempts.0')).to.include({ status: 200, answer: 'ok', error: null });
  });

  it('are listed newest first, by state and type, page by page', async () => {
    const { client } = api().admin;
    const id = await agent();
    const ids = [await sent(id), await sent(id), await sent(id)];
    await delivered(ids[0] ?? '');
    const after = await api().store.head();
    const path = `/agents/${id}/webhooks/deliveries?limit=2&after=${after}`;
    const first = await client.get(path);
    expect(first.json).to.include({ total: 3, has_more: true });
    expect(first.at('items.0.id')).to.equal(ids[2]);
    const second = await client.get(`${path}&cursor=${first.textAt('next_cursor')}`);
    expect(second.json).to.include({ has_more: false, next_cursor: null });
    expect(second.at('items.0.id')).to.equal(ids[0]);
    const filtered = await client.get(`${path}&state=pending&type=webhook.test`);
    expect(filtered.at('total')).to.equal(2);
    const none = await client.get(`${path}&type=run.failed`);
    expect(none.at('total')).to.equal(0);
  });

  it('are listed for all agents if they have been sent more than once', async () => {
    const { client } = api().admin;
    const id = await agent();
    const [once, twice] = [await sent(id), await sent(id)];
    await delivered(once);
    await delivered(twice);
    const path = `/agents/${id}/webhooks/deliveries/${twice}/repeat`;
    expect((await client.post(path)).status).to.equal(202);
    await delivered(twice);
    const listed = await client.get(`/webhooks/resent?after=${await api().store.head()}`);
    const found = listed.at('items') as readonly { id: string; resent_at: string }[];
    expect(found.map(({ id: each }) => each))
      .to.include(twice)
      .and.not.include(once);
    expect(found[0]?.resent_at).to.be.a('string');
    const elsewhere = await client.get('/webhooks/resent?namespace=elsewhere');
    expect(elsewhere.at('total')).to.equal(0);
  });

  it('name their namespace, except the default one', async () => {
    const { client } = api().admin;
    await client.post('/namespaces', { name: 'shop' });
    const [here, there] = [await agent(), await agent(url, 'shop')];
    const namespaces = await Promise.all(
      [here, there].map(async (id) => {
        await sent(id);
        const after = await api().store.head();
        const listed = await client.get(`/agents/${id}/webhooks/deliveries?after=${after}`);
        return listed.at('items.0.namespace');
      }),
    );
    expect(namespaces).to.deep.equal([undefined, 'shop']);
  });

  it('cannot be tested for an agent without an address', async () => {
    const id = await agent(null);
    const answer = await api().admin.client.post(`/agents/${id}/webhook-test`);
    expect(answer.status).to.equal(409);
    expect(answer.at('details')).to.deep.equal({ field: 'webhook_url' });
  });

  it('are tested once if the command is repeated', async () => {
    const { client } = api().admin;
    const id = await agent();
    const headers = { 'idempotency-key': newId(Date.now()) };
    const first = await client.send('POST', `/agents/${id}/webhook-test`, { headers });
    const second = await client.send('POST', `/agents/${id}/webhook-test`, { headers });
    expect(second.at('details.delivery_id')).to.equal(first.at('details.delivery_id'));
  });

  it('are sent again only after they have ended, and only for their own agent', async () => {
    const { client } = api().admin;
    const id = await agent();
    const other = await agent();
    const delivery = await sent(id);
    const path = `/agents/${id}/webhooks/deliveries/${delivery}/repeat`;
    const early = await client.post(path);
    expect(early.status).to.equal(409);
    expect(early.at('details')).to.deep.equal({ state: 'pending' });
    await delivered(delivery);
    const again = await client.post(path);
    expect(again.status, again.text).to.equal(202);
    expect(again.at('details')).to.include({ delivery_id: delivery, state: 'pending' });
    const listed = await client.get(`/agents/${id}/webhooks/deliveries`);
    expect(listed.at('items.0')).to.include({ state: 'pending', repeats: 1 });
    for (const [to, what] of [
      [other, delivery],
      [id, newId(0)],
    ] as const) {
      const unknown = await client.post(`/agents/${to}/webhooks/deliveries/${what}/repeat`);
      expect(unknown.status).to.equal(404);
      expect(unknown.at('details')).to.deep.equal({ resource: 'webhook_delivery', id: what });
    }
  });
});
