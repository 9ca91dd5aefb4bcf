import { expect } from 'chai';
import { eventually, found } from '../../support/signals.ts';
import { useWorkerWorld } from './worker-world.ts';

interface ListedRun {
  readonly id: string;
  readonly state: string;
  readonly queued_at: string;
}

describe('tasks that wait for each other', function () {
  this.timeout(120_000);
  const world = useWorkerWorld();

  const task = async (pipeline: readonly object[], more: object = {}): Promise<string> => {
    const me = (await world().admin.get('/agents')).list.find(({ name }) => name === 'admin');
    const made = await world().admin.post('/tasks', {
      title: 'cycle',
      description: 'waits for the other',
      created_by: me?.['id'],
      schedule_kind: 'event',
      schedule_expr: 'never.published',
      max_retries: 0,
      payload: { pipeline },
      ...more,
    });
    expect(made.status, made.text).to.equal(201);
    return made.textAt('id');
  };

  const runsOf = async (taskId: string): Promise<readonly ListedRun[]> =>
    (await world().admin.get(`/runs?task_id=${taskId}`)).at('items') as readonly ListedRun[];

  const calls = (task_id: string, more: object = {}): object => ({
    uses: 'tasks.run',
    with: { task_id, wait: true, ...more },
  });

  it('with a concurrency key, end when a wait reaches its limit, and say until then what blocks them', async () => {
    const key = { concurrency_key: 'shared', concurrency_limit: 1 };
    const one = await task([{ uses: 'echo', with: {} }], key);
    const other = await task([calls(one)]);
    const pipeline = [calls(other, { timeout_seconds: 4 })];
    expect((await world().admin.put(`/tasks/${one}`, { payload: { pipeline } })).status).to.equal(
      200,
    );
    const requested = await world().admin.post(`/tasks/${one}/run_now`);
    const first = requested.textAt('details.run_id');
    // On a slow machine, the first wait can end before anybody looks; the next ones of the chain show the same.
    await eventually(async () => {
      const runs = await runsOf(one);
      const blocked = runs.find(({ state }) => state === 'queued');
      expect(blocked).to.not.equal(undefined);
      const at = blocked?.queued_at ?? '';
      const { text } = await world().admin.get(`/tasks/${one}/explain?at=${at}`);
      const [, holder] =
        /for the concurrency key shared, held by run ([-0-9a-f]+)/.exec(text) ?? [];
      expect(
        runs.map(({ id }) => id).filter((id) => id !== blocked?.id),
        text,
      ).to.include(holder);
    });
    const ended = await world().ended(first);
    expect(ended['state']).to.equal('failed');
    expect(ended['error']).to.match(/^run .* did not end within 4 s$/);
    // Its key is free, so the chain continues until somebody cancels it or its depth is reached.
    await world().admin.post(`/tasks/${one}/cancel`);
    await world().admin.post(`/tasks/${other}/cancel`);
    await found(async () => {
      const runs = [...(await runsOf(one)), ...(await runsOf(other))];
      return runs.every(({ state }) => ['failed', 'canceled'].includes(state)) || undefined;
    });
  });
});
