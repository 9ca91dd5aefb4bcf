import { expect } from 'chai';
import { eventually } from '../support/signals.ts';
import { morning, useToolService } from './tool-protocol.ts';

/** Address of a client behind a trusted proxy. */
const from = (address: string): Readonly<Record<string, string>> => ({
  'x-forwarded-for': address,
});
const basic = (id: string, secret: string): Readonly<Record<string, string>> => ({
  authorization: `Basic ${Buffer.from(`${id}:${secret}`).toString('base64')}`,
});

describe('a service with extensions', () => {
  // One service for all tests, as starting it takes longer than they do.
  const service = useToolService({ SVC_TRUST_PROXY: '1', SVC_WEBUI_REQUIRE_AUTH: 'true' });

  describe('called by one of them', () => {
    const body = { tool: 'create_task', parameters: morning };

    /** How many requests some work costs its caller, including the one that reads the remaining number. */
    async function costOf(work: () => Promise<unknown>): Promise<number> {
      const left = async () => {
        const { headers } = await service().admin.client.get('/topics', { once: true });
        return [headers['x-ratelimit-reset'], Number(headers['x-ratelimit-remaining'])] as const;
      };
      for (;;) {
        const [window, before] = await left();
        await work();
        const [same, after] = await left();
        if (window === same) return before - after;
      }
    }

    it("records the caller's address and the request's id in the log", async () => {
      const { client, id } = service().admin;
      const headers = { ...from('203.0.113.7'), 'x-request-id': 'asked-for-a-task' };
      const answers = [
        await client.post(
          '/ext/webui/api/tasks',
          { ...morning, title: 'By the page' },
          { headers },
        ),
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

    it('lists all tasks on the page, even if they are too large for one response', async () => {
      const { client, id } = service().admin;
      const payload = { pipeline: [{ uses: 'echo', with: { text: 'x'.repeat(60_000) } }] };
      const titles = Array.from({ length: 80 }, (_, number) => `Large ${number}`);
      for (const title of titles) {
        const made = await client.post('/tasks', {
          ...morning,
          title,
          description: title,
          created_by: id,
          payload,
        });
        expect(made.status, made.text).to.equal(201);
      }
      const tasks = (await client.get('/ext/webui/api/tasks')).at('tasks') as { title: string }[];
      const shown = tasks.map(({ title }) => title).filter((title) => title.startsWith('Large '));
      expect(shown).to.deep.equal([...titles].reverse());
    });

    it('returns the titles of existing tasks only', async () => {
      const { client } = service().admin;
      const task = await client.post('/ext/webui/api/tasks', { ...morning, title: 'By its id' });
      const id = task.textAt('id');
      const unknown = '01a1fc11-0505-734a-8920-9c4c55a40f65';
      const titles = await client.get(`/ext/webui/api/titles?ids=${id},${unknown}`);
      const timezone = task.textAt('timezone');
      expect(titles.json).to.deep.equal({ tasks: [{ id, title: 'By its id', timezone }] });
      const refused = await Promise.all(
        ['', '?ids=', `?ids=${Array.from({ length: 101 }, (_, n) => n).join()}`].map((query) =>
          client.get(`/ext/webui/api/titles${query}`),
        ),
      );
      expect(refused.map(({ status }) => status)).to.deep.equal([400, 400, 400]);
    });

    it('returns the states of existing runs only', async () => {
      const { client } = service().admin;
      const made = await client.post('/ext/webui/api/tasks', { ...morning, title: 'To run' });
      const ran = await client.post(`/tasks/${made.textAt('id')}/run_now?wait=20`);
      const id = ran.textAt('details.run_id');
      const unknown = '01a1fc11-0505-734a-8920-9c4c55a40f65';
      const states = await client.get(`/ext/webui/api/states?ids=${id},${unknown}`);
      expect(states.json).to.deep.equal({ runs: [{ id, state: 'succeeded' }] });
      expect((await client.get('/ext/webui/api/states?ids=')).status).to.equal(400);
    });

    it('reports errors in a schedule that is still being typed', async () => {
      const { client } = service().admin;
      const preview = (body: object) => client.post('/ext/webui/api/preview', body);
      const typed = { schedule_kind: 'cron', schedule_expr: '0 9 * *', timezone: 'UTC' };
      const refused = await preview(typed);
      expect([refused.status, refused.at('valid')]).to.deep.equal([200, false]);
      expect(refused.at('issues.0.field'), refused.text).to.equal('schedule_expr');
      const fires = await preview({ ...typed, schedule_expr: '0 9 * * *', count: 2 });
      expect(fires.at('valid'), fires.text).to.equal(true);
      expect(fires.at('schedule_text')).to.equal('at 09:00, every day, UTC');
      expect(fires.textAt('fires.1.local')).to.match(/T09:00:00/);
      expect(fires.at('warnings')).to.deep.equal([]);
      expect((await client.post('/ext/webui/api/preview', typed, { token: null })).status).to.equal(
        401,
      );
      const { client: other } = await service().signUp('types', ['runs:read']);
      expect((await other.post('/ext/webui/api/preview', typed)).status).to.equal(403);
    });

    it('reports errors in the order of all endpoints: path, scope, body', async () => {
      const { client } = await service().signUp('ordered', ['runs:read']);
      const bodies = [
        ['x'.repeat(2 * 1024 * 1024), 'application/json'],
        ['text', 'text/plain'],
        ['{', 'application/json'],
      ] as const;
      const statuses = async (path: string) =>
        Promise.all(
          bodies.map(async ([raw, type]) => {
            const headers = { 'content-type': type };
            return (await client.send('POST', path, { raw, headers })).status;
          }),
        );
      expect(await statuses('/ext/webui/api/tasks')).to.deep.equal([403, 403, 403]);
      expect(await statuses('/ext/webui/api/preview')).to.deep.equal([403, 403, 403]);
      expect(await statuses('/ext/events_demo/publish/s')).to.deep.equal([403, 403, 403]);
      expect(await statuses('/ext/mcp_http/nothing')).to.deep.equal([404, 404, 404]);
      expect(await statuses('/ext/mcp_http/invoke')).to.deep.equal([413, 415, 400]);
    });

    it('lists the methods of a path', async () => {
      const { client } = service().admin;
      const asked = [
        ['OPTIONS', '/ext/mcp_http/invoke', 204, 'POST, OPTIONS'],
        ['OPTIONS', '/ext/mcp_http/tools/echo/schema', 204, 'GET, HEAD, OPTIONS'],
        ['OPTIONS', '/ext/mcp_http/mcp', 204, 'POST, OPTIONS'],
        ['OPTIONS', '/ext/webui/api/tasks', 204, 'GET, POST, HEAD, OPTIONS'],
        ['OPTIONS', '/ext/status', 204, 'GET, HEAD, OPTIONS'],
        ['POST', '/ext/status', 404, 'GET, HEAD, OPTIONS'],
      ] as const;
      for (const [method, path, status, allow] of asked) {
        const answer = await client.send(method, path, { token: null });
        expect([answer.status, answer.header('allow')], path).to.deep.equal([status, allow]);
        if (status === 404)
          expect(answer.at('details')).to.deep.equal({ resource: 'path', id: path });
      }
      const other = await client.get('/ext/mcp_http/invoke');
      expect([other.status, other.header('allow')]).to.deep.equal([404, 'POST, OPTIONS']);
    });

    it('records a rejected call in the audit', async () => {
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

    it("records the address, id and reason of a call in the audit of the caller's actions", async () => {
      const { id, client } = service().admin;
      const said = { 'x-reason': 'because', 'x-request-id': 'for-the-audit' };
      const headers = { ...from('203.0.113.9'), ...said };
      const event = { topic: 'a.b', payload: {} };
      for (const [path, body] of [
        ['webui/api/tasks', morning],
        ['mcp_http/invoke', { tool: 'create_task', parameters: morning }],
        ['mcp_http/invoke', { tool: 'events.publish', parameters: event }],
        ['events_demo/publish/audited', { n: 1 }],
      ] as const) {
        const answer = await client.post(`/ext/${path}`, body, { headers });
        expect(answer.status, answer.text).to.be.below(300);
      }
      await eventually(async () => {
        const audit = await client.get(`/audit?actor=${id}&limit=20`);
        const items = audit.at('items') as readonly Readonly<Record<string, unknown>>[];
        const found = items.filter((item) => item['correlation_id'] === 'for-the-audit');
        const types = [
          'StreamEntryAdded',
          'ToolCalled',
          'EventPublished',
          'TaskCreated',
          'TaskCreated',
        ];
        // Tool calls are recorded within a second, in any order.
        expect(
          found.map(({ type, source, reason }) => [type, source, reason]),
        ).to.have.deep.members(types.map((type) => [type, '203.0.113.9', 'because']));
      });
    });

    it('records a direct tool call with its outcome in the audit', async () => {
      const { client, id } = service().admin;
      const said = { 'x-request-id': 'direct-calls' };
      const headers = { ...from('203.0.113.10'), ...said };
      const secret = 'not-for-the-log';
      for (const [tool, parameters] of [
        ['echo', { text: secret }],
        ['fail', { message: secret }],
      ] as const) {
        const answer = await client.post('/ext/mcp_http/invoke', { tool, parameters }, { headers });
        expect(answer.status, answer.text).to.equal(200);
      }
      await eventually(async () => {
        const audit = await client.get('/audit?correlation_id=direct-calls');
        const items = audit.at('items') as readonly Readonly<Record<string, unknown>>[];
        expect(items.map(({ action, outcome }) => [action, outcome])).to.have.deep.members([
          ['call echo', 'done'],
          ['call fail', 'failed'],
        ]);
        for (const item of items) {
          expect(item).to.include({ actor: id, actor_name: 'admin', source: '203.0.113.10' });
        }
        expect(audit.text).to.not.contain(secret);
      });
      const events = await client.get('/events/export?type=ToolCalled');
      expect(events.text).to.contain('"tool":"echo"').and.not.contain(secret);
    });

    it('records a rejected tool call in the audit, by either protocol', async () => {
      const { client, id } = await service().signUp('without-tools', ['runs:read']);
      const headers = {
        ...from('203.0.113.11'),
        'x-request-id': 'not-allowed',
        accept: 'application/json, text/event-stream',
      };
      const invoked = { tool: 'http_request', parameters: {} };
      const refused = await client.post('/ext/mcp_http/invoke', invoked, { headers });
      expect(refused.status, refused.text).to.equal(403);
      const params = { name: 'list_tasks', arguments: {} };
      const message = { jsonrpc: '2.0', id: 1, method: 'tools/call', params };
      expect((await client.post('/ext/mcp_http/mcp', message, { headers })).text).to.contain(
        'forbidden',
      );
      await eventually(async () => {
        const audit = await service().admin.client.get('/audit?correlation_id=not-allowed');
        const items = audit.at('items') as readonly Readonly<Record<string, unknown>>[];
        expect(items.map(({ action, outcome }) => [action, outcome])).to.have.deep.members([
          ['call http.request', 'refused'],
          ['call list_tasks', 'refused'],
        ]);
        for (const item of items) {
          expect(item).to.include({ actor: id, source: '203.0.113.11' });
          expect(item['call']).to.include({ code: 'forbidden' });
        }
      });
    });

    it('counts a call once against the limits', async () => {
      const { client } = service().admin;
      const task = await client.post('/ext/webui/api/tasks', { ...morning, title: 'Counted' });
      const titles = `/ext/webui/api/titles?ids=${task.textAt('id')}`;
      expect(await costOf(() => client.get(titles, { once: true }))).to.equal(2);
    });

    it('rejects a ticket that a client made', async () => {
      const { client } = service().admin;
      const headers = { 'x-svc-inner': 'a ticket' };
      expect(await costOf(() => client.get('/tasks?limit=1', { headers, once: true }))).to.equal(2);
    });
  });

  describe('whose page is closed by SVC_WEBUI_REQUIRE_AUTH', () => {
    const secret = 'a secret of the page';
    const get = (path: string, headers: Readonly<Record<string, string>>) =>
      service().admin.client.get(path, { token: null, headers });

    before(async () => {
      const { id, client } = service().admin;
      await client.post(`/agents/${service().reader.id}/credentials`, { agent_secret: secret });
      expect(id).not.to.equal(service().reader.id);
    });

    it('makes browsers prompt for an id and a secret', async () => {
      const asked = await get('/ext/webui/', {});
      expect(asked.status).to.equal(401);
      expect(asked.header('www-authenticate')).to.match(/^Basic realm="[^"]+", .*Bearer$/);
      const headers = basic(service().reader.id, secret);
      for (const path of ['/ext/webui/', '/ext/webui/static/index.html']) {
        expect((await get(path, headers)).status, path).to.equal(200);
      }
    });

    it('also accepts a token', async () => {
      const { client } = service().admin;
      expect((await client.get('/ext/webui/')).status).to.equal(200);
      expect((await client.get('/ext/webui/', { token: 'none' })).status).to.equal(401);
    });

    it('accepts a secret only for reading the page', async () => {
      const headers = basic(service().reader.id, secret);
      const answers = await Promise.all([
        get('/runs', headers),
        get('/ext/webui/api/tasks', headers),
        get('/ext/mcp_http/tools', headers),
        service().admin.client.post('/ext/webui/', {}, { token: null, headers }),
      ]);
      expect(answers.map(({ status }) => status)).to.deep.equal([401, 401, 401, 401]);
    });

    it('rejects an old secret, and callers who guess', async () => {
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
      // If a minute ends in between, ten more are allowed.
      while (!statuses.includes(429) && statuses.length < 21) {
        statuses.push((await get('/ext/webui/', basic(id, `guess ${statuses.length}`))).status);
      }
      expect(new Set(statuses)).to.deep.equal(new Set([401, 429]));
    });
  });

  it('publishes its health, metrics and extensions', async () => {
    const open = service().admin.client.as(null);
    const health = await open.get('/health');
    expect(health.status).to.equal(200);
    expect(health.json).to.have.all.keys('status', 'timestamp', 'version', 'checks');
    const checks = health.at('checks') as readonly Readonly<Record<string, unknown>>[];
    expect(checks.map(({ name }) => name)).to.have.members([
      'database',
      'stream_store',
      'scheduler',
      'workers',
      'projections',
    ]);
    for (const check of checks) expect(check).to.include.all.keys('name', 'status', 'message');
    const ready = await open.get('/health/ready');
    expect(ready.json).to.have.all.keys('status', 'checks').and.include({ status: 'ready' });
    const live = await open.get('/health/live');
    expect(live.json).to.have.all.keys('status', 'timestamp', 'version', 'instance');
    expect(live.json).to.include({ status: 'alive', version: health.at('version') });
    expect(live.textAt('instance')).to.match(/^[0-9a-f-]{36}$/);
    expect((await open.get('/openapi.json')).at('info.version')).to.equal(health.at('version'));
    const status = await open.get('/ext/status');
    expect(status.json).to.deep.include({
      discovery_sources: ['builtin', 'env_dir'],
      total_extensions: 5,
      loaded_extensions: 5,
      failed_extensions: 0,
    });
    const found = Object.values(
      status.at('extensions') as Readonly<
        Record<string, { readonly info: { readonly source: string; readonly version: string } }>
      >,
    );
    const builtIn = found.filter(({ info }) => info.source === 'builtin');
    const versions = new Set(builtIn.map(({ info }) => info.version));
    expect([...versions], 'versions of the built-in extensions').to.deep.equal([
      health.at('version'),
    ]);
    expect(status.at('extensions.webui.metrics')).to.have.all.keys(
      'requests_total',
      'errors_total',
      'latency_ms_sum',
    );
    expect((await open.get('/ext/mcp_http/meta')).status).to.equal(200);
    // A request is counted after its response was sent.
    await eventually(async () => {
      const metrics = await open.get('/ext/observability/metrics');
      expect(metrics.header('content-type')).to.match(/^text\/plain; version=0\.0\.4/);
      for (const line of [
        '# HELP http_requests_total',
        '# TYPE http_requests_total counter',
        'http_requests_total{method="GET",endpoint="/health"}',
        '# TYPE task_executions_total counter',
        'extension_requests_total{extension="mcp_http"',
        'process_cpu_seconds_total',
      ]) {
        expect(metrics.text).to.include(line);
      }
    });
  });
});
