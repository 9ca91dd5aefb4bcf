import { expect } from 'chai';
import type { CommandContext } from '../../../../domain/handle.ts';
import { newId } from '../../../../domain/ids.ts';
import { changeKey } from '../../../../domain/keys/key-stream.ts';
import { MAX_WAITERS, holdKey, releaseKey, type KeyName } from '../../../../domain/keys/key.ts';
import { useRunningApi, type SignedIn } from '../../../support/running-api.ts';
import { plainTask } from '../../plain-task.ts';

describe('a concurrency key over HTTP', () => {
  const api = useRunningApi();
  let caller: SignedIn;
  beforeEach(async () => {
    caller = await api().signIn(['tasks:read', 'tasks:write']);
  });

  const at = (key: string): string => `/concurrency/${encodeURIComponent(key)}`;
  const nameOf = (key: string): KeyName => ({ kind: 'concurrency', owner: caller.id, key });
  const context = (): CommandContext => {
    const now = api().clock.now();
    return { commandId: newId(now), actor: 'service', source: 'w', correlationId: 'c', now };
  };
  async function makeTask(key: string | null, limit: number): Promise<string> {
    const fields = { concurrency_key: key, concurrency_limit: limit };
    const answer = await caller.client.post('/tasks', { ...plainTask(caller.id), ...fields });
    expect(answer.status, answer.text).to.equal(201);
    return answer.textAt('id');
  }
  async function request(task: string): Promise<string> {
    return (await caller.client.post(`/tasks/${task}/run_now`)).textAt('details.run_id');
  }
  /** Requests the key as a worker does just before it starts a run. */
  async function ask(key: string, task_id: string, run_id: string, limit: number, priority = 5) {
    const { now } = context();
    const claim = { run_id, task_id, trigger: 'manual', priority, since: now, limit } as const;
    await changeKey(api().store, nameOf(key), context(), (state) => {
      const { events, outcome } = holdKey(state, { ...claim, attempt: 1 }, now);
      return { events, answer: outcome };
    });
  }

  it('shows its holders and waiting runs, in order', async () => {
    const task = await makeTask('printer', 1);
    const runs = [await request(task), await request(task), await request(task)] as const;
    await ask('printer', task, runs[0], 1);
    await ask('printer', task, runs[1], 1);
    await ask('printer', task, runs[2], 1, 2);
    const { status, json } = await caller.client.get(at('printer'));
    expect(status).to.equal(200);
    const { holders, waiters, ...rest } = json as Record<'holders' | 'waiters', object[]>;
    expect(rest).to.deep.equal({ key: 'printer', limit: 1, more_waiters: 0 });
    expect(holders.map((each) => Object.keys(each))).to.deep.equal([
      ['run_id', 'task_id', 'since'],
    ]);
    expect(holders[0]).to.include({ run_id: runs[0], task_id: task });
    expect(waiters).to.have.lengthOf(2);
    expect(waiters[0]).to.include({ run_id: runs[2], task_id: task, priority: 2 });
    expect(waiters[1]).to.include({ run_id: runs[1], task_id: task, priority: 5 });
  });

  it('is free again when its holder releases it', async () => {
    const task = await makeTask('scanner', 1);
    const run = await request(task);
    await ask('scanner', task, run, 1);
    await changeKey(api().store, nameOf('scanner'), context(), (state) => ({
      events: releaseKey(state, run),
      answer: null,
    }));
    expect((await caller.client.get(at('scanner'))).at('holders')).to.deep.equal([]);
  });

  it('has the smallest limit of its current runs, or else of the active tasks that use it', async () => {
    const wide = await makeTask('plotter', 5);
    const narrow = await makeTask('plotter', 2);
    const limit = async (): Promise<unknown> =>
      (await caller.client.get(at('plotter'))).at('limit');
    expect(await limit()).to.equal(2);
    await caller.client.post(`/tasks/${narrow}/pause`);
    expect(await limit()).to.equal(5);
    await ask('plotter', wide, await request(wide), 4);
    expect(await limit()).to.equal(4);
  });

  it('that no task uses is free and has no limit', async () => {
    await makeTask('a', 1);
    const { status, json } = await caller.client.get(at('b'));
    expect(status).to.equal(200);
    expect(json).to.deep.equal({
      key: 'b',
      limit: null,
      holders: [],
      waiters: [],
      more_waiters: 0,
    });
  });

  it('shows the start of its queue, and how many wait after that', async () => {
    const task = await makeTask('door', 1);
    const other = await makeTask('door', 1);
    await ask('door', task, newId(0), 1);
    for (let n = 0; n < MAX_WAITERS; n += 1) {
      await ask('door', task, await request(task), 1);
    }
    for (let n = 0; n < 7; n += 1) await request(other);
    const answer = await caller.client.get(at('door'));
    expect(answer.at('waiters')).to.have.lengthOf(MAX_WAITERS);
    expect(answer.at('more_waiters')).to.equal(7);
  });

  it('belongs to the caller or to the named agent', async () => {
    const task = await makeTask('printer', 3);
    await ask('printer', task, newId(0), 3);
    const stranger = await api().signIn(['tasks:read']);
    const own = await stranger.client.get(at('printer'));
    expect(own.json).to.include({ limit: null }).and.to.deep.include({ holders: [] });
    const named = await stranger.client.get(`${at('printer')}?created_by=${caller.id}`);
    expect(named.at('limit')).to.equal(3);
    expect(named.at('holders')).to.have.lengthOf(1);
  });

  it('is any string of up to 200 characters', async () => {
    for (const key of ['a/b', 'ä ö?&#%', '..x', '🖨'.repeat(200), ' ', '%2F']) {
      await makeTask(key, 7);
      const answer = await caller.client.get(at(key));
      expect(answer.status, answer.text).to.equal(200);
      expect(answer.json).to.include({ key, limit: 7 });
    }
    const long = await caller.client.get(at('x'.repeat(201)));
    expect(long.status).to.equal(400);
    expect(long.at('details.field')).to.equal('key');
    expect((await caller.client.get('/concurrency/%ff')).status).to.equal(400);
  });
});
