import { expect } from 'chai';
import { toIso } from '../../../../domain/clock.ts';
import type { DomainEvent } from '../../../../domain/events/catalogue.ts';
import { toNewEvents } from '../../../../domain/handle.ts';
import { nameBasedId, newId } from '../../../../domain/ids.ts';
import { streams } from '../../../../domain/streams.ts';
import { request } from '../../../projections/recorded.ts';
import { useRunningApi } from '../../../support/running-api.ts';
import { plainTask } from '../../plain-task.ts';

describe('the last run of a task', () => {
  const api = useRunningApi();

  it('is known as long as the task, even if the run was removed', async () => {
    const { client, id: owner } = api().admin;
    const task = (await client.post('/tasks', plainTask(owner))).textAt('id');
    const run = newId(api().clock.now());
    const at = '2026-03-02T09:00:00.000Z';
    await api().append(streams.run(run), [
      { type: 'RunRequested', data: request({ task_id: task, created_by: owner }) },
      { type: 'RunCanceled', data: { attempt: 0 } },
    ]);
    const lastRun = async (): Promise<readonly unknown[]> => {
      const after = await api().store.head();
      for (const path of ['/runs', '/stats/summary']) await client.get(`${path}?after=${after}`);
      const listed = await client.get(`/tasks?created_by=${owner}`);
      const shown = await client.get(`/tasks/${task}`);
      return [shown.at('last_run_at'), listed.at('items.0.last_run_at')];
    };
    expect(await lastRun()).to.deep.equal([null, null]);
    await api().append(streams.run(run), [
      { type: 'RunRemoved', data: { started: { task_id: task, at } } },
    ]);
    expect(await lastRun()).to.deep.equal([at, at]);
    expect((await client.get(`/task/${task}/latest`)).text).to.equal('null');
    const asOf = async (moment: string): Promise<unknown> =>
      (await client.get(`/tasks/${task}?as_of=${moment}`)).at('last_run_at');
    expect(await asOf(await api().store.head())).to.equal(at);
    expect(await asOf(new Date(api().clock.now()).toISOString())).to.equal(at);
  });

  /**
   * A task whose runs are requested and start, each step at its own time.
   * Steps are `[run, what, milliseconds]`.
   */
  const taskWith = async (
    steps: readonly (readonly [run: string, what: 'asked' | 'started', at: number])[],
  ): Promise<{ readonly asOf: (index: number) => Promise<unknown>; readonly begun: number }> => {
    const { client, id: owner } = api().admin;
    const { store, clock } = api();
    const task = (await client.post('/tasks', plainTask(owner))).textAt('id');
    const begun = clock.now();
    const positions: string[] = [];
    for (const [name, what, at] of steps) {
      const now = begun + at;
      const stream = streams.run(nameBasedId(task, name));
      const event: DomainEvent =
        what === 'asked'
          ? { type: 'RunRequested', data: request({ task_id: task, created_by: owner }) }
          : { type: 'RunStarted', data: { worker: 'w', attempt: 1, leased_until: toIso(now) } };
      const context = { commandId: newId(now), actor: 'service', source: 'test', now };
      const events = toNewEvents(stream, [event], { ...context, correlationId: task });
      await store.append(stream, events, 'any');
      positions.push(await store.head());
    }
    await client.get(`/runs?after=${await store.head()}`);
    const asOf = async (index: number): Promise<unknown> =>
      (await client.get(`/tasks/${task}?as_of=${positions[index]}`)).at('last_run_at');
    return { asOf, begun };
  };

  it('counts a start at its own position, even if later events were decided before it', async () => {
    const { asOf, begun } = await taskWith([
      ['one', 'asked', 0],
      ['one', 'started', 30],
      ['two', 'asked', 20],
      ['two', 'started', 40],
    ]);
    expect(await asOf(0)).to.equal(null);
    expect(await asOf(1)).to.equal(toIso(begun + 30));
    expect(await asOf(3)).to.equal(toIso(begun + 40));
  });

  it('is the previous one until the position of the next start, however many start in one millisecond', async () => {
    const many = Array.from({ length: 45 }, (_, n) => `run ${n}`);
    const { asOf, begun } = await taskWith([
      ['before', 'asked', 0],
      ['before', 'started', 1],
      ...many.map((run) => [run, 'asked', 2] as const),
      ...many.map((run) => [run, 'started', 3] as const),
    ]);
    expect(await asOf(1)).to.equal(toIso(begun + 1));
    expect(await asOf(1 + many.length)).to.equal(toIso(begun + 1));
    expect(await asOf(1 + 2 * many.length)).to.equal(toIso(begun + 3));
  });
});
