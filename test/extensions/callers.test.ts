import { expect } from 'chai';
import { eventually } from '../support/signals.ts';
import { morning, useToolService } from './tool-protocol.ts';

/** Of a client behind the proxy that the service trusts. */
const from = (address: string): Readonly<Record<string, string>> => ({
  'x-forwarded-for': address,
});
const basic = (id: string, secret: string): Readonly<Record<string, string>> => ({
  authorization: `Basic ${Buffer.from(`${id}:${secret}`).toString('base64')}`,
});

describe('a request to an extension that asks the service', () => {
  const service = useToolService({ SVC_TRUST_PROXY: '1', SVC_WEBUI_REQUIRE_AUTH: 'true' });
  const body = { tool: 'create_task', parameters: morning };

  /** How many requests are left of the caller's window, by the answer to one more. */
  async function left(): Promise<number> {
    const answer = await service().admin.client.get('/topics');
    return Number(answer.header('x-ratelimit-remaining'));
  }

  it("stands in the log with the caller's address and the request's id", async () => {
    const { client, id } = service().admin;
    const headers = { ...from('203.0.113.7'), 'x-request-id': 'asked-for-a-task' };
    const answers = [
      await client.post('/ext/webui/api/tasks', { ...morning, title: 'By the page' }, { headers }),
      await client.post('/ext/mcp_http/invoke', body, { headers }),
    ];
    const tasks = [answers[0]?.at('id'), answers[1]?.at('result.task_id')];
    for (const task of tasks) {
      const stream = await client.get(`/streams/task-${String(task)}`);
      expect(stream.at('items.0.metadata'), stream.text).to.include({
        actor: id,
        source: '203.0.113.7',
        $correlationId: 'asked-for-a-task',
      });
    }
  });

  it('is refused in the audit from there, too', async () => {
    const { client } = await service().signUp('refused', ['tasks:read']);
    const headers = from('203.0.113.8');
    const refused = await client.post('/ext/webui/api/tasks', morning, { headers });
    expect(refused.status).to.equal(403);
    await eventually(async () => {
      const audit = await service().admin.client.get('/audit?type=CommandRefused');
      expect(audit.at('items.0'), audit.text).to.deep.include({
        source: '203.0.113.8',
        action: 'POST /tasks',
      });
    });
  });

  it('counts once against the limits', async () => {
    const before = await left();
    await service().admin.client.get('/ext/webui/api/tasks');
    // The one to the extension, and the one that asks.
    expect(before - (await left())).to.equal(2);
  });

  it('takes no ticket that a client has made', async () => {
    const before = await left();
    const headers = { 'x-svc-inner': 'a ticket' };
    await service().admin.client.get('/tasks?limit=1', { headers });
    expect(before - (await left())).to.equal(2);
  });
});

describe('the page, closed by SVC_WEBUI_REQUIRE_AUTH', () => {
  const service = useToolService({ SVC_WEBUI_REQUIRE_AUTH: 'true' });
  const secret = 'a secret of the page';
  const get = (path: string, headers: Readonly<Record<string, string>>) =>
    service().admin.client.get(path, { token: null, headers });

  before(async () => {
    const { id, client } = service().admin;
    await client.post(`/agents/${service().reader.id}/credentials`, { agent_secret: secret });
    expect(id).not.to.equal(service().reader.id);
  });

  it('lets browsers ask for an id and a secret', async () => {
    const asked = await get('/ext/webui/', {});
    expect(asked.status).to.equal(401);
    expect(asked.header('www-authenticate')).to.match(/^Basic realm="[^"]+", .*Bearer$/);
    const headers = basic(service().reader.id, secret);
    for (const path of ['/ext/webui/', '/ext/webui/static/index.html']) {
      expect((await get(path, headers)).status, path).to.equal(200);
    }
  });

  it('opens by a token as well', async () => {
    const { client } = service().admin;
    expect((await client.get('/ext/webui/')).status).to.equal(200);
    expect((await client.get('/ext/webui/', { token: 'none' })).status).to.equal(401);
  });

  it('takes a secret for the page alone, and for reading it', async () => {
    const headers = basic(service().reader.id, secret);
    const answers = await Promise.all([
      get('/runs', headers),
      get('/ext/webui/api/tasks', headers),
      get('/ext/mcp_http/tools', headers),
      service().admin.client.post('/ext/webui/', {}, { token: null, headers }),
    ]);
    expect(answers.map(({ status }) => status)).to.deep.equal([401, 401, 401, 401]);
  });

  it('closes with a new secret, and to those who guess', async () => {
    const { id } = await service().signUp('visitor', []);
    const given = async (agent_secret: string) =>
      service().admin.client.post(`/agents/${id}/credentials`, { agent_secret });
    await given('the first secret');
    expect((await get('/ext/webui/', basic(id, 'the first secret'))).status).to.equal(200);
    await given('the second secret');
    expect((await get('/ext/webui/', basic(id, 'the first secret'))).status).to.equal(401);
    const unknown = ['', 'no-uuid:x', `${id}`].map((text) => ({
      authorization: `Basic ${Buffer.from(text).toString('base64')}`,
    }));
    for (const headers of unknown) {
      expect((await get('/ext/webui/', headers)).status).to.equal(401);
    }
    const statuses: number[] = [];
    // A minute that ends meanwhile lets ten more through.
    while (!statuses.includes(429) && statuses.length < 21) {
      statuses.push((await get('/ext/webui/', basic(id, `guess ${statuses.length}`))).status);
    }
    expect(new Set(statuses)).to.deep.equal(new Set([401, 429]));
  });
});
