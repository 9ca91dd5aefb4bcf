import { expect } from 'chai';
import { eventually, found } from '../../support/signals.ts';
import { plainTask } from '../plain-task.ts';
import { leaksIn, steady } from './observing.ts';
import type { Pair } from './resident.ts';
import { FAR_CRON, phantoms, type Things, unhurried } from './things.ts';
import { stepAttempts } from './tool-attempts.ts';

/** Tests that neither events nor steps of pipelines reach from one namespace into another. */
export function itReachesNothingBySteps(pair: () => Pair): void {
  const runWith = (uses: string, given: object): Promise<string> =>
    runOf([{ id: 'reach', uses, with: given }]);
  const runOf = async (pipeline: readonly object[]): Promise<string> => {
    const { client, id } = pair().me.owner;
    const task = await client.post('/tasks', {
      ...plainTask(id),
      schedule_expr: FAR_CRON,
      payload: { pipeline },
      max_retries: 0,
    });
    expect(task.status, task.text).to.equal(201);
    const run = await client.post(`/tasks/${task.textAt('id')}/run_now`);
    return run.textAt('details.run_id');
  };
  const settled = async (run: string): Promise<string> => {
    const { client } = pair().me.owner;
    return found(async () => {
      const { text, json } = await client.get(`/runs/${run}`);
      return ['succeeded', 'failed', 'waiting'].includes(String(json['state'])) ? text : null;
    });
  };
  const runsOf = async (task: string): Promise<number> =>
    Number((await pair().other.owner.client.get(`/runs?task_id=${task}`)).at('total'));

  it("has no task triggered by events of that agent, and triggers none of that agent's tasks", async () => {
    const { me, other } = pair();
    const { topic, eventTask } = other.things;
    const before = await runsOf(eventTask);
    const { client, id } = me.owner;
    const listener = await client.post('/tasks', {
      ...plainTask(id),
      schedule_kind: 'event',
      schedule_expr: '#',
    });
    const mine = listener.textAt('id');
    const publish = (owner: Pair['me']['owner']) =>
      owner.client.post('/events', { topic, payload: {}, source_agent_id: owner.id });
    const theirs = await publish(other.owner);
    expect(theirs.at('details.triggered_tasks')).to.deep.equal([eventTask]);
    const own = await publish(me.owner);
    expect(own.at('details.triggered_tasks')).to.deep.equal([mine]);
    await eventually(async () => (await runsOf(eventTask)) === before + 1);
    const recent = await client.get(`/stream/recent?topic=${encodeURIComponent(topic)}`);
    expect(leaksIn(recent.text, [other.things.mark, other.owner.id], topic)).to.deep.equal([]);
    await client.post(`/tasks/${mine}/cancel`);
  });

  it('waits for events, but never receives one of that agent, past or future', async () => {
    const { me, other } = pair();
    const { topic } = other.things;
    const signal = `own.${me.things.mark}`;
    const publish = (owner: Pair['me']['owner'], to: string) =>
      owner.client.post('/events', { topic: to, payload: {}, source_agent_id: owner.id });
    const begin = async (pipeline: readonly object[]): Promise<string> => {
      const run = await runOf(pipeline);
      await settled(run);
      return run;
    };
    const own = { id: 'own', uses: 'wait.event', with: { topic: signal } };
    const theirs = { id: 'theirs', uses: 'wait.event', with: { topic } };
    const since = (pattern: string) => ({ ...theirs, with: { topic: pattern, since: 'run' } });
    const toCome = await begin([theirs]);
    const past = await begin([own, since(topic)]);
    const pastOfPattern = await begin([own, since(topic.replace('orders', '*'))]);
    const control = await begin([own, { ...own, id: 'again', with: { topic: `${signal}.again` } }]);
    await publish(other.owner, topic);
    await publish(me.owner, signal);
    const isAtSecond = async (run: string): Promise<boolean> => {
      const { text } = await me.owner.client.get(`/runs/${run}`);
      return text.includes('"step":"theirs"') || text.includes('"step":"again"');
    };
    for (const run of [past, pastOfPattern, control]) await eventually(() => isAtSecond(run));
    // All earlier events have been matched once this one ends the wait.
    await publish(me.owner, `${signal}.again`);
    await eventually(async () => (await settled(control)).includes('"state":"succeeded"'));
    for (const run of [toCome, past, pastOfPattern]) {
      expect(await settled(run)).to.include('"state":"waiting"');
    }
  });

  it('cannot publish into that namespace with the tool events.publish', async () => {
    const { other } = pair();
    const { eventTask, topic } = other.things;
    const before = await runsOf(eventTask);
    const step = stepAttempts['events.publish']?.(other.things) ?? {};
    expect(await settled(await runWith('events.publish', step))).to.include('"state":"succeeded"');
    expect(await runsOf(eventTask)).to.equal(before);
    const { text } = await other.owner.client.get(
      `/stream/recent?topic=${encodeURIComponent(topic)}`,
    );
    expect(text).not.to.include('forged');
  });

  it('can no more run a task of that agent than one that never existed', async () => {
    const { other } = pair();
    const tried = async (things: Things): Promise<string> => {
      const answer = await settled(
        await runWith('tasks.run', stepAttempts['tasks.run']?.(things) ?? {}),
      );
      const { state, error } = JSON.parse(answer) as Record<string, unknown>;
      return steady(`${String(state)}: ${String(error)}`, things);
    };
    expect(await tried(other.things)).to.equal(await tried(phantoms(other.things)));
  });

  it('offers a tool of the same name only to its own namespace, and gets no jobs of the other', async () => {
    const { me, other } = pair();
    const { workerTool, worker } = other.things;
    const schemaFor = ({ client }: Pair['me']['owner']) =>
      client.get(`/ext/mcp_http/tools/${workerTool}/schema`);
    const before = await schemaFor(other.owner);
    const schema = { type: 'object', properties: { mine: {} } };
    const tools = [{ name: workerTool, description: 'Mine', schema }];
    const made = await me.owner.client.post('/workers', { name: 'same', slots: 5, tools });
    expect(made.status, made.text).to.equal(201);
    expect((await schemaFor(me.owner)).text).to.include('mine');
    expect((await schemaFor(other.owner)).text).to.equal(before.text);
    const pipeline = [{ id: 'job', uses: workerTool, with: {}, ...unhurried }];
    const { client, id } = other.owner;
    const fields = { ...plainTask(id), schedule_expr: FAR_CRON, payload: { pipeline } };
    const task = await client.post('/tasks', fields);
    expect(task.at('warnings'), task.text).to.deep.equal([]);
    // The neighbour polls first.
    const mine = made.textAt('worker_id');
    const polled = me.owner.client.post(`/workers/${mine}/jobs?max=5&wait=3`);
    await client.post(`/tasks/${task.textAt('id')}/run_now`);
    const theirs = await client.post(`/workers/${worker}/jobs?max=5&wait=10`);
    expect(theirs.at('jobs'), theirs.text).to.have.lengthOf(1);
    expect((await polled).at('jobs')).to.deep.equal([]);
  });
}
