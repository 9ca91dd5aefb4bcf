import { expect } from 'chai';
import {
  advanceBackfill,
  backfillFold,
  cancelBackfill,
  effectiveConcurrency,
  isOpen,
  nominalTimes,
  requestBackfill,
  type BackfillProgress,
  type BackfillStep,
  type KnownBackfill,
} from '../../../domain/backfills/backfill.ts';
import { planBackfill } from '../../../domain/backfills/backfill-commands.ts';
import { toIso } from '../../../domain/clock.ts';
import type { BackfillEvent, DataOf } from '../../../domain/events/catalogue.ts';
import { backfillRunId, scheduledRunId } from '../../../domain/ids.ts';
import { compileSchedule } from '../../../domain/schedule/schedule.ts';
import type { TaskDefinition } from '../../../domain/tasks/task-definition.ts';
import type { LiveTask } from '../../../domain/tasks/task.ts';
import { definition } from '../../projections/recorded.ts';
import { given, refused, START } from '../given.ts';

const minute = 60_000;
const at = (n: number): string => toIso(START + n * minute);

const asked: DataOf<'BackfillRequested'> = {
  task_id: 't',
  task_revision: 0,
  created_by: 'agent-1',
  from: at(-3),
  to: at(0),
  only: 'missing',
  concurrency: 2,
  total: 4,
  earlier: [],
};
const requested: BackfillEvent = { type: 'BackfillRequested', data: asked };
const nobody = { succeeded: 0, failed: 0, canceled: 0, skipped: 0 };
const advanced = (more: Partial<BackfillProgress>): BackfillEvent => ({
  type: 'BackfillAdvanced',
  data: { up_to: at(-2), requested: 2, existing: 0, unfinished: [], outcomes: nobody, ...more },
});
const canceled: BackfillEvent = { type: 'BackfillCanceled', data: { by: 'request' } };
const known = (...events: readonly BackfillEvent[]): KnownBackfill =>
  given(backfillFold, events) as KnownBackfill;
const step = (more: Partial<BackfillStep> = {}): BackfillStep => ({
  ended: new Map(),
  upTo: at(-2),
  taken: [],
  existing: 0,
  exhausted: false,
  ...more,
});

describe('the backfill stream', () => {
  it('starts once', () => {
    expect(requestBackfill(backfillFold.initial, asked)).to.deep.equal([requested]);
    refused('STATE_CONFLICT', () => requestBackfill(known(requested), asked));
  });

  it('records the selected times, the omitted ones and the outcomes of runs', () => {
    const running = known(requested, advanced({ unfinished: [at(-3), at(-2)] }));
    const ended = new Map([[at(-3), 'failed']] as const);
    const events = advanceBackfill(
      running,
      step({ ended, upTo: at(0), taken: [at(0)], existing: 1, exhausted: true }),
    );
    expect(events).to.deep.equal([
      advanced({
        up_to: at(0),
        requested: 3,
        existing: 1,
        unfinished: [at(-2), at(0)],
        outcomes: { ...nobody, failed: 1 },
      }),
    ]);
  });

  it('records nothing without a change', () => {
    const running = known(requested, advanced({ unfinished: [at(-2)] }));
    const other = new Map([[at(-1), 'failed']] as const);
    expect(advanceBackfill(running, step({ ended: other }))).to.deep.equal([]);
  });

  it('is completed by the end of its last run, or when all times have runs', () => {
    const running = known(requested, advanced({ unfinished: [at(-2)] }));
    const ended = new Map([[at(-2), 'succeeded']] as const);
    const types = (events: readonly BackfillEvent[]): readonly string[] =>
      events.map(({ type }) => type);
    const both = ['BackfillAdvanced', 'BackfillCompleted'];
    expect(types(advanceBackfill(running, step({ ended, exhausted: true })))).to.deep.equal(both);
    expect(types(advanceBackfill(running, step({ ended })))).to.deep.equal(['BackfillAdvanced']);
    const none = step({ upTo: at(0), existing: 4, exhausted: true });
    expect(types(advanceBackfill(known(requested), none))).to.deep.equal(both);
  });

  it('is open while work is left, even when it is canceled', () => {
    expect(isOpen(backfillFold.initial)).to.equal(false);
    expect(isOpen(known(requested))).to.equal(true);
    expect(isOpen(known(requested, canceled))).to.equal(false);
    const running = advanced({ unfinished: [at(-2)] });
    expect(isOpen(known(requested, running, canceled))).to.equal(true);
    const [ended] = advanceBackfill(
      known(requested, running, canceled),
      step({ ended: new Map([[at(-2), 'canceled']] as const), exhausted: true }),
    );
    expect(ended?.type).to.equal('BackfillAdvanced');
    expect(isOpen(known(requested, running, canceled, ended as BackfillEvent))).to.equal(false);
    expect(isOpen(known(requested, { type: 'BackfillCompleted', data: {} }))).to.equal(false);
  });

  it('is canceled once, and not after completion', () => {
    expect(cancelBackfill(known(requested), 'request')).to.deep.equal([canceled]);
    expect(cancelBackfill(known(requested, canceled), 'task_canceled')).to.deep.equal([]);
    const completed = known(requested, { type: 'BackfillCompleted', data: {} });
    refused('STATE_CONFLICT', () => cancelBackfill(completed, 'request'));
    refused('NOT_FOUND', () => cancelBackfill(backfillFold.initial, 'request'));
  });

  it('has one run at a time if runs must not overlap', () => {
    expect(effectiveConcurrency({ concurrency: 7 }, 'allow')).to.equal(7);
    for (const overlap of ['skip', 'queue', 'cancel_running'] as const) {
      expect(effectiveConcurrency({ concurrency: 7 }, overlap)).to.equal(1);
    }
  });

  it("gives each nominal time a run that differs from its fire's run", () => {
    const ids = [
      scheduledRunId('t', at(0)),
      backfillRunId('t', at(0), 'a'),
      backfillRunId('t', at(0), 'b'),
      backfillRunId('t', at(1), 'a'),
      backfillRunId('u', at(0), 'a'),
    ];
    expect(new Set(ids).size).to.equal(ids.length);
  });
});

