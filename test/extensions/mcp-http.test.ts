import { expect } from 'chai';
import { version } from '../../app/version.ts';
import type { ReceivedResponse, ApiClient } from '../support/api-client.ts';
import { EventStream } from '../support/event-stream.ts';
import { eventually, found } from '../support/signals.ts';
import { morning, namesOf, registered, serviceTools, useToolService } from './tool-protocol.ts';

/** A list of the value at a path of property names; empty if there is none. */
function at(value: unknown, ...names: readonly string[]): readonly unknown[] {
  const found = names.reduce<unknown>(
    (part, name) => (part as Readonly<Record<string, unknown>> | undefined)?.[name],
    value,
  );
  return found === undefined ? [] : [found];
}

describe('the tool protocol over plain HTTP', () => {
  const service = useToolService();
  let admin: ApiClient;
  let reader: ApiClient;

  before(() => {
    admin = service().admin.client;
    reader = service().reader.client;
  });

  const invoke = (tool: string, parameters: object, client = admin): Promise<ReceivedResponse> =>
    client.post('/ext/mcp_http/invoke', { tool, parameters });

  it('describes itself to everybody, but requires a token for everything else', async () => {
    const open = admin.as(null);
    const meta = await open.get('/ext/mcp_http/meta');
    expect(meta.json).to.deep.equal({
      server: 'mcp_http',
      version,
      capabilities: ['handshake', 'list_tools', 'invoke', 'schema', 'sse'],
    });
    const paths = ['/tools', '/schema', '/tools/echo/schema', '/sse', '/mcp'];
    const answers = await Promise.all(paths.map((path) => open.get(`/ext/mcp_http${path}`)));
    expect(answers.map(({ status }) => status)).to.deep.equal(paths.map(() => 401));
    const posts = ['/handshake', '/invoke', '/mcp'];
    const refused = await Promise.all(posts.map((path) => open.post(`/ext/mcp_http${path}`, {})));
    expect(refused.map(({ status }) => status)).to.deep.equal(posts.map(() => 401));
  });

  it('accepts a handshake from a client that names itself', async () => {
    const client = { name: 'test', version: '2.0' };
    const answer = await admin.post('/ext/mcp_http/handshake', { client });
    expect(answer.status).to.equal(200);
    expect(answer.at('server')).to.deep.equal({ name: 'mcp_http', version });
    expect(answer.textAt('session_id')).to.match(/^[0-9a-f-]{36}$/);
    // The limit counts characters, as the description does.
    const long = { name: '😀'.repeat(200), version: 'é'.repeat(200) };
    const taken = await admin.post('/ext/mcp_http/handshake', { client: long });
    expect(taken.status, taken.text).to.equal(200);
    const faults: readonly (readonly [unknown, string])[] = [
      [{ client: { ...long, name: `${long.name}x` } }, 'client.name'],
      [{}, 'client'],
      [{ client: { name: 'test' } }, 'client.version'],
      [{ client: { name: 7, version: '1' } }, 'client.name'],
      [{ client: { ...client, title: 'Test' } }, 'client.title'],
      [{ client, clients: [] }, 'clients'],
      [[], 'body'],
    ];
    for (const [body, field] of faults) {
      const refused = await admin.post('/ext/mcp_http/handshake', body);
      expect([refused.status, refused.at('details.field')]).to.deep.equal([400, field]);
    }
  });

  it("lists the tools within the caller's scopes", async () => {
    const all = await admin.get('/ext/mcp_http/tools');
    expect(namesOf(all.at('tools'))).to.include.members([...serviceTools, ...registered]);
    for (const tool of all.at('tools') as readonly Record<string, unknown>[]) {
      expect(tool).to.have.all.keys('name', 'description', 'parameters');
      expect(tool['parameters']).to.include({ type: 'object' }).and.have.property('properties');
    }
    const some = await reader.get('/ext/mcp_http/tools');
    expect(namesOf(some.at('tools'))).to.deep.equal(['list_runs', 'get_run', 'get_run_artifact']);
    const { client: stranger } = await service().signUp('stranger', ['events:read']);
    const none = await stranger.get('/ext/mcp_http/tools');
    expect(none.json).to.deep.equal({ tools: [] });
  });

  it('returns the schema of one tool, or of all', async () => {
    const one = await admin.get('/ext/mcp_http/tools/pause_task/schema');
    expect(one.at('properties.task_id')).to.deep.equal({
      type: 'string',
      minLength: 1,
      description: 'id of the task, a UUID',
    });
    const all = await admin.get('/ext/mcp_http/schema');
    expect(all.at('tools.pause_task')).to.deep.equal(one.json);
    expect(all.json).to.include({ server: 'mcp_http' });
    const unknown = await admin.get('/ext/mcp_http/tools/nothing/schema');
    expect([unknown.status, unknown.at('details.id')]).to.deep.equal([404, 'nothing']);
    const hidden = await reader.get('/ext/mcp_http/tools/pause_task/schema');
    expect(hidden.status).to.equal(403);
  });

  it('has exactly the fields of a new task in the schema of create_task', async () => {
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
    const position = created.header('x-event-position');
    expect(await service().admin.client.get(`/tasks?after=${position}`)).to.include({
      status: 200,
    });
    expect(created.at('result.task.created_by')).to.equal(service().admin.id);
    const task_id = created.textAt('result.task_id');
    const got = await invoke('get_task', { task_id });
    expect(got.at('result.title')).to.equal(morning.title);
    expect(got.headers).not.to.have.property('x-event-position');
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

  it('runs a command once for the same key', async () => {
    const command = { ...morning, idempotency_key: 'once-and-no-more' };
    const [one, two] = [await invoke('create_task', command), await invoke('create_task', command)];
    expect(two.textAt('result.task_id')).to.equal(one.textAt('result.task_id'));
  });

  it('runs a command once for the Idempotency-Key of its request, whichever tool it calls', async () => {
    const task_id = (await invoke('create_task', morning)).textAt('result.task_id');
    const keyed = (key: string, tool: string, parameters: object) =>
      admin.post(
        '/ext/mcp_http/invoke',
        { tool, parameters },
        { headers: { 'idempotency-key': key } },
      );
    const calls = [
      ['run_task', { task_id }, 'result.run_id'],
      ['tasks.run', { task_id }, 'result.run_id'],
      ['events.publish', { topic: 'a.b', payload: {} }, 'result.event_id'],
    ] as const;
    for (const [tool, parameters, made] of calls) {
      const first = await keyed(`key of ${tool}`, tool, parameters);
      const again = await keyed(`key of ${tool}`, tool, parameters);
      expect(first.at('success'), first.text).to.equal(true);
      expect(again.at(made)).to.equal(first.at(made));
      expect(again.header('Idempotent-Replayed')).to.equal('true');
      const other = await keyed(`key of ${tool}`, 'pause_task', { task_id });
      expect([other.status, other.at('error')]).to.deep.equal([409, 'conflict']);
    }
    await eventually(async () => {
      const runs = await admin.get(`/runs?task_id=${task_id}`);
      expect(runs.at('total')).to.equal(2);
    });
    const refused = { task_id: '01a20409-85de-73d2-a734-63d40fb2df6f' };
    for (let times = 0; times < 2; times += 1) {
      expect((await keyed('refused', 'run_task', refused)).status).to.equal(404);
    }
    for (const tool of ['run_task', 'tasks.run']) {
      expect((await keyed(`mended ${tool}`, tool, {})).status).to.equal(400);
      expect((await keyed(`mended ${tool}`, tool, { task_id })).status).to.equal(200);
    }
    const read = await keyed('key of run_task', 'list_tasks', {});
    expect(read.status, read.text).to.equal(200);
  });

  it('calls registered tools, and reports their failures', async () => {
    const echoed = await invoke('echo', { text: 'hello' });
    expect(echoed.json).to.deep.equal({ success: true, result: { text: 'hello' } });
    const listed = await invoke('transform', { expression: '[`1`, `2`]', input: null });
    expect(listed.at('result.value'), listed.text).to.deep.equal([1, 2]);
    const failed = await invoke('fail', { message: 'on request' });
    expect([failed.status, failed.at('success')]).to.deep.equal([200, false]);
    expect(failed.at('result')).to.deep.equal({
      error: 'tool_failed',
      message: 'on request',
    });
  });

  it('cuts a large result as a pipeline does, and repeats the cut result for the same key', async () => {
    const headers = { 'idempotency-key': 'large' };
    const body = {
      tool: 'transform',
      parameters: { expression: 'pad_left(@, `600000`)', input: 'x' },
    };
    const first = await admin.post('/ext/mcp_http/invoke', body, { headers });
    expect([first.status, first.at('success')], first.text).to.deep.equal([200, true]);
    expect(first.textAt('result.value')).to.match(/\[cut: 600002 bytes in all\]$/);
    const again = await admin.post('/ext/mcp_http/invoke', body, { headers });
    expect(again.header('idempotent-replayed')).to.equal('true');
    expect(again.json).to.deep.equal(first.json);
    const failed = await invoke('fail', { message: 'x'.repeat(600_000) });
    expect(failed.textAt('result.message')).to.have.length(4000);
  });

  it('offers the tools of other extensions', async () => {
    const { json } = await admin.get('/ext/mcp_http/tools');
    const tools = json['tools'] as readonly Readonly<Record<string, unknown>>[];
    const greet = tools.find(({ name }) => name === 'hello_greet');
    expect(greet).to.deep.include({
      description: 'Greets somebody. In a pipeline: `hello.greet`.',
    });
    for (const name of ['hello_greet', 'hello.greet']) {
      const greeted = await invoke(name, { name: 'Ada' });
      expect(greeted.json).to.deep.equal({ success: true, result: { message: 'Hello, Ada!' } });
      const schema = await admin.get(`/ext/mcp_http/tools/${name}/schema`);
      expect(schema.json).to.deep.equal(greet?.['parameters']);
    }
    const refused = await invoke('hello.greet', {});
    expect([refused.status, refused.at('error')]).to.deep.equal([400, 'bad_request']);
  });

  it('refuses unknown tools, forbidden tools, and invalid parameters', async () => {
    const mistyped = { tool: 'echo', params: { text: 'hello' } };
    const taken = await admin.post('/ext/mcp_http/invoke', mistyped);
    expect([taken.status, taken.at('details.field')]).to.deep.equal([400, 'params']);
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
      ['create_task', { ...morning, schedule_expr: '61 * * * *' }, 'parameters.schedule_expr'],
      ['get_task', { task_id: 'x' }, 'parameters.task_id'],
      ['pause_task', { task_id: 'x' }, 'parameters.task_id'],
      ['get_run', { run_id: 'x' }, 'parameters.run_id'],
      ['list_tasks', { status: 'asleep' }, 'parameters.status'],
      [
        'create_task',
        { ...morning, idempotency_key: 'k'.repeat(201) },
        'parameters.idempotency_key',
      ],
      ['get_task', [], 'parameters'],
    ];
    for (const [tool, parameters, field] of faults) {
      const refused = await invoke(tool, parameters);
      expect([refused.status, refused.at('details.field')]).to.deep.equal([400, field]);
      expect(refused.at('details.issues.0.field')).to.equal(field);
      expect(refused.textAt('message')).to.match(new RegExp(`^${field}: `));
    }
    const nothing = await admin.post('/ext/mcp_http/invoke', { parameters: {} });
    expect([nothing.status, nothing.at('details.field')]).to.deep.equal([400, 'tool']);
  });

  it('lists all errors of a body', async () => {
    const fieldsOf = async (path: string, body: object): Promise<unknown> => {
      const refused = await admin.post(`/ext/mcp_http/${path}`, body);
      const issues = refused.at('details.issues') as readonly { readonly field: string }[];
      return [refused.status, ...issues.map(({ field }) => field)];
    };
    expect(await fieldsOf('handshake', { client: { x: 1 }, y: 1 })).to.deep.equal([
      ...[400, 'y', 'client.x', 'client.name', 'client.version'],
    ]);
    expect(await fieldsOf('handshake', {})).to.deep.equal([400, 'client']);
    expect(await fieldsOf('invoke', { parameters: 5, x: 1 })).to.deep.equal([
      ...[400, 'x', 'tool', 'parameters'],
    ]);
  });

  it('passes on refusals of the service', async () => {
    const task_id = '01a1fc11-0505-734a-8920-9c4c55a40f65';
    const refused = await invoke('get_task', { task_id });
    expect(refused.status).to.equal(404);
    expect(refused.at('details.id')).to.equal(task_id);
    const conflict = await invoke('create_task', morning);
    const made = conflict.textAt('result.task_id');
    await admin.post(`/tasks/${made}/cancel`);
    expect((await invoke('pause_task', { task_id: made })).status).to.equal(409);
    // An id is one segment of a path, whatever it contains.
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
      expect(data).to.deep.include({
        server: 'mcp_http',
        tools: ['list_runs', 'get_run', 'get_run_artifact'],
      });
      const heartbeat = await stream.named('heartbeat');
      expect(heartbeat.data['timestamp']).to.be.a('string');
      expect(stream.messages.filter(({ event }) => event === 'announce')).to.have.lengthOf(1);
    } finally {
      stream.close();
    }
  });

  it('announces the tools again when the scopes change, and ends when the agent is removed', async () => {
    const { id, client } = await service().signUp('passing', ['runs:read']);
    const stream = await EventStream.open(`${admin.url}/ext/mcp_http/sse`, client.token);
    try {
      await stream.named('announce');
      const changed = await admin.put(`/agents/${id}`, { scopes: [] });
      expect(changed.status, changed.text).to.equal(200);
      await stream.message(({ data }) => JSON.stringify(data['tools']) === '[]');
      await admin.delete(`/agents/${id}`);
      await eventually(() => {
        expect(stream.ended).to.equal(true);
      });
    } finally {
      stream.close();
    }
  });

  it('repeats a call by its key if the client disconnected during the first one', async () => {
    const call = { tool: 'sleep', parameters: { seconds: 5 } };
    const keyed = { headers: { 'idempotency-key': 'left' } };
    const active = async (): Promise<string> =>
      (await admin.get('/ext/observability/metrics')).text
        .split('\n')
        .filter((each) => /^extension_active_connections.*mcp_http/.test(each))
        .join();
    const gone = new AbortController();
    const first = fetch(`${admin.url}/ext/mcp_http/invoke`, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${admin.token}`,
        'content-type': 'application/json',
        ...keyed.headers,
      },
      body: JSON.stringify(call),
      signal: gone.signal,
    }).catch(() => null);
    await eventually(async () => void expect(await active()).to.match(/ 1$/));
    gone.abort();
    await first;
    await eventually(async () => void expect(await active()).to.match(/ 0$/));
    const again = await found(async () => {
      const answer = await admin.post('/ext/mcp_http/invoke', call, keyed);
      // The first call may still be ending.
      return answer.status === 409 ? null : answer;
    });
    expect(again.json, again.text).to.deep.equal({ success: true, result: { slept_seconds: 5 } });
    expect(await admin.get('/ext/observability/metrics'))
      .to.have.property('text')
      .that.does.not.match(/^extension_errors_total\{extension="mcp_http"/m);
  });
});
