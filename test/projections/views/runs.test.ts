import { expect } from 'chai';
import type { RecordedEvent } from '../../../domain/event-store.ts';
import { latestRunOf, runListing } from '../../../projections/reading/run-queries.ts';
import { runsProjection, type RunDocument } from '../../../projections/views/runs.ts';
import { LogOfTest, failure, folded, request, stepEnd, success } from '../recorded.ts';

const worker = 'worker-1';
const leased_until = '2026-03-01T08:00:32.000Z';

function runOf(log: LogOfTest): RunDocument | undefined {
  return folded(runsProjection, log.events).get('1');
}

/** The event, with a depth as if other runs had led to it. */
const withDepth = (event: RecordedEvent, depth: string): RecordedEvent => ({
  ...event,
  metadata: { ...event.metadata, depth },
});

describe('a run in the runs view', () => {
  let log: LogOfTest;

  beforeEach(() => {
    log = new LogOfTest();
  });

  it('is queued, without a result, once it is requested', () => {
    log.add('run-1', 'RunRequested', request());
    expect(runOf(log)).to.deep.include({
      id: '1',
      task_id: 'task-1',
      state: 'queued',
      success: null,
      output: null,
      attempt: 0,
      attempts: [],
      started_at: null,
      queued_at: '2026-03-01T08:00:01.000Z',
      created_at: '2026-03-01T08:00:01.000Z',
      revision: 0,
      listed: true,
    });
  });

  it('has a depth if other runs led to it, and no such field otherwise', () => {
    const plain = log.add('run-1', 'RunRequested', request());
    const deep = folded(runsProjection, [withDepth(plain, '3')]).get('1');
    expect(deep).to.deep.equal({ ...runOf(log), depth: 3 });
    expect(runOf(log)).to.not.have.property('depth');
  });

  it('keeps its depth until its end', () => {
    const requested = log.add('run-1', 'RunRequested', request());
    const end = log.add('run-1', 'RunCanceled', { attempt: 0 });
    const run = folded(runsProjection, [withDepth(requested, '2'), end]).get('1');
    expect(run).to.include({ state: 'canceled', depth: 2 });
  });

  it('has its params, and the event that triggered it', () => {
    const event = {
      id: 'event-1',
      topic: 'a.b',
      payload: { order: 7 },
      source_agent_id: 'agent-1',
      published_at: leased_until,
    };
    log.add('run-1', 'RunRequested', request({ params: { limit: 5 }, event }));
    expect(runOf(log)).to.deep.include({ params: { limit: 5 }, event });
    log.add('run-1', 'RunStarted', { worker, attempt: 1, leased_until });
    log.add('run-1', 'RunSucceeded', success());
    expect(runOf(log)).to.deep.include({ params: { limit: 5 }, event });
  });

  it('has neither by default', () => {
    log.add('run-1', 'RunRequested', request());
    expect(runOf(log)).to.include({ params: null, event: null });
  });

  it('shows its worker while it is running', () => {
    log.add('run-1', 'RunRequested', request());
    log.add('run-1', 'RunStarted', { worker, attempt: 1, leased_until });
    expect(runOf(log)).to.deep.include({
      state: 'running',
      lease_owner: worker,
      leased_until,
      started_at: '2026-03-01T08:00:02.000Z',
      attempt: 1,
      revision: 1,
    });
  });

  it('has its output, steps and log when it has succeeded', () => {
    const line = { at: leased_until, level: 'info', message: 'swept', step: 'b' };
    log.add('run-1', 'RunRequested', request());
    log.add('run-1', 'RunStarted', { worker, attempt: 1, leased_until });
    log.add('run-1', 'RunStepCompleted', stepEnd('a'));
    const output = { steps: { a: 1 }, summary: {} };
    log.add('run-1', 'RunSucceeded', success({ steps: [stepEnd('b', { log: [line] })], output }));
    const run = runOf(log);
    expect(run).to.deep.include({ state: 'succeeded', success: true, error: null, output });
    expect(run?.finished_at).to.equal('2026-03-01T08:00:04.000Z');
    expect(run?.steps.map(({ step }) => step)).to.deep.equal(['a', 'b']);
    expect(run?.steps[1]).not.to.have.property('log');
    expect(run?.log).to.deep.equal([line]);
    expect(run?.attempts).to.deep.equal([
      {
        attempt: 1,
        worker,
        started_at: '2026-03-01T08:00:02.000Z',
        finished_at: '2026-03-01T08:00:04.000Z',
        outcome: 'succeeded',
        error: null,
        step: null,
      },
    ]);
  });

  it('keeps its first start and every attempt when it is retried and fails', () => {
    log.add('run-1', 'RunRequested', request());
    log.add('run-1', 'RunStarted', { worker, attempt: 1, leased_until });
    const retry_at = '2026-03-01T08:00:10.000Z';
    log.add('run-1', 'RunAttemptFailed', { attempt: 1, error: 'once', step: 'a', retry_at });
    expect(runOf(log)).to.deep.include({ state: 'retrying', run_at: retry_at, error: 'once' });
    expect(runOf(log)).to.deep.include({ lease_owner: null, success: null });
    log.add('run-1', 'RunStarted', { worker: 'worker-2', attempt: 2, leased_until });
    log.add('run-1', 'RunFailed', failure({ attempt: 2, error: 'twice', step: 'a' }));
    const run = runOf(log);
    expect(run).to.deep.include({ state: 'failed', success: false, error: 'twice', attempt: 2 });
    expect(run?.started_at).to.equal('2026-03-01T08:00:02.000Z');
    expect(run?.attempts.map(({ error, outcome }) => `${outcome}: ${error}`)).to.deep.equal([
      'failed: once',
      'failed: twice',
    ]);
  });

  it('continues the same attempt after its worker was lost', () => {
    log.add('run-1', 'RunRequested', request());
    log.add('run-1', 'RunStarted', { worker, attempt: 1, leased_until });
    log.add('run-1', 'RunInterrupted', { worker, cause: 'lease_expired' });
    expect(runOf(log)).to.deep.include({ state: 'queued', lease_owner: null, interruptions: 1 });
    log.add('run-1', 'RunStarted', { worker: 'worker-2', attempt: 1, leased_until });
    expect(runOf(log)?.interruptions).to.equal(1);
    expect(runOf(log)?.attempts.map((each) => each.worker)).to.deep.equal(['worker-2']);
    log.add('run-1', 'RunInterrupted', { worker: 'worker-2', cause: 'drained' });
    expect(runOf(log)?.interruptions).to.equal(1);
  });

  it('is canceled without a result, at once or on request', () => {
    log.add('run-1', 'RunRequested', request());
    log.add('run-1', 'RunStarted', { worker, attempt: 1, leased_until });
    log.add('run-1', 'RunCancelRequested', {});
    expect(runOf(log)).to.deep.include({ state: 'running', cancel_requested: true });
    log.add('run-1', 'RunCanceled', { attempt: 1 });
    expect(runOf(log)).to.deep.include({ state: 'canceled', success: null });
    expect(runOf(log)?.attempts[0]?.outcome).to.equal('canceled');
    expect(runOf(log)?.output).to.equal(null);
  });

  it('has the output of its completed steps when it was canceled', () => {
    const output = { summary: { total_steps: 2 }, layout: { names: [['a', 'first']] } };
    log.add('run-1', 'RunRequested', request());
    log.add('run-1', 'RunStarted', { worker, attempt: 1, leased_until });
    log.add('run-1', 'RunCanceled', { attempt: 1, output });
    expect(runOf(log)?.output).to.deep.equal(output);
  });

  it('is recorded as skipped, with the reason, without ever being queued', () => {
    const { run_at: _at, event: _event, retry_of: _of, prior_steps: _prior, ...rest } = request();
    const { overlap_policy: _policy, ...data } = rest;
    log.add('run-1', 'RunSkipped', { ...data, reason: 'overlap', because_of: 'run-0' });
    expect(runOf(log)).to.deep.include({
      state: 'skipped',
      skip_reason: 'overlap',
      success: null,
      listed: false,
    });
    const deep = log.events.map((event) => withDepth(event, '2'));
    expect(folded(runsProjection, deep).get('1')).to.include({ state: 'skipped', depth: 2 });
  });

  it('names the run that it was to retry, even if it is skipped', () => {
    const { run_at: _at, event: _event, retry_of: _of, prior_steps: _prior, ...rest } = request();
    const { overlap_policy: _policy, ...data } = rest;
    const skipped = { ...data, reason: 'overlap', because_of: 'run-0', retry_of: 'run-9' } as const;
    log.add('run-1', 'RunSkipped', skipped);
    expect(runOf(log)).to.include({ state: 'skipped', retry_of: 'run-9' });
  });

  it('stays failed when it is retried, and names its latest retry', () => {
    log.add('run-1', 'RunRequested', request());
    log.add('run-1', 'RunStarted', { worker, attempt: 1, leased_until });
    log.add('run-1', 'RunFailed', failure());
    expect(runOf(log)).to.include({ state: 'failed', retried_by: null });
    for (const run_id of ['run-2', 'run-3']) {
      log.add('run-1', 'RunRetried', { run_id, from: 'failed_step' });
      expect(runOf(log)).to.include({ state: 'failed', success: false, retried_by: run_id });
    }
  });

  it('does not exist if its stream was abandoned before it began', () => {
    log.add('run-1', 'Abandoned', { reservation: 'key-1' });
    expect(runOf(log)).to.equal(undefined);
  });

  it('names the run that waits for its end, even if it is skipped', () => {
    const parent = { run_id: 'run-0', step: 'call' };
    log.add('run-1', 'RunRequested', request({ parent }));
    expect(runOf(log)).to.include({ parent_run_id: 'run-0' });
    log.add('run-1', 'RunStarted', { worker: 'w', attempt: 1, leased_until });
    expect(runOf(log)).to.include({ state: 'running', parent_run_id: 'run-0' });
    const { task_id, task_revision, created_by, trigger, scheduled_for, priority } = request();
    const pinned = { task_id, task_revision, created_by, trigger, scheduled_for, priority };
    const other = new LogOfTest();
    const skipped = { ...pinned, reason: 'overlap', because_of: 'run-9', parent } as const;
    other.add('run-1', 'RunSkipped', skipped);
    expect(runOf(other)).to.include({ state: 'skipped', parent_run_id: 'run-0' });
  });

  it('has no parent if no step waits for it', () => {
    log.add('run-1', 'RunRequested', request());
    expect(runOf(log)).to.not.have.property('parent_run_id');
  });

  it("shows the arguments' hash and the time of a step, if they were recorded", () => {
    const proof = { arguments_hash: 'ab', now: '2026-03-01T08:00:03.000Z' };
    log.add('run-1', 'RunRequested', request());
    log.add('run-1', 'RunStepCompleted', stepEnd('a'));
    log.add('run-1', 'RunSucceeded', success({ steps: [stepEnd('b', proof)] }));
    const [first, second] = runOf(log)?.steps ?? [];
    expect(first).to.not.have.any.keys('arguments_hash', 'now');
    expect(second).to.include(proof);
  });

  it('starts with the steps reused from the run that it retries', () => {
    log.add('run-1', 'RunRequested', request({ retry_of: '0', prior_steps: [stepEnd('a')] }));
    expect(runOf(log)?.retry_of).to.equal('0');
    expect(runOf(log)?.steps.map(({ step }) => step)).to.deep.equal(['a']);
    expect(runOf(log)?.reused).to.equal(1);
  });

  it('also counts reused steps that its worker still has to copy', () => {
    const prior_results = { run_id: '0', steps: 3 };
    log.add('run-1', 'RunRequested', request({ retry_of: '0', prior_results }));
    expect(runOf(log)).to.deep.include({ steps: [], reused: 3 });
  });
});

