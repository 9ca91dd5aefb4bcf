import { expect } from 'chai';
import type { Received } from '../../../app/demo/demo-receiver.ts';
import type { DemoOutcome, DemoRun, TaskWithRuns } from '../../../app/demo/demo-scenario.ts';
import { problemsOf } from '../../../app/demo/demo-check.ts';
import { plainTask } from '../../api/plain-task.ts';
import type { RecordedEvent } from '../../../domain/event-store.ts';

const eventId = 'c3486085-7800-5000-8000-000000000001';

const run = (changes: Partial<DemoRun> = {}): DemoRun => ({
  id: 'run',
  task_id: 'task',
  trigger: 'schedule',
  state: 'succeeded',
  attempt: 1,
  scheduled_for: null,
  started_at: '2026-11-21T02:55:34.115Z',
  finished_at: '2026-11-21T02:55:34.120Z',
  error: null,
  output: {},
  ...changes,
});

const task = (kind: TaskWithRuns['kind'], seen: readonly DemoRun[] = [run()]): TaskWithRuns => ({
  kind,
  id: `${kind}-task`,
  runs: 1,
  body: plainTask(''),
  seen,
});

/** The fields of a run's first event that are checked. */
const requestedBy = (id: string | null): RecordedEvent =>
  ({
    type: 'RunRequested',
    data: { event: id === null ? null : { id } },
  }) as unknown as RecordedEvent;

const outcome = (changes: Partial<DemoOutcome> = {}): DemoOutcome => ({
  tasks: [task('once'), task('event')],
  eventId,
  triggered: ['event-task'],
  calling: [],
  triggeredRun: [requestedBy(eventId)],
  ...changes,
});

const call = (status: number, changes: Partial<Received> = {}): Received => ({
  method: 'POST',
  path: '/hook',
  idempotencyKey: 'run:call',
  body: '{}',
  status,
  ...changes,
});

const calls = [call(503), call(200)];

describe('the check of the demo', () => {
  it('finds no problem if all went well', () => {
    expect(problemsOf(outcome(), calls)).to.deep.equal([]);
  });

  it('names a task that ran too rarely', () => {
    const [fault] = problemsOf(outcome({ tasks: [task('once', []), task('event')] }), calls);
    expect(fault).to.equal('the once task should run 1 times, not 0');
  });

  it('names a run that did not succeed, with its error', () => {
    const failed = task('once', [run({ state: 'failed', error: 'no answer' })]);
    expect(problemsOf(outcome({ tasks: [failed, task('event')] }), calls)).to.deep.equal([
      'run run of the once task should succeed, but is failed: no answer',
    ]);
  });

  it('finds a run by the event that does not contain it', () => {
    for (const triggeredRun of [[], [requestedBy(null)], [requestedBy('another')]]) {
      const faults = problemsOf(outcome({ triggeredRun }), calls);
      expect(faults).to.have.lengthOf(1);
      expect(faults[0]).to.include(`should carry the event ${eventId}`);
    }
  });

  it('finds an event that triggered another task, or none', () => {
    for (const triggered of [[], ['once-task'], ['event-task', 'once-task']]) {
      expect(problemsOf(outcome({ triggered }), calls)).to.have.lengthOf(1);
    }
  });

  it('finds a server that was not called, or not again', () => {
    for (const received of [[], [call(503)], [call(503), call(200), call(200)]]) {
      expect(problemsOf(outcome(), received)).to.have.lengthOf(1);
    }
  });

  it('finds a retry with another Idempotency-Key, or with none', () => {
    const other = [call(503), call(200, { idempotencyKey: 'other' })];
    const none = [call(503, { idempotencyKey: '' }), call(200, { idempotencyKey: '' })];
    for (const received of [other, none]) {
      expect(problemsOf(outcome(), received)).to.have.lengthOf(1);
    }
  });
});
