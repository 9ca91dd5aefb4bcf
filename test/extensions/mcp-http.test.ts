import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { expect } from 'chai';
import { join } from 'node:path';
import { SystemClock } from '../../app/clock.ts';
import { readConfiguration } from '../../app/configuration.ts';
import { startService, type RunningService } from '../../app/service.ts';
import { createTelemetry } from '../../observability/create-telemetry.ts';
import { ApiClient, type ApiAnswer } from '../support/api-client.ts';
import { projectRoot } from '../support/project-root.ts';
import { EventStream } from '../support/event-stream.ts';
import { eventually } from '../support/signals.ts';
import { makeTemporaryDirectory } from '../support/temporary-directory.ts';

const serviceTools = [
  'list_tasks',
  'get_task',
  'create_task',
  'preview_schedule',
  'run_task',
  'pause_task',
  'resume_task',
  'explain_task',
  'list_runs',
  'get_run',
  'run_events',
];

const registered = ['echo', 'log', 'sleep', 'fail', 'transform', 'http.request', 'events.publish'];

const morning = {
  title: 'Morning report',
  description: 'On weekdays at nine',
  schedule_kind: 'cron',
  schedule_expr: '0 9 * * MON-FRI',
  timezone: 'Europe/Berlin',
  payload: { pipeline: [{ id: 'say', uses: 'echo', with: { text: 'Good morning' } }] },
};

const namesOf = (tools: unknown): readonly string[] =>
  (tools as readonly { readonly name: string }[]).map(({ name }) => name);

/** What stands at a path of names: one value, or none. */
function at(value: unknown, ...names: readonly string[]): readonly unknown[] {
  const found = names.reduce<unknown>(
    (part, name) => (part as Readonly<Record<string, unknown>> | undefined)?.[name],
    value,
  );
  return found === undefined ? [] : [found];
}

