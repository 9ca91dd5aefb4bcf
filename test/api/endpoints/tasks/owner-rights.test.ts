import { expect } from 'chai';
import { toNewEvents } from '../../../../domain/handle.ts';
import { newId } from '../../../../domain/ids.ts';
import { useRunningApi, type SignedIn } from '../../../support/running-api.ts';
import { plainTask } from '../../plain-task.ts';
import { ExplainedWorld, minute } from './explaining.ts';

describe('the tasks of an agent that lost its rights', () => {
  const api = useRunningApi();
  const owned = async (): Promise<{ readonly owner: SignedIn; readonly task: string }> => {
    const owner = await api().signIn(['tasks:write', 'tasks:read']);
    const created = await owner.client.post('/tasks', plainTask(owner.id));
    expect(created.status, created.text).to.equal(201);
    return { owner, task: created.textAt('id') };
  };
  const loseScope = async (owner: SignedIn, task: string): Promise<void> => {
    await api().admin.client.put(`/agents/${owner.id}`, { scopes: ['tasks:read'] });
    // Paused as the leading scheduler would.
    const data = { by_failures: false, cause: 'scope_lost' } as const;
    const stream = `task-${task}`;
    const now = api().clock.now();
    const context = { commandId: newId(now), actor: 'service', source: 's', correlationId: task };
    const events = toNewEvents(stream, [{ type: 'TaskPaused', data }], { ...context, now });
    await api().store.append(stream, events, 'any');
  };

  it('show why they were paused', async () => {
    const { owner, task } = await owned();
    const before = await owner.client.get(`/tasks/${task}`);
    expect(before.at('pause_reason')).to.equal(null);
    await loseScope(owner, task);
    const { client } = api().admin;
    const after = await api().store.head();
    const shown = await client.get(`/tasks/${task}?after=${after}`);
    expect([shown.at('status'), shown.at('pause_reason')]).to.deep.equal(['paused', 'scope_lost']);
    const audited = await client.get(`/audit?stream=task-${task}&after=${after}`);
    expect(audited.at('items.0.type'), audited.text).to.equal('TaskPaused');
  });

  it('cannot be resumed until their agent has the scope again', async () => {
    const { admin } = api();
    const { owner, task } = await owned();
    await loseScope(owner, task);
    const refused = await admin.client.post(`/tasks/${task}/resume`);
    expect([refused.status, refused.at('details.reason')]).to.deep.equal([409, 'scope_lost']);
    expect(refused.textAt('message')).to.match(/lost the scope tasks:write/);
    await admin.client.put(`/agents/${owner.id}`, { scopes: ['tasks:write'] });
    expect((await admin.client.post(`/tasks/${task}/resume`)).status).to.equal(200);
    const shown = await admin.client.get(`/tasks/${task}`);
    expect([shown.at('status'), shown.at('pause_reason')]).to.deep.equal(['active', null]);
  });

  it('cannot be run, backfilled or retried manually while it is disabled', async () => {
    const { admin } = api();
    const { owner, task } = await owned();
    await admin.client.post(`/agents/${owner.id}/disable`);
    const span = { from: '2026-01-01T00:00:00Z', to: '2026-01-01T05:00:00Z' };
    for (const [path, body] of [
      [`/tasks/${task}/run_now`, undefined],
      [`/tasks/${task}/backfill`, span],
    ] as const) {
      const refused = await admin.client.post(path, body);
      expect([path, refused.status, refused.at('details.reason')]).to.deep.equal([
        path,
        409,
        'agent_disabled',
      ]);
    }
  });

  it('may be given by an admin to an agent that never had the scope', async () => {
    const never = await api().signIn(['tasks:read']);
    const created = await api().admin.client.post('/tasks', plainTask(never.id));
    expect(created.status, created.text).to.equal(201);
    const run = await api().admin.client.post(`/tasks/${created.textAt('id')}/run_now`);
    expect(run.status, run.text).to.equal(200);
  });

  it('cannot be given to an agent that has lost the scope', async () => {
    const { admin } = api();
    const without = await api().signIn(['tasks:write']);
    await admin.client.put(`/agents/${without.id}`, { scopes: ['tasks:read'] });
    const refused = await admin.client.post('/tasks', plainTask(without.id));
    expect([refused.status, refused.at('details.field')]).to.deep.equal([400, 'created_by']);
  });
});

describe('an explanation of a task whose agent was disabled', () => {
  const api = useRunningApi();

  it('says who did it, and that nothing fires until it is enabled', async () => {
    const world = await ExplainedWorld.open(api(), '2027-03-01T00:00:00.000Z');
    const owner = await api().signIn(['tasks:write']);
    const created = await owner.client.post('/tasks', plainTask(owner.id));
    const task = created.textAt('id');
    const at = world.nextHour;
    await world.until(at - 10 * minute).person.client.post(`/agents/${owner.id}/disable`);
    const held = await world.until(at + minute).explain(task, at);
    expect(held.textAt('message')).to.match(/ada \(.*\) disabled the task's agent at 2027-03-01T/);
    expect(held.textAt('message')).to.match(/Nothing fires until the agent is enabled\./);
    await world.person.client.post(`/agents/${owner.id}/enable?missed=latest`);
    // The test's scheduler does not know agents, so it decides by the task's own policy, an hour late.
    await world.until(at + 50 * minute).decide(task);
    const decided = await world.explain(task, at);
    expect(decided.textAt('message')).to.match(/because its agent was disabled/);
    expect(decided.textAt('message')).to.match(/[Tt]he enabling of the agent with missed=latest/);
  });
});

describe('an explanation of a task that was paused because of its agent', () => {
  const api = useRunningApi();

  it('says why', async () => {
    const world = await ExplainedWorld.open(api(), '2027-04-01T00:00:00.000Z');
    const task = await world.create();
    const at = world.nextHour;
    const data = { by_failures: false, cause: 'scope_lost' } as const;
    await api().append(`task-${task}`, [{ type: 'TaskPaused', data }]);
    const answer = await world.until(at + minute).explain(task, at);
    expect(answer.textAt('message')).to.match(
      /paused the task at .* because its agent had lost the scope tasks:write/,
    );
  });
});
