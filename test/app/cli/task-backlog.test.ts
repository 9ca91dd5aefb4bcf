import { expect } from 'chai';
import { taskBacklog } from '../../../app/cli/store/task-backlog.ts';
import { fromIso, toIso } from '../../../domain/clock.ts';
import { decideFires } from '../../../domain/tasks/fires.ts';
import type { ScheduleState } from '../../../domain/tasks/schedule-state.ts';
import type { TaskDefinition } from '../../../domain/tasks/task-definition.ts';
import { misfirePolicies } from '../../../domain/vocabulary.ts';
import { evolveScheduleStateOf } from '../../../projections/views/due.ts';
import { compileRule } from '../../../domain/tasks/task-schedule.ts';
import { Story } from '../../domain/tasks/schedule-story.ts';
import { definition, LogOfTest } from '../../projections/recorded.ts';

const MINUTE = 60_000;

/**
 * The schedule state of a task created at 08:00:01 that fires each minute, unless specified
 * otherwise.
 */
function scheduleStateOf(fields: Partial<TaskDefinition>): ScheduleState {
  const task = definition({ schedule_expr: '* * * * *', ...fields });
  const next = '2026-03-01T08:01:00.000Z';
  const data = { definition: task, anchor: '2026-03-01T08:00:00.000Z', next_fire_at: next };
  const event = new LogOfTest().add('task-1', 'TaskCreated', data);
  return evolveScheduleStateOf(null, event) as ScheduleState;
}

describe('the backlog of a task', () => {
  const tasks: Readonly<Record<string, Partial<TaskDefinition>>> = {
    'each minute': {},
    'each minute, catching up all': { misfire_policy: 'all' },
    'each minute, skipping late ones': { misfire_policy: 'skip' },
    'each second': { schedule_expr: '* * * * * *', misfire_grace_seconds: 20 },
    'each hour, without a grace period': { schedule_expr: '0 * * * *', misfire_grace_seconds: 0 },
  };
  const lengths = [90 * 1000, 90 * MINUTE, 3 * 1440 * MINUTE];
  for (const [name, fields] of Object.entries(tasks)) {
    it(`has the runs that a release starts: ${name}`, () => {
      const schedule = scheduleStateOf(fields);
      const rule = compileRule(schedule.definition, schedule.anchor);
      for (const length of lengths) {
        const now = fromIso('2026-03-01T08:00:00.000Z') + length;
        const backlog = taskBacklog('1', schedule, now);
        const runsBy = (missed: Parameters<typeof decideFires>[4]): number =>
          decideFires('1', schedule, rule, now, missed).runs.length;
        for (const policy of misfirePolicies) {
          const runs = backlog?.runs[policy] ?? 0;
          expect(runs, `${policy} ${length}`).to.equal(runsBy({ policy, upTo: now }));
        }
        expect(backlog?.runs.own ?? 0, `own ${length}`).to.equal(runsBy(null));
        const { count, first, last } = rule.countBetween(fromIso('2026-03-01T08:01:00Z') - 1, now);
        expect(backlog?.count ?? 0).to.equal(count);
        expect(backlog?.first).to.equal(first === null ? undefined : toIso(first));
        expect(backlog?.last).to.equal(last === null ? undefined : toIso(last));
      }
    });
  }

  it('includes fires of earlier rules and of a resume', () => {
    const hourly = { schedule_expr: '0 * * * *' };
    const changed = (): Story =>
      new Story({ ...hourly, misfire_policy: 'all' })
        .pass(210 * MINUTE)
        .update({ schedule_expr: '45 * * * *' })
        .pass(120 * MINUTE);
    const latest = (): Story =>
      new Story({ ...hourly, misfire_grace_seconds: 0 })
        .pass(150 * MINUTE)
        .update({ schedule_expr: '45 * * * *' })
        .pass(60 * MINUTE)
        .update({ schedule_expr: '40 * * * *', misfire_policy: 'skip' })
        .pass(60 * MINUTE);
    const changedInPause = (): Story =>
      new Story(hourly)
        .pass(65 * MINUTE)
        .pause()
        .pass(85 * MINUTE)
        .update({ schedule_expr: '45 * * * *' })
        .pass(60 * MINUTE)
        .resume('latest')
        .pass(60 * MINUTE);
    const snoozed = (): Story =>
      new Story({ schedule_expr: '*/10 * * * *' }).snooze(2000).pass(60 * MINUTE);
    const noLongerSnoozed = (): Story =>
      snoozed()
        .update({ schedule_expr: '*/20 * * * *' })
        .pass(30 * MINUTE);
    const pausedBehind = (): Story =>
      snoozed()
        .pause()
        .pass(30 * MINUTE)
        .resume('skip');
    const resumed = (): Story =>
      new Story(hourly)
        .pause()
        .pass(210 * MINUTE)
        .resume('all')
        .pass(90 * MINUTE);
    for (const [make, count] of [
      [changed, 5],
      [latest, 4],
      [changedInPause, 4],
      [snoozed, 6],
      [noLongerSnoozed, 7],
      [pausedBehind, 9],
      [resumed, 5],
    ] as const) {
      for (const said of ['own', ...misfirePolicies] as const) {
        const story = make();
        const backlog = taskBacklog('1', story.state, story.now);
        expect(backlog, make.name).to.include({ count });
        if (said !== 'own') story.release(said);
        expect(backlog?.runs[said], `${make.name} ${said}`).to.equal(story.lookAll().fired.length);
      }
    }
  });

  it('is empty for a task that is paused, not due, or has used its max_runs', () => {
    const late = fromIso('2026-03-01T09:00:00.000Z');
    const paused: ScheduleState = { ...scheduleStateOf({}), status: 'paused' };
    expect(taskBacklog('1', paused, late)).to.equal(null);
    const early = fromIso('2026-03-01T08:00:59.000Z');
    expect(taskBacklog('1', scheduleStateOf({}), early)).to.equal(null);
    const schedule = scheduleStateOf({ max_runs: 3 });
    const spent: ScheduleState = {
      ...schedule,
      fires: {
        revision: 2,
        task_revision: 0,
        fire_count: 3,
        next_fire_at: schedule.set.next_fire_at,
        decided: '2026-03-01T08:00:00.000Z',
      },
    };
    expect(taskBacklog('1', spent, late)?.runs).to.deep.equal({
      own: 0,
      skip: 0,
      latest: 0,
      all: 0,
    });
  });
});
