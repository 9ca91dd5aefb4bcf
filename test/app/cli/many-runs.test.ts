import { expect } from 'chai';
import type { DomainEvent } from '../../../domain/events/catalogue.ts';
import { newId } from '../../../domain/ids.ts';
import { plainTask } from '../../api/plain-task.ts';
import { failure, request } from '../../projections/recorded.ts';
import { useRunningApi } from '../../support/running-api.ts';
import { svc, type Called, type Calling } from './command-line.ts';

const started: DomainEvent = {
  type: 'RunStarted',
  data: { worker: 'w', attempt: 1, leased_until: '2026-03-01T09:00:00.000Z' },
};

describe('svc runs, for many runs at once', () => {
  const api = useRunningApi();
  let task: string;

  beforeEach(async () => {
    const { client, id } = api().admin;
    task = (await client.post('/tasks', plainTask(id))).textAt('id');
  });

  const call = (words: readonly string[], calling: Calling = {}): Promise<Called> => {
    const env = { SVC_URL: api().url, SVC_TOKEN: api().admin.client.token ?? '' };
    return svc(['runs', ...words], { env, ...calling });
  };

  /** A run that has started, or not. */
  async function run(params: object = {}, isStarted = true): Promise<string> {
    const id = newId(Date.parse('2026-03-01T08:00:00Z'));
    const created_by = api().admin.id;
    const data = { ...request({ task_id: task, created_by }), params } as never;
    await api().append(`run-${id}`, [
      { type: 'RunRequested', data },
      ...(isStarted ? [started] : []),
    ]);
    return id;
  }

  async function failed(error: string, params: object = {}): Promise<string> {
    const id = await run(params);
    const data = failure({ task_id: task, error });
    await api().append(`run-${id}`, [{ type: 'RunFailed', data }]);
    return id;
  }

  const stateOf = async (id: string): Promise<unknown> =>
    (await api().admin.client.get(`/runs/${id}`)).at('state');
  const questions: string[] = [];
  const saying = (answer: boolean): Calling => ({
    confirm: async (question) => {
      questions.push(question);
      return answer;
    },
  });
  beforeEach(() => questions.splice(0));

  describe('redrive', () => {
    it('says how many would be retried, and retries them once confirmed', async () => {
      await failed('no paper');
      await failed('no paper');
      await failed('no ink');
      const words = ['redrive', '--task', task, '--error', 'PAPER'];
      const dry = await call([...words, '--dry-run']);
      expect(dry).to.include({ code: 0, out: '2 failed runs would be retried\n' });
      const refused = await call(words, saying(false));
      expect(refused).to.include({ code: 0, out: '', err: 'nothing was done\n' });
      expect(questions).to.deep.equal(['Retry 2 failed runs?']);
      const done = await call(words, saying(true));
      expect(done.out).to.equal('2 failed runs are retried\n');
      const again = await call([...words, '--json']);
      expect(again.json['details']).to.deep.include({ count: 0, dry_run: true });
    });

    it('does not ask with --yes, and does nothing without a terminal', async () => {
      await failed('no paper');
      const words = ['redrive', '--task', task];
      const silent = await call(words);
      expect(silent.code).to.equal(2);
      expect(silent.err).to.equal(
        'svc: nothing was done: confirm with --yes, as no terminal can be asked: Retry 1 failed run?\n',
      );
      const done = await call([...words, '--yes', '--json']);
      expect(done.json['details']).to.deep.include({ count: 1, dry_run: false });
    });

    it('accepts a group of errors, which svc runs errors lists', async () => {
      const other = await failed('printer 17 is out of ink');
      await failed('printer 18 is out of paper');
      const listed = await call(['errors', '--days', '31']);
      const [, group = ''] =
        /^([0-9a-f]{16}) +printer <n> is out of ink +1 /m.exec(listed.out) ?? [];
      expect(listed.out).to.match(/^GROUP +ERROR +RUNS +FIRST +LAST +LAST RUN +TASKS\n/);
      expect(listed.out).to.include(other);
      const done = await call(['redrive', '--error-group', group, '--yes', '--json']);
      expect(done.json['details']).to.have.nested.property('runs[0].retry_of', other);
      expect(done.json['details']).to.include({ count: 1 });
    });

    it('retries no more than the limit, and says that there are more', async () => {
      for (let n = 0; n < 3; n += 1) await failed('no paper');
      const done = await call(['redrive', '--task', task, '--limit', '2'], saying(true));
      expect(questions).to.deep.equal(['Retry the first 2 failed runs?']);
      expect(done.out).to.match(/^2 failed runs are retried; there may be more, call it again\n/);
    });
  });

  describe('cancel-many', () => {
    it('cancels the unfinished runs that match, once confirmed', async () => {
      const one = await run({ order: 'order-4711' }, false);
      const other = await run({ order: 'order-4712' }, false);
      const words = ['cancel-many', '--task', task, '--input', 'ORDER-4711'];
      await call(words, saying(false));
      expect(await stateOf(one)).to.equal('queued');
      expect(questions).to.deep.equal(['Cancel 1 unfinished run?']);
      const done = await call(words, saying(true));
      expect(done.out).to.equal('1 unfinished run is canceled\n');
      expect(await stateOf(other)).to.equal('queued');
      expect(await stateOf(one)).to.equal('canceled');
    });
  });

  it('selects only runs of the namespace that an admin names', async () => {
    await api().admin.client.post('/namespaces', { name: 'team-a' });
    const here = await run();
    const elsewhere = ['--namespace', 'team-a', '--json'];
    await failed('no paper');
    for (const command of ['redrive', 'cancel-many']) {
      const { json } = await call([command, '--task', task, ...elsewhere]);
      expect(json['details'], command).to.include({ count: 0 });
    }
    expect(await stateOf(here)).to.equal('running');
  });

  describe('list', () => {
    const found = async (...words: readonly string[]): Promise<unknown> => {
      const { json } = await call(['list', '--task', task, '--json', ...words]);
      return (json['items'] as { id: string }[]).map(({ id }) => id);
    };

    it('searches by id, error, group of errors, input and event', async () => {
      const paper = await failed('no paper', { order: 'order-4711' });
      const ink = await failed('no ink');
      expect(await found('--error', 'PAPER')).to.deep.equal([paper]);
      expect(await found('--input', 'order-4711')).to.deep.equal([paper]);
      expect(await found('--id', ink)).to.deep.equal([ink]);
      expect(await found('--event', newId(0))).to.deep.equal([]);
      const shown = await call(['list', '--task', task, '--error', 'ink']);
      expect(shown).to.include({ code: 0, err: '' });
      expect(shown.out).to.include(ink).and.not.to.include(paper);
    });
  });

  describe('explain', () => {
    it('says why a run ran, who requested it, and what it waits for', async () => {
      const { client } = api().admin;
      const headers = { 'x-reason': 'the auditors ask' };
      const ran = await client.post(`/tasks/${task}/run_now`, {}, { headers });
      const id = ran.textAt('details.run_id');
      const { out, code } = await call(['explain', id]);
      expect(code).to.equal(0);
      expect(out).to.match(/^queued: .+ started it by hand\.\n\nrequested +\S+ \S+Z by .+\n/);
      expect(out).to.match(/\nreason +the auditors ask\n/);
      expect(out).to.match(/\nWAITS FOR +SINCE +UNTIL +BY +REASON +RUNS\n/);
      expect((await call(['explain', newId(0)])).code).to.equal(3);
    });
  });
});