describe('the tool protocol', () => {
  let service: RunningService;
  let admin: ApiClient;
  let adminId: string;
  /** Clients of agents with one scope each. */
  let reader: ApiClient;
  let stranger: ApiClient;
  let removeDirectory: () => Promise<void>;

  before(async () => {
    const directory = await makeTemporaryDirectory();
    removeDirectory = directory.remove;
    service = await startService({
      configuration: readConfiguration({
        SVC_PORT: '0',
        SVC_HOST: '127.0.0.1',
        SVC_DATA_DIR: directory.path,
        SVC_LOG_LEVEL: 'silent',
        SVC_EXT_MCP_HTTP_HEARTBEAT_SECONDS: '0.02',
        SVC_EXT_PATHS: join(projectRoot, 'examples/hello'),
      }),
      clock: new SystemClock(),
      telemetry: createTelemetry({ level: 'silent' }),
      secrets: () => undefined,
    });
    const first = await service.firstAdmin;
    if (first === null) throw new Error('an empty store has no first agent');
    const open = new ApiClient(service.address, null);
    await eventually(async () => {
      const { status, text } = await open.get('/health/ready');
      expect(status, text).to.equal(200);
    });
    admin = open.as(await tokenOf(open, first));
    adminId = first.agent_id;
    reader = open.as(await agentWith('runs:read'));
    stranger = open.as(await agentWith('events:read'));
  });

  after(async () => {
    admin.close();
    await service.stop();
    await removeDirectory();
  });

  async function tokenOf(client: ApiClient, credentials: object): Promise<string> {
    const { agent_id, agent_secret } = credentials as Readonly<Record<string, string>>;
    const answer = await client.post('/agents/auth/token', { agent_id, agent_secret });
    return answer.textAt('access_token');
  }

  async function agentWith(scope: string): Promise<string> {
    const made = await admin.post('/agents', { name: scope, scopes: [scope] });
    const agent_id = made.textAt('id');
    const credentials = await admin.post(`/agents/${agent_id}/credentials`);
    return tokenOf(admin, { agent_id, agent_secret: credentials.textAt('agent_secret') });
  }

  const invoke = (tool: string, parameters: object, client = admin): Promise<ApiAnswer> =>
    client.post('/ext/mcp_http/invoke', { tool, parameters });

  describe('over plain HTTP', () => {
    it('says what it is to everybody, and nothing else without a token', async () => {
      const open = admin.as(null);
      const meta = await open.get('/ext/mcp_http/meta');
      expect(meta.json).to.deep.equal({
        server: 'mcp_http',
        version: '1.0.0',
        capabilities: ['handshake', 'list_tools', 'invoke', 'schema', 'sse'],
      });
      const paths = ['/tools', '/schema', '/tools/echo/schema', '/sse', '/mcp'];
      const answers = await Promise.all(paths.map((path) => open.get(`/ext/mcp_http${path}`)));
      expect(answers.map(({ status }) => status)).to.deep.equal(paths.map(() => 401));
      const posts = ['/handshake', '/invoke', '/mcp'];
      const refused = await Promise.all(posts.map((path) => open.post(`/ext/mcp_http${path}`, {})));
      expect(refused.map(({ status }) => status)).to.deep.equal(posts.map(() => 401));
    });

    it('shakes hands with a client that says who it is', async () => {
      const client = { name: 'test', version: '2.0' };
      const answer = await admin.post('/ext/mcp_http/handshake', { client });
      expect(answer.status).to.equal(200);
      expect(answer.at('server')).to.deep.equal({ name: 'mcp_http', version: '1.0.0' });
      expect(answer.textAt('session_id')).to.match(/^[0-9a-f-]{36}$/);
      const faults: readonly (readonly [unknown, string])[] = [
        [{}, 'client'],
        [{ client: { name: 'test' } }, 'client.version'],
        [{ client: { name: 7, version: '1' } }, 'client.name'],
        [[], 'body'],
      ];
      for (const [body, field] of faults) {
        const refused = await admin.post('/ext/mcp_http/handshake', body);
        expect([refused.status, refused.at('details.field')]).to.deep.equal([400, field]);
      }
    });

    it('lists the tools that the scopes of the caller allow', async () => {
      const all = await admin.get('/ext/mcp_http/tools');
      expect(namesOf(all.at('tools'))).to.include.members([...serviceTools, ...registered]);
      for (const tool of all.at('tools') as readonly Record<string, unknown>[]) {
        expect(tool).to.have.all.keys('name', 'description', 'parameters');
        expect(tool['parameters']).to.include({ type: 'object' }).and.have.property('properties');
      }
      const some = await reader.get('/ext/mcp_http/tools');
      expect(namesOf(some.at('tools'))).to.deep.equal(['list_runs', 'get_run']);
      const none = await stranger.get('/ext/mcp_http/tools');
      expect(none.json).to.deep.equal({ tools: [] });
    });

    it('has the schema of one tool, and of all', async () => {
      const one = await admin.get('/ext/mcp_http/tools/pause_task/schema');
      expect(one.at('properties.task_id')).to.deep.equal({ type: 'string', minLength: 1 });
      const all = await admin.get('/ext/mcp_http/schema');
      expect(all.at('tools.pause_task')).to.deep.equal(one.json);
      expect(all.json).to.include({ server: 'mcp_http' });
      const unknown = await admin.get('/ext/mcp_http/tools/nothing/schema');
      expect([unknown.status, unknown.at('details.id')]).to.deep.equal([404, 'nothing']);
      const hidden = await reader.get('/ext/mcp_http/tools/pause_task/schema');
      expect(hidden.status).to.equal(403);
    });

    it('asks for the fields that the service takes in a new task', async () => {
      const schema = await admin.get('/ext/mcp_http/tools/create_task/schema');
      const { idempotency_key, ...own } = schema.at('properties') as Record<string, unknown>;
      expect(idempotency_key).to.be.an('object');
      const { json: description } = await admin.get('/openapi.json');
      const fields = at(description, 'paths', '/tasks', 'post', 'requestBody', 'content')
        .map((content) => at(content, 'application/json', 'schema')[0])
        .map((found) => {
          const named = at(found, '$ref')[0];
          if (typeof named !== 'string') return found;
          return at(description, ...named.split('/').slice(1))[0];
        })
        .flatMap((found) => Object.keys(at(found, 'properties')[0] as object));
      expect(Object.keys(own)).to.have.members(fields).and.include('schedule_kind');
    });

    it('creates, previews, runs, pauses, resumes and explains a task, and shows its runs', async () => {
      const created = await invoke('create_task', morning);
      expect(created.status, created.text).to.equal(200);
      expect(created.at('success')).to.equal(true);
      expect(created.at('result.task.created_by')).to.equal(adminId);
      const task_id = created.textAt('result.task_id');
      expect((await invoke('get_task', { task_id })).at('result.title')).to.equal(morning.title);
      const listed = await invoke('list_tasks', { search: 'Morning' });
      expect(listed.at('result.items.0.id')).to.equal(task_id);
      const preview = await invoke('preview_schedule', { task_id, count: 2 });
      expect(preview.at('result.fires')).to.have.lengthOf(2);
      const ran = await invoke('run_task', { task_id, wait_seconds: 30 });
      expect(ran.at('result.task_id'), ran.text).to.equal(task_id);
      const run_id = ran.textAt('result.run_id');
      const run = await invoke('get_run', { run_id });
      expect(run.at('result.state'), run.text).to.equal('succeeded');
      const runs = await invoke('list_runs', { task_id, success: true });
      expect(runs.at('result.items.0.id'), runs.text).to.equal(run_id);
      const events = await invoke('run_events', { run_id, limit: 1 });
      expect(events.at('result.items.0.type'), events.text).to.equal('RunRequested');
      const paused = await invoke('pause_task', { task_id });
      expect(paused.at('result')).to.include({ task_id, new_status: 'paused' });
      const resumed = await invoke('resume_task', { task_id, missed: 'skip' });
      expect(resumed.at('result')).to.include({ task_id, new_status: 'active' });
      const at = preview.textAt('result.fires.0.at');
      const explained = await invoke('explain_task', { task_id, at });
      expect(explained.at('result'), explained.text).to.include({ task_id, fired: false });
    });

    it('takes a command with the same key once', async () => {
      const command = { ...morning, idempotency_key: 'once-and-no-more' };
      const [one, two] = [
        await invoke('create_task', command),
        await invoke('create_task', command),
      ];
      expect(two.textAt('result.task_id')).to.equal(one.textAt('result.task_id'));
    });

    it('calls every registered tool, and says when it has failed', async () => {
      const echoed = await invoke('echo', { text: 'hello' });
      expect(echoed.json).to.deep.equal({ success: true, result: { text: 'hello' } });
      const listed = await invoke('transform', { expression: '[`1`, `2`]', input: null });
      expect(listed.at('result.value'), listed.text).to.deep.equal([1, 2]);
      const failed = await invoke('fail', { message: 'as it was told' });
      expect([failed.status, failed.at('success')]).to.deep.equal([200, false]);
      expect(failed.at('result')).to.deep.equal({
        error: 'tool_failed',
        message: 'as it was told',
      });
    });

    it('has the tools of other extensions', async () => {
      const { json } = await admin.get('/ext/mcp_http/tools');
      const tools = json['tools'] as readonly Readonly<Record<string, unknown>>[];
      const greet = tools.find(({ name }) => name === 'hello.greet');
      expect(greet).to.deep.include({ description: 'Greets somebody.' });
      const greeted = await invoke('hello.greet', { name: 'Ada' });
      expect(greeted.json).to.deep.equal({ success: true, result: { message: 'Hello, Ada!' } });
      const refused = await invoke('hello.greet', {});
      expect([refused.status, refused.at('error')]).to.deep.equal([400, 'bad_request']);
    });

    it('refuses tools that are not there or not allowed, and parameters at fault', async () => {
      const unknown = await invoke('nothing', {});
      expect(unknown.status).to.equal(404);
      expect(unknown.at('details')).to.include({ resource: 'tool', id: 'nothing' });
      const forbidden = await invoke('run_task', { task_id: 'x' }, reader);
      expect(forbidden.status).to.equal(403);
      expect(forbidden.at('details')).to.deep.include({ required_scopes: ['tasks:write'] });
      expect((await invoke('echo', {}, reader)).status).to.equal(403);
      const faults: readonly (readonly [string, object, string])[] = [
        ['get_task', {}, 'parameters.task_id'],
        ['get_task', { task_id: 7 }, 'parameters.task_id'],
        ['get_task', { task_id: 'x', other: 1 }, 'parameters.other'],
        ['run_task', { task_id: 'x', wait_seconds: 61 }, 'parameters.wait_seconds'],
        ['sleep', { seconds: 'long' }, 'parameters.seconds'],
        ['create_task', { ...morning, schedule_expr: '61 * * * *' }, 'schedule_expr'],
        ['get_task', [], 'parameters'],
      ];
      for (const [tool, parameters, field] of faults) {
        const refused = await invoke(tool, parameters);
        expect([refused.status, refused.at('details.field')]).to.deep.equal([400, field]);
      }
      const nothing = await admin.post('/ext/mcp_http/invoke', { parameters: {} });
      expect([nothing.status, nothing.at('details.field')]).to.deep.equal([400, 'tool']);
    });

    it("hands the service's own refusals on", async () => {
      const task_id = '01a1fc11-0505-734a-8920-9c4c55a40f65';
      const refused = await invoke('get_task', { task_id });
      expect(refused.status).to.equal(404);
      expect(refused.at('details.id')).to.equal(task_id);
      const conflict = await invoke('create_task', morning);
      const made = conflict.textAt('result.task_id');
      await admin.post(`/tasks/${made}/cancel`);
      expect((await invoke('pause_task', { task_id: made })).status).to.equal(409);
      // An id is a part of one path, whatever stands in it.
      expect((await invoke('get_task', { task_id: '../health' })).status).to.equal(400);
    });

    it('announces the tools as server-sent events, with heartbeats', async () => {
      const stream = await EventStream.open(`${admin.url}/ext/mcp_http/sse`, reader.token);
      try {
        expect([stream.status, stream.contentType]).to.deep.equal([
          200,
          'text/event-stream; charset=utf-8',
        ]);
        const { data } = await stream.named('announce');
        expect(data).to.deep.include({ server: 'mcp_http', tools: ['list_runs', 'get_run'] });
        const heartbeat = await stream.named('heartbeat');
        expect(heartbeat.data['timestamp']).to.be.a('string');
        expect(stream.messages.filter(({ event }) => event === 'announce')).to.have.lengthOf(1);
      } finally {
        stream.close();
      }
    });

    it('announces other tools when the scopes change, and ends with the token', async () => {
      const made = await admin.post('/agents', { name: 'passing', scopes: ['runs:read'] });
      const agent_id = made.textAt('id');
      const { json } = await admin.post(`/agents/${agent_id}/credentials`);
      const token = await tokenOf(admin, { agent_id, agent_secret: json['agent_secret'] ?? '' });
      const stream = await EventStream.open(`${admin.url}/ext/mcp_http/sse`, token);
      try {
        await stream.named('announce');
        const changed = await admin.put(`/agents/${agent_id}`, { scopes: [] });
        expect(changed.status, changed.text).to.equal(200);
        await stream.message(({ data }) => JSON.stringify(data['tools']) === '[]');
        await admin.delete(`/agents/${agent_id}`);
        await eventually(() => {
          expect(stream.ended).to.equal(true);
        });
      } finally {
        stream.close();
      }
    });
  });

  describe('by the Model Context Protocol', () => {
    const clients: Client[] = [];

    async function connect(token: string | null): Promise<Client> {
      const client = new Client({ name: 'test', version: '1.0.0' });
      const headers = token === null ? {} : { authorization: `Bearer ${token}` };
      const url = new URL(`${service.address}/ext/mcp_http/mcp`);
      const transport = new StreamableHTTPClientTransport(url, { requestInit: { headers } });
      clients.push(client);
      await client.connect(transport);
      return client;
    }

    afterEach(async () => {
      await Promise.all(clients.splice(0).map((client) => client.close()));
    });

    it("serves the SDK's own client: tools listed, called, and refused", async () => {
      const client = await connect(admin.token);
      expect(client.getServerVersion()).to.include({ name: 'mcp_http', version: '1.0.0' });
      expect(client.getServerCapabilities()).to.deep.equal({ tools: { listChanged: false } });
      expect(client.getInstructions()).to.include('preview_schedule');
      const { tools } = await client.listTools();
      expect(namesOf(tools)).to.include.members([...serviceTools, ...registered]);
      const marked = tools.filter(({ annotations }) => annotations?.readOnlyHint === true);
      expect(namesOf(marked)).to.include('list_tasks').and.not.include('run_task');
      const created = await client.callTool({ name: 'create_task', arguments: morning });
      expect(created.isError, JSON.stringify(created)).to.equal(false);
      const { task_id } = created.structuredContent as { readonly task_id: string };
      const got = await client.callTool({ name: 'get_task', arguments: { task_id } });
      expect(got.structuredContent).to.include({ id: task_id, title: morning.title });
      const [content] = got.content as readonly { readonly text: string }[];
      expect(JSON.parse(content?.text ?? '')).to.deep.equal(got.structuredContent);
      const greeting = { name: 'hello.greet', arguments: { name: 'Ada' } };
      const greeted = await client.callTool(greeting);
      expect(greeted.structuredContent).to.deep.equal({ message: 'Hello, Ada!' });
      const echoed = await client.callTool({ name: 'echo', arguments: { a: [1] } });
      expect(echoed.structuredContent).to.deep.equal({ a: [1] });
      const refused = await client.callTool({ name: 'get_task', arguments: {} });
      expect(refused.isError).to.equal(true);
      expect(refused.structuredContent).to.include({ error: 'bad_request' });
      const failed = await client.callTool({ name: 'fail', arguments: { message: 'no' } });
      expect([failed.isError, failed.structuredContent]).to.deep.equal([
        true,
        { error: 'tool_failed', message: 'no' },
      ]);
      const unknown = await client.callTool({ name: 'nothing' }).catch((error: unknown) => error);
      expect(unknown).to.be.an('error').with.property('code', -32_602);
    });

    it('lists and allows what the scopes of the caller allow', async () => {
      const client = await connect(reader.token);
      const { tools } = await client.listTools();
      expect(namesOf(tools)).to.deep.equal(['list_runs', 'get_run']);
      const refused = await client.callTool({ name: 'run_task', arguments: { task_id: 'x' } });
      expect(refused.structuredContent).to.include({ error: 'forbidden' });
    });

    it('needs a token, and JSON', async () => {
      const refused = await connect(null).catch((error: unknown) => error);
      expect(refused).to.be.an('error');
      const text = await admin.send('POST', '/ext/mcp_http/mcp', {
        raw: 'hello',
        headers: { 'content-type': 'text/plain' },
      });
      expect(text.status).to.equal(415);
      const ended = await admin.delete('/ext/mcp_http/mcp');
      expect([ended.status, ended.header('allow')]).to.deep.equal([405, 'POST']);
    });
  });
});