describe('the nominal times of a backfill', () => {
  const schedule = compileSchedule({
    kind: 'cron',
    expr: '* * * * *',
    timezone: 'UTC',
    anchor: START,
    startsAt: null,
    endsAt: null,
  });

  it('include both ends of the span', () => {
    const all = [at(-3), at(-2), at(-1), at(0)];
    expect(nominalTimes(schedule, asked, null, 100)).to.deep.equal(all);
  });

  it('continue after the decided ones, up to a limit', () => {
    expect(nominalTimes(schedule, asked, at(-3), 2)).to.deep.equal([at(-2), at(-1)]);
    expect(nominalTimes(schedule, asked, at(0), 2)).to.deep.equal([]);
  });
});

describe('planning a backfill', () => {
  const task = (fields: Partial<TaskDefinition> = {}, more: Partial<LiveTask> = {}): LiveTask => ({
    namespace: 'default',
    status: 'active',
    pause_reason: null,
    paused: null,
    snoozed: null,
    definition: definition({ schedule_expr: '* * * * *', ...fields }),
    anchor: at(0),
    next_fire_at: null,
    next_run_at: null,
    schedule_revision: 0,
    created_at: at(0),
    updated_at: at(0),
    revision: 3,
    ...more,
  });
  const plan = (of: LiveTask, from = -3, to = 0) => {
    const ask = { from: START + from * minute, to: START + to * minute } as const;
    return planBackfill('t', of, { ...ask, only: 'missing', concurrency: 2 }, ['e'], START);
  };

  it("pins the task's revision and counts the times", () => {
    expect(plan(task())).to.deep.equal({ ...asked, task_revision: 3, earlier: ['e'] });
    expect(plan(task({}, { status: 'paused' })).total).to.equal(4);
    expect(plan(task({ starts_at: at(-1) })).total).to.equal(2);
  });

  it('rejects a task without nominal times', () => {
    refused('STATE_CONFLICT', () => plan(task({}, { status: 'canceled' })));
    refused('STATE_CONFLICT', () => plan(task({ schedule_kind: 'event', schedule_expr: null })));
  });

  it('rejects an invalid span and names the field', () => {
    const field = (from: number, to: number, of = task()): unknown =>
      refused('INVALID', () => plan(of, from, to)).details['field'];
    expect(field(-3, 1)).to.equal('to');
    expect(field(0, -1)).to.equal('from');
    expect(field(-1, 0, task({ schedule_expr: '0 0 * * *' }))).to.equal('from');
    expect(field(-10_000, 0)).to.equal('from');
    expect(plan(task(), -9_999).total).to.equal(10_000);
  });
});
