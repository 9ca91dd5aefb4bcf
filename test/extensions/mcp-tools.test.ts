import { expect } from 'chai';
import { taskDefaults } from '../../domain/tasks/task-definition.ts';
import { EXPOSED_NAME } from '../../extensions/mcp_http/tool-names.ts';
import { eventually } from '../support/signals.ts';
import { morning, useToolService } from './tool-protocol.ts';

type Schema = Readonly<Record<string, unknown>>;

/** A schema and every schema within it. */
function schemasIn(value: unknown): readonly Schema[] {
  if (Array.isArray(value)) return value.flatMap(schemasIn);
  if (typeof value !== 'object' || value === null) return [];
  const schema = value as Schema;
  const { default: _default, enum: _enum, ...parts } = schema;
  return [schema, ...Object.values(parts).flatMap(schemasIn)];
}

describe('the tools for language models', () => {
  const service = useToolService();
  const invoke = (tool: string, parameters: object) =>
    service().admin.client.post('/ext/mcp_http/invoke', { tool, parameters });
  const result = async (tool: string, parameters: object): Promise<Schema> => {
    const answer = await invoke(tool, parameters);
    expect([answer.status, answer.at('success')], answer.text).to.deep.equal([200, true]);
    return answer.at('result') as Schema;
  };
  const create = async (more: object = {}): Promise<string> =>
    (await result('create_task', { ...morning, ...more }))['task_id'] as string;
  const listed = async () => {
    const { json } = await service().admin.client.get('/ext/mcp_http/tools');
    return json['tools'] as readonly { readonly name: string; readonly parameters: Schema }[];
  };

  it('have names, and arrays with items, as every client requires', async () => {
    for (const { name, parameters } of await listed()) {
      expect(name).to.match(EXPOSED_NAME);
      const arrays = schemasIn(parameters).filter(({ type }) => [type].flat().includes('array'));
      for (const schema of arrays) expect(schema, name).to.have.property('items').an('object');
    }
  });

  it('describe every parameter', async () => {
    const own = (await listed()).filter(({ name }) => name !== 'hello_greet');
    const bare = own.flatMap(({ name, parameters }) =>
      Object.entries(parameters['properties'] as Readonly<Record<string, Schema>>)
        .filter(([, { description }]) => typeof description !== 'string')
        .map(([parameter]) => `${name}.${parameter}`),
    );
    expect(bare).to.deep.equal([]);
  });

  it('return a large result of a run', async () => {
    const text = 'x'.repeat(200_000);
    const pipeline = [{ id: 'big', uses: 'echo', with: ['${params.text}', '${params.text}'] }];
    const task_id = await create({ payload: { params: { text }, pipeline } });
    const { run } = await result('run_task', { task_id, wait_seconds: 30 });
    const { id: run_id, output } = run as Schema;
    const { artifact } = (output as { steps: { big: { artifact: string } } }).steps.big;
    const { value } = await result('get_run_artifact', { run_id, artifact });
    expect(value).to.deep.equal([text, text]);
    expect((await invoke('get_run_artifact', { run_id, artifact: 'x' })).status).to.equal(404);
  });

  it('list, approve and reject approvals', async () => {
    const pipeline = [{ id: 'ask', uses: 'approval', with: { message: 'Pay?' } }];
    const asked = async () => {
      const task_id = await create({ payload: { pipeline }, max_retries: 0 });
      const { run_id } = await result('run_task', { task_id });
      const pending = { state: 'pending', run_id };
      let id: unknown;
      await eventually(async () => {
        const { items } = await result('list_approvals', pending);
        id = (items as readonly Schema[])[0]?.['id'];
        return id !== undefined;
      });
      return { approval_id: id, run_id };
    };
    const hasEnded = async (run_id: unknown, state: string): Promise<boolean> =>
      (await result('get_run', { run_id }))['state'] === state;
    const one = await asked();
    const { approval_id } = one;
    const approved = await result('approve_approval', { approval_id, comment: 'fine' });
    expect(approved).to.include({
      approval_id,
      state: 'approved',
      message: 'the step is approved',
    });
    await eventually(() => hasEnded(one.run_id, 'succeeded'));
    const other = await asked();
    await result('reject_approval', { approval_id: other.approval_id });
    await eventually(() => hasEnded(other.run_id, 'failed'));
    expect((await invoke('reject_approval', { approval_id })).status).to.equal(409);
  });

  it('list workers, and the child runs of a run', async () => {
    const tools = [{ name: 'mcp.offered', description: '-', schema: {} }];
    const { client } = service().admin;
    const made = await client.post('/workers', { name: 'mailer', slots: 1, tools });
    expect(made.status, made.text).to.equal(201);
    const { items: workers } = await result('list_workers', {});
    const [worker] = workers as readonly Schema[];
    expect(worker).to.include({ name: 'mailer', id: made.textAt('worker_id') });
    const child = await create({});
    const call = { id: 'call', uses: 'tasks.run', with: { task_id: child, wait: true } };
    const task_id = await create({ payload: { pipeline: [call] } });
    const { run_id: parent_run_id } = await result('run_task', { task_id, wait_seconds: 10 });
    const { items: runs } = await result('list_runs', { parent_run_id });
    const found = (runs as readonly Schema[]).map((run) => [run['task_id'], run['parent_run_id']]);
    expect(found).to.deep.equal([[child, parent_run_id]]);
  });

  it('declare the defaults that a created task has', async () => {
    const { parameters } = (await listed()).find(({ name }) => name === 'create_task') ?? {};
    const properties = Object.entries(parameters?.['properties'] as Record<string, Schema>);
    const declared = properties
      .filter(([, schema]) => 'default' in schema)
      .map(([name, schema]) => [name, schema['default']] as const);
    const { schedule_expr: _given, ...rest } = Object.fromEntries(declared);
    expect({ schedule_expr: null, ...rest }).to.deep.equal({ ...taskDefaults });
    const { timezone: _zone, ...plain } = morning;
    const { task } = await result('create_task', plain);
    expect(task).to.deep.include(rest);
  });

  it('change the given fields of a task, and only at the revision that the caller knows', async () => {
    const task_id = await create({ tags: ['kept'] });
    const changed = await result('update_task', { task_id, title: 'Évening', reason: 'später ✓' });
    expect(changed['task']).to.deep.include({ title: 'Évening', tags: ['kept'], revision: 1 });
    const history = await service().admin.client.get(`/tasks/${task_id}/history`);
    expect(history.at('items.1.reason')).to.equal('später ✓');
    const stale = await invoke('update_task', { task_id, title: 'Night', if_revision: 0 });
    expect([stale.status, stale.at('error')]).to.deep.equal([412, 'precondition_failed']);
    const fault = await invoke('update_task', { task_id, priority: 10 });
    expect([fault.status, fault.at('details.field')]).to.deep.equal([400, 'parameters.priority']);
  });

  it('snooze and cancel a task', async () => {
    const task_id = await create();
    const snoozed = await result('snooze_task', { task_id, delay_seconds: 60 });
    expect(snoozed).to.include({ task_id, delay_seconds: 60 });
    const canceled = await result('cancel_task', { task_id, reason: 'no longer needed' });
    expect(canceled).to.include({ task_id, new_status: 'canceled' });
    const again = await invoke('snooze_task', { task_id, delay_seconds: 60 });
    expect(again.status).to.equal(409);
  });

  it('cancel a run, and retry one that has failed', async () => {
    const failing = { pipeline: [{ uses: 'fail', with: { message: 'no', retryable: false } }] };
    const task_id = await create({ payload: failing, max_retries: 0 });
    const { run_id, run } = await result('run_task', { task_id, wait_seconds: 30 });
    expect(run).to.include({ state: 'failed' });
    const retried = await result('retry_run', { run_id, from: 'start' });
    expect(retried).to.include({ retry_of: run_id, task_id });
    const long = { pipeline: [{ uses: 'sleep', with: { seconds: 20 } }] };
    const started = await result('run_task', { task_id: await create({ payload: long }) });
    const canceled = await result('cancel_run', { run_id: started['run_id'] });
    expect(canceled).to.include({ run_id: started['run_id'] });
  });

  it('give a run params, which the schema of its task checks', async () => {
    const task_id = await create({
      payload: {
        params: { text: 'good day' },
        pipeline: [
          { id: 'say', uses: 'echo', with: { text: '${params.text}' } },
          { uses: 'fail', with: { message: 'no', retryable: false } },
        ],
      },
      params_schema: { type: 'object', properties: { text: { type: 'string' } } },
      max_retries: 0,
    });
    const ran = async (tool: string, parameters: object) => {
      const { run_id } = await result(tool, parameters);
      const shown = await result('get_run', { run_id });
      return { run_id, params: shown['params'] };
    };
    const asked = { task_id, params: { text: 'hello' }, wait_seconds: 30 };
    const { run_id, params } = await ran('run_task', asked);
    expect(params).to.deep.equal({ text: 'hello' });
    const retried = await ran('retry_run', { run_id, from: 'start', params: { text: 'again' } });
    expect(retried.params).to.deep.equal({ text: 'again' });
    const refused = await invoke('run_task', { task_id, params: { text: 1 } });
    expect(refused.status).to.equal(400);
    expect(refused.text).to.contain('params.text: must be string');
  });

  it('publish an event as the caller, once for the same key', async () => {
    const event = { topic: 'orders.created', idempotency_key: 'order 1' };
    const one = await result('publish_event', event);
    expect(one).to.include({ topic: 'orders.created' }).and.have.property('event_id');
    const two = await result('publish_event', event);
    expect(two['event_id']).to.equal(one['event_id']);
    const recent = await service().admin.client.get('/stream/recent?topic=orders.created');
    expect(recent.at('events.0')).to.deep.include({
      payload: {},
      source_agent_id: service().admin.id,
    });
    const fault = await invoke('publish_event', { topic: 'no spaces' });
    expect([fault.status, fault.at('details.field')]).to.deep.equal([400, 'parameters.topic']);
  });
});