describe('a list of runs', () => {
  const fieldsOf = (listing: ReturnType<typeof runListing>) =>
    listing?.filters.map(({ field }) => field);

  it('leaves out skipped runs unless they are asked for', () => {
    const listed = { field: 'listed', op: 'eq', value: true };
    expect(runListing('*', {})?.filters).to.deep.equal([listed]);
    const skipped = { field: 'state', op: 'eq', value: 'skipped' };
    expect(runListing('*', { state: 'skipped' })?.filters).to.deep.equal([skipped]);
    const ofTask = runListing('*', { state: 'skipped', task_id: '1' })?.filters;
    expect(ofTask).to.deep.include({ ...listed, value: false });
    const [ofSpan] = runListing('*', { start_time: '2026-03-01T00:00:00.000Z' })?.filters ?? [];
    expect(ofSpan?.field).to.equal('state');
    expect(ofSpan?.value).to.include.members(['queued', 'canceled']);
    expect(ofSpan?.value).to.not.include('skipped');
  });

  it("uses the index of the state alone, and for a task the task's index", () => {
    const start_time = '2026-03-01T00:00:00.000Z';
    for (const state of ['queued', 'failed'] as const) {
      expect(fieldsOf(runListing('*', { state }))).to.deep.equal(['state']);
      const ofSpan = runListing('*', { state, start_time });
      expect(fieldsOf(ofSpan)).to.deep.equal(['state', 'started_at']);
      const ofTask = runListing('*', { state, task_id: '1' });
      expect(fieldsOf(ofTask)).to.deep.equal(['task_id', 'state', 'listed']);
    }
  });

  it("uses the parent's index for the child runs of a run, even with a state", () => {
    const ofParent = runListing('*', { parent_run_id: '1', state: 'failed' });
    expect(fieldsOf(ofParent)).to.deep.equal(['parent_run_id', 'state', 'listed']);
    const start_time = '2026-03-01T00:00:00.000Z';
    const ofSpan = runListing('*', { parent_run_id: '1', start_time });
    expect(fieldsOf(ofSpan)).to.deep.equal(['parent_run_id', 'listed', 'started_at']);
    expect(ofSpan?.sort[0]?.field).to.equal('queued_at');
  });

  it('asks for success by the corresponding state', () => {
    const state = { field: 'state', op: 'eq', value: 'failed' };
    expect(runListing('*', { success: false })?.filters).to.deep.include(state);
    expect(runListing('*', { success: true, state: 'failed' })).to.equal(null);
  });

  it('is sorted by start if a span of starts is given', () => {
    const start_time = '2026-03-01T00:00:00.000Z';
    expect(runListing('*', { start_time })?.sort[0]?.field).to.equal('started_at');
    expect(runListing('*', { start_time, task_id: '1' })?.sort[0]?.field).to.equal('queued_at');
    expect(latestRunOf('1').sort[0]?.field).to.equal('queued_at');
  });
});
