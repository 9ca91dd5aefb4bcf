import { expect } from 'chai';
import { JobInterruptedError, PermanentError, type Job } from '../../../api/worker/worker.ts';
import { deferred, eventually, Signal } from '../../support/signals.ts';
import { fetchBut, useWorkerWorld } from './worker-world.ts';

describe('a worker in TypeScript', function () {
  this.timeout(60_000);
  const world = useWorkerWorld();

  it('does a job, whose result becomes the result of the step', async () => {
    const jobs = new Signal<Job>('jobs');
    const args = new Signal<unknown>('arguments');
    await world().worker({
      'sums.add': ({ a, b }, job) => {
        args.send({ a, b });
        jobs.send(job);
        return { sum: Number(a) + Number(b) };
      },
    });
    const run = await world().run({ id: 'add', uses: 'sums.add', with: { a: 1, b: 2 } });
    expect(await world().result(run, 'add')).to.deep.equal({ sum: 3 });
    expect(args.values).to.deep.equal([{ a: 1, b: 2 }]);
    const [job] = jobs.values;
    expect(job).to.include({ runId: run, step: 'add', tool: 'sums.add', attempt: 1 });
    expect(job?.idempotencyKey).to.equal(`${run}:add`);
    const left = (job?.deadline.getTime() ?? 0) - Date.now();
    expect(left).to.be.within(20_000, 30_000);
    expect(job?.signal.aborted).to.be.false;
  });

  it('shows progress and log lines while the job runs', async () => {
    const go = deferred();
    await world().worker({
      slow: async (_args, { log, progress }) => {
        log('half of it', 'warn');
        progress(0.5);
        await go.promise;
        log('all of it');
        return 'done';
      },
    });
    const run = await world().run({ uses: 'slow' });
    await eventually(async () => {
      const { text } = await world().read(run);
      return text.includes('half of it') && text.includes('0.5');
    });
    go.resolve();
    const { log } = await world().ended(run);
    const lines = log as readonly { readonly level: string; readonly message: string }[];
    expect(lines.map(({ level, message }) => `${level} ${message}`)).to.deep.equal([
      'warn half of it',
      'info all of it',
    ]);
  });

  it('rejects an invalid progress', async () => {
    await world().worker({ broken: (_args, { progress }) => progress(50) });
    const ended = await world().ended(await world().run({ uses: 'broken' }));
    expect(String(ended['error'])).to.include('progress must be a number from 0 to 1, got 50');
  });

  it('is called again after an error, with the same key, as often as the step allows', async () => {
    const jobs = new Signal<Job>('jobs');
    await world().worker({
      flaky: (_args, job) => {
        jobs.send(job);
        if (job.attempt < 3) throw new Error('not yet', { cause: new Error('busy') });
        return 'at last';
      },
    });
    const run = await world().run({ uses: 'flaky', max_retries: 2 });
    expect(await world().result(run)).to.equal('at last');
    expect(jobs.values.map(({ attempt }) => attempt)).to.deep.equal([1, 2, 3]);
    expect(new Set(jobs.values.map(({ idempotencyKey }) => idempotencyKey)).size).to.equal(1);
  });

  it('fails the step at once with a PermanentError', async () => {
    let calls = 0;
    await world().worker({
      picky: () => {
        calls += 1;
        throw new PermanentError('no such address');
      },
    });
    const ended = await world().ended(await world().run({ uses: 'picky', max_retries: 5 }));
    expect(ended).to.include({ state: 'failed' });
    expect(String(ended['error'])).to.include('no such address');
    expect(calls).to.equal(1);
  });

  const cyclic: Record<string, unknown> = {};
  cyclic['self'] = cyclic;
  const results: readonly (readonly [value: unknown, says: string])[] = [
    [{ on: () => 1 }, 'odd: the result must be JSON: got a function at "on"'],
    [10n, 'odd: the result must be JSON: got a bigint'],
    [[NaN], 'odd: the result must be JSON: got NaN at "0"'],
    [{ seen: new Set() }, 'odd: the result must be JSON: got a Set at "seen"'],
    [cyclic, 'odd: the result must be JSON: Converting circular structure to JSON'],
    ['x'.repeat(1_000_000), 'odd: the result must have at most 1000000 bytes of JSON, got 1000002'],
  ];
  it('fails the step permanently if a result is not JSON, and says where', async () => {
    let calls = 0;
    await world().worker({
      odd: ({ n }) => {
        calls += 1;
        return results[Number(n)]?.[0];
      },
    });
    for (const [n, [, says]] of results.entries()) {
      const run = await world().run({ uses: 'odd', with: { n }, max_retries: 3 });
      const { state, error } = await world().ended(run);
      expect(state).to.equal('failed');
      expect(String(error)).to.include(says);
    }
    expect(calls).to.equal(results.length);
  });

  it('has the result null if it returns nothing', async () => {
    await world().worker({ silent: () => undefined });
    expect(await world().result(await world().run({ uses: 'silent' }))).to.equal(null);
  });

  it('sees by its signal that the run was canceled', async () => {
    const jobs = new Signal<Job>('jobs');
    const reasons = new Signal<unknown>('reasons');
    await world().worker({ endless: untilAborted(jobs, reasons) });
    const run = await world().run({ uses: 'endless' });
    await jobs.wait();
    await world().admin.post(`/runs/${run}/cancel`);
    const reason = await reasons.wait();
    expect(reason).to.be.instanceOf(JobInterruptedError).and.include({ why: 'canceled' });
    expect(await world().ended(run)).to.include({ state: 'canceled' });
  });

  it('sees by its signal that the step has timed out', async () => {
    const jobs = new Signal<Job>('jobs');
    const reasons = new Signal<unknown>('reasons');
    await world().worker({ endless: untilAborted(jobs, reasons) });
    const run = await world().run({ uses: 'endless', timeout_seconds: 1 });
    expect(await reasons.wait()).to.include({ why: 'deadline' });
    expect(await world().ended(run)).to.include({ state: 'failed' });
  });

  it('does as many jobs at a time as it has slots', async () => {
    const go = deferred();
    const begun = new Signal<string>('started jobs');
    await world().worker(
      {
        held: async (_args, { id }) => {
          begun.send(id);
          await go.promise;
        },
      },
      { slots: 2 },
    );
    const runs = [
      await world().run({ uses: 'held' }),
      await world().run({ uses: 'held' }),
      await world().run({ uses: 'held' }),
    ];
    await begun.count(2);
    await world().worker({ other: () => 1 });
    expect(await world().result(await world().run({ uses: 'other' }))).to.equal(1);
    expect(begun.values).to.have.lengthOf(2);
    go.resolve();
    for (const run of runs) expect(await world().result(run)).to.equal(null);
  });

  it('gets and completes many jobs in few requests', async () => {
    const asked: string[] = [];
    const go = deferred();
    const begun = new Signal<unknown>('started jobs');
    const fetch = fetchBut(async (path) => {
      asked.push(path.split('/').at(-1) ?? '');
      return undefined;
    });
    const many = async ({ n }: Readonly<Record<string, unknown>>): Promise<unknown> => {
      begun.send(n);
      await go.promise;
      return n;
    };
    await world().worker({ many }, { slots: 200, fetch });
    const items = Array.from({ length: 100 }, (_, n) => n);
    const forEach = { for_each: items, with: { n: '${item}' }, max_parallel: 100 };
    const run = await world().run({ uses: 'many', ...forEach });
    await begun.count(100);
    go.resolve();
    expect(await world().result(run)).to.deep.equal(items);
    expect(asked.filter((path) => path === 'jobs').length).to.be.within(1, 20);
    expect(asked.filter((path) => path === 'results').length).to.be.within(1, 4);
  });
});

/** A tool that ends once its signal aborts, by the signal's reason. */
function untilAborted(jobs: Signal<Job>, reasons: Signal<unknown>) {
  return (_args: unknown, job: Job): Promise<never> => {
    jobs.send(job);
    return new Promise((_, reject) => {
      job.signal.addEventListener('abort', () => {
        reasons.send(job.signal.reason);
        reject(job.signal.reason as Error);
      });
    });
  };
}
