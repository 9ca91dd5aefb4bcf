import { expect } from 'chai';
import { streams } from '../../../../domain/streams.ts';
import type { ReceivedResponse } from '../../../support/api-client.ts';
import { useRunningApi, type SignedIn } from '../../../support/running-api.ts';
import { FailedRuns } from './failed-runs.ts';

const HOUR = 3_600_000;

describe('a redrive over HTTP', () => {
  const api = useRunningApi();
  let caller: SignedIn;
  let runs: FailedRuns;
  beforeEach(async () => {
    caller = await api().signIn(['tasks:read', 'tasks:write', 'runs:read']);
    runs = new FailedRuns(api(), caller);
  });

  /** Waits until the view has all events of the log. */
  const send = async (
    body: object,
    key?: string,
    client = caller.client,
  ): Promise<ReceivedResponse> => {
    const headers = key === undefined ? {} : { 'idempotency-key': key };
    const read = await caller.client.get(`/runs?limit=1&after=${await api().store.head()}`);
    expect(read.status, read.text).to.equal(200);
    return client.post('/runs/redrive', body, { headers });
  };
  const redrive = async (...given: Parameters<typeof send>): Promise<ReceivedResponse> => {
    const answer = await send(...given);
    expect(answer.status, answer.text).to.equal(200);
    return answer;
  };
  interface Made {
    readonly run_id: string;
    readonly retry_of: string;
    readonly task_id: string;
  }
  const madeBy = (answer: ReceivedResponse): readonly Made[] => answer.at('details.runs') as Made[];
  const retriedBy = (answer: ReceivedResponse): readonly string[] =>
    madeBy(answer).map(({ retry_of }) => retry_of);
  const failSome = async (task: string, count: number): Promise<readonly string[]> => {
    const failed: string[] = [];
    for (let n = 0; n < count; n += 1) failed.push(await runs.failed(task));
    return failed;
  };

  it('retries the failed runs, oldest first, keeping their finished steps', async () => {
    const task = await runs.makeTask();
    const failed = await failSome(task, 3);
    await runs.succeed(task, await runs.runNow(task));
    await runs.runNow(task);
    const answer = await redrive({ task_id: task.toUpperCase() });
    expect(answer.at('message')).to.equal('3 failed runs are retried');
    expect(retriedBy(answer)).to.deep.equal(failed);
    expect(answer.at('details')).to.deep.include({
      dry_run: false,
      count: 3,
      left: 0,
      next_cursor: null,
    });
    for (const { run_id, retry_of, task_id } of madeBy(answer)) {
      expect(task_id).to.equal(task);
      const { prior_steps, retry_of: of } = await runs.requestOf(run_id);
      expect(of).to.equal(retry_of);
      expect(prior_steps.map(({ step }) => step)).to.deep.equal(['a', 'b']);
    }
    const shown = await caller.client.get(`/runs?task_id=${task}&state=queued`);
    expect(shown.at('total')).to.equal(4);
  });

  it('retries only runs with the trigger of the filter', async () => {
    const task = await runs.makeTask();
    const [failed] = await failSome(task, 1);
    expect(retriedBy(await redrive({ task_id: task, trigger: 'event' }))).to.deep.equal([]);
    expect(retriedBy(await redrive({ task_id: task, trigger: 'manual' }))).to.deep.equal([failed]);
  });

  it('only counts in a dry run, requested by body or query', async () => {
    const task = await runs.makeTask();
    const failed = await failSome(task, 2);
    const before = await api().store.head();
    const asked = await redrive({ task_id: task, dry_run: true });
    expect(asked.at('details')).to.deep.include({ dry_run: true, count: 2, runs: [] });
    expect(asked.at('message')).to.equal('2 failed runs would be retried');
    const other = await caller.client.post('/runs/redrive?dry_run=true', { task_id: task });
    expect(other.at('details')).to.deep.include({ dry_run: true, count: 2, runs: [] });
    expect(await api().store.head()).to.equal(before);
    expect(retriedBy(await redrive({ task_id: task }))).to.deep.equal(failed);
  });

  it('filters by task, time span, and part of the error', async () => {
    const [one, two] = [await runs.makeTask(), await runs.makeTask()];
    const refused = await runs.failed(one, 'connect ECONNREFUSED 10.0.0.1\nat step c');
    const other = await runs.failed(one, 'no such table');
    const elsewhere = await runs.failed(two, 'econnrefused too');
    const count = async (filter: object): Promise<unknown> =>
      (await redrive({ dry_run: true, ...filter })).at('details.count');
    expect(await count({})).to.equal(3);
    expect(await count({ task_id: one })).to.equal(2);
    expect(await count({ error: 'EConnRefused' })).to.equal(2);
    expect(await count({ error: 'at step' })).to.equal(1);
    const [before, after] = [-HOUR, HOUR].map((shift) =>
      new Date(api().clock.now() + shift).toISOString(),
    );
    expect(await count({ start_time: before, end_time: after })).to.equal(3);
    expect(await count({ start_time: after })).to.equal(0);
    expect(await count({ end_time: before, task_id: one })).to.equal(0);
    // The tasks are in UTC.
    const [wallBefore, wallAfter] = [before, after].map((text) => text?.replace('Z', ''));
    expect(await count({ task_id: one, start_time: wallBefore, end_time: wallAfter })).to.equal(2);
    expect(await count({ task_id: one, start_time: wallAfter })).to.equal(0);
    expect(retriedBy(await redrive({ error: 'econnrefused' }))).to.have.members([
      refused,
      elsewhere,
    ]);
    expect(retriedBy(await redrive({}))).to.deep.equal([other]);
  });

  it('omits runs whose retry succeeded or is pending', async () => {
    const task = await runs.makeTask();
    const [well, queued, canceled, again] = await failSome(task, 4);
    const first = madeBy(await redrive({ task_id: task }));
    const retryOf = (run: string | undefined): string =>
      first.find(({ retry_of }) => retry_of === run)?.run_id ?? '';
    await runs.succeed(task, retryOf(well));
    await caller.client.post(`/runs/${retryOf(canceled)}/cancel`);
    await runs.failWith(task, retryOf(again), []);
    const second = await redrive({ task_id: task });
    expect(retriedBy(second)).to.have.members([canceled, retryOf(again)]);
    expect(second.at('details.passed_over')).to.deep.include({ succeeded: 1, under_way: 1 });
    expect(second.at('details.count')).to.equal(2);
    expect(queued).to.be.a('string');
  });

  it('retries the last retry even if it started after the requested span', async () => {
    const task = await runs.makeTask();
    const run = await runs.failed(task);
    const end_time = new Date(api().clock.now() + HOUR).toISOString();
    const [retry] = madeBy(await redrive({ end_time }));
    api().clock.shift(2 * HOUR);
    try {
      await runs.failWith(task, retry?.run_id ?? '', []);
      expect(retriedBy(await redrive({ end_time }))).to.deep.equal([retry?.run_id]);
    } finally {
      api().clock.shift(-2 * HOUR);
    }
    expect(retry?.retry_of).to.equal(run);
  });

  it('continues where it stopped, a limited number at a time', async () => {
    const task = await runs.makeTask();
    const failed = await failSome(task, 5);
    const first = await redrive({ task_id: task, limit: 2 });
    expect(retriedBy(first)).to.deep.equal(failed.slice(0, 2));
    expect(first.at('details.left')).to.equal(3);
    const cursor = first.textAt('details.next_cursor');
    const second = await redrive({ task_id: task, limit: 2, cursor });
    expect(retriedBy(second)).to.deep.equal(failed.slice(2, 4));
    expect(second.at('details.passed_over.under_way')).to.equal(0);
    // Without the cursor, already retried runs are skipped again.
    const third = await redrive({ task_id: task, limit: 2 });
    expect(retriedBy(third)).to.deep.equal(failed.slice(4));
    expect(third.at('details')).to.deep.include({ left: 0, next_cursor: null });
    const wrong = await send({ start_time: '2020-01-01T00:00:00Z', cursor });
    expect(wrong.status).to.equal(400);
    expect(wrong.at('details.field')).to.equal('cursor');
  });

  it('responds if it takes too long, and says how to continue', async () => {
    const task = await runs.makeTask();
    const failed = await failSome(task, 13);
    const held = api().store.holdNext('run-', 'RunRetried');
    const waiting = redrive({ task_id: task });
    await held.arrived;
    api().clock.shift(10_000);
    try {
      held.release();
      const first = await waiting;
      const made = retriedBy(first).length;
      expect(made).to.be.within(1, 12);
      expect(first.at('details.left')).to.equal(13 - made);
      const cursor = first.textAt('details.next_cursor');
      const second = await redrive({ task_id: task, cursor });
      expect([...retriedBy(first), ...retriedBy(second)]).to.deep.equal(failed);
    } finally {
      api().clock.shift(-10_000);
    }
  });

  it('reads more than one page of the view', async () => {
    const task = await runs.makeTask();
    const failed = await failSome(task, 61);
    const retried: string[] = [];
    // A slow machine needs more than one request, because each has a time limit.
    for (let cursor: string | null = ''; cursor !== null;) {
      const answer = await redrive({ task_id: task, ...(cursor === '' ? {} : { cursor }) });
      retried.push(...retriedBy(answer));
      cursor = answer.at('details.next_cursor') as string | null;
    }
    expect(retried).to.deep.equal(failed);
  });

  it("is limited to the caller's runs, except for an admin", async () => {
    const task = await runs.makeTask();
    const [run] = await failSome(task, 1);
    const other = await api().signIn(['tasks:write', 'runs:read']);
    expect((await redrive({}, undefined, other.client)).at('details.count')).to.equal(0);
    for (const filter of [{ created_by: caller.id }, { task_id: task }]) {
      const refused = await send(filter, undefined, other.client);
      expect(refused.status, JSON.stringify(filter)).to.equal(403);
      expect(refused.at('error')).to.equal('forbidden');
    }
    const { client } = api().admin;
    expect(
      (await redrive({ created_by: other.id }, undefined, client)).at('details.count'),
    ).to.equal(0);
    expect(
      retriedBy(await redrive({ created_by: caller.id.toUpperCase() }, undefined, client)),
    ).to.deep.equal([run]);
  });

  it('does not change runs of canceled tasks', async () => {
    const task = await runs.makeTask();
    await failSome(task, 2);
    await caller.client.post(`/tasks/${task}/cancel`);
    const answer = await redrive({ task_id: task });
    expect(answer.at('details.count')).to.equal(0);
    expect(answer.at('details.passed_over.task_canceled')).to.equal(2);
  });

  it('starts over with the present definition on request', async () => {
    const task = await runs.makeTask();
    await failSome(task, 1);
    await caller.client.put(`/tasks/${task}`, { title: 'Mended' });
    const [made] = madeBy(await redrive({ task_id: task, from: 'start' }));
    expect(await runs.requestOf(made?.run_id ?? '')).to.deep.include({
      task_revision: 1,
      prior_steps: [],
    });
  });

  it('reports retries that the overlap policy skips', async () => {
    const task = await runs.makeTask({ overlap_policy: 'skip' });
    await failSome(task, 1);
    await runs.runNow(task);
    const answer = await redrive({ task_id: task });
    expect(answer.at('details.runs.0.skip_reason')).to.equal('overlap');
  });

  it('that was interrupted is completed by a repetition, without duplicates', async () => {
    const task = await runs.makeTask();
    const failed = await failSome(task, 12);
    api().store.failNext('run-', 'before', 'RunRequested');
    api().store.failNext('run-', 'after', 'RunRetried');
    expect((await send({ task_id: task }, 'all')).status).to.equal(503);
    // One retry has failed by now: the same command does not retry its own runs.
    const retries = await Promise.all(
      failed.map(async (run) => {
        const events = await api().store.readStream(streams.run(run));
        const [retried, second] = events.filter(({ type }) => type === 'RunRetried');
        expect(second).to.equal(undefined);
        return retried?.type === 'RunRetried' ? retried.data.run_id : null;
      }),
    );
    const begun: string[] = [];
    for (const run of retries) {
      if (run === null) continue;
      const events = await api().store.readStream(streams.run(run));
      if (events.length > 0) begun.push(run);
    }
    expect(begun).to.have.length.below(12);
    const [early] = begun;
    if (early !== undefined) await runs.failWith(task, early, []);
    const answer = await redrive({ task_id: task }, 'all');
    expect(retriedBy(answer)).to.deep.equal(failed);
    expect(madeBy(answer).map(({ run_id }) => run_id)).to.include.members(begun);
    const shown = await caller.client.get(
      `/runs?task_id=${task}&after=${await api().store.head()}`,
    );
    expect(shown.at('total')).to.equal(24);
  });

  it('retries each run once if two redrives are concurrent', async () => {
    const task = await runs.makeTask();
    const failed = await failSome(task, 6);
    const both = await Promise.all([redrive({ task_id: task }), redrive({ task_id: task })]);
    expect(both.flatMap(retriedBy).toSorted()).to.deep.equal(failed.toSorted());
    for (const run of failed) {
      const events = await api().store.readStream(streams.run(run));
      expect(events.filter(({ type }) => type === 'RunRetried')).to.have.length(1);
    }
  });

  it('takes over a retry that another request started, once it has certainly been abandoned', async () => {
    const task = await runs.makeTask();
    const run = await runs.failed(task);
    api().store.failNext('run-', 'before', 'RunRequested');
    expect((await caller.client.post(`/runs/${run}/retry`)).status).to.equal(503);
    const early = await redrive({ task_id: task });
    expect(early.at('details.passed_over.under_way')).to.equal(1);
    api().clock.shift(61_000);
    try {
      expect(retriedBy(await redrive({ task_id: task }))).to.deep.equal([run]);
    } finally {
      api().clock.shift(-61_000);
    }
    const shown = await caller.client.get(`/runs?task_id=${task}&state=queued`);
    expect(shown.at('total')).to.equal(1);
  });
});
