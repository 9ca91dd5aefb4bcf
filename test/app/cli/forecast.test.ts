import { expect } from 'chai';
import { Forecaster, HOUR, MINUTE, type Forecast } from '../../../app/cli/forecast/forecast.ts';
import { fromIso, toIso, type Instant } from '../../../domain/clock.ts';
import { startWithJitter } from '../../../domain/tasks/jitter.ts';
import { evolveScheduleState, type ScheduleState } from '../../../domain/tasks/schedule-state.ts';
import { compileSchedule } from '../../../domain/schedule/schedule.ts';
import type { TaskDefinition } from '../../../domain/tasks/task-definition.ts';
import { definition } from '../../projections/recorded.ts';
import { cpuMs } from '../../support/cpu-time.ts';

const NOW = Date.parse('2026-03-27T10:17:31.250Z');
const DAY = 24 * HOUR;

function scheduleOf({ definition: task, anchor }: Pick<ScheduleState, 'definition' | 'anchor'>) {
  return compileSchedule({
    kind: task.schedule_kind,
    expr: task.schedule_expr,
    timezone: task.timezone,
    anchor: fromIso(anchor),
    startsAt: task.starts_at === null ? null : fromIso(task.starts_at),
    endsAt: task.ends_at === null ? null : fromIso(task.ends_at),
  });
}

/** A task's schedule state right after its creation. */
function scheduleStateOf(fields: Partial<TaskDefinition>, created: Instant = NOW): ScheduleState {
  const anchor = toIso(Math.floor(created / 1000) * 1000);
  const task = definition(fields);
  const next = scheduleOf({ definition: task, anchor }).next(created)?.at ?? null;
  const data = { definition: task, anchor, next_fire_at: next === null ? null : toIso(next) };
  const metadata = { occurredAt: toIso(created) } as Parameters<
    typeof evolveScheduleState
  >[2]['metadata'];
  const schedule = evolveScheduleState(
    null,
    { type: 'TaskCreated', data },
    { revision: 0, metadata },
  );
  if (schedule === null) throw new Error('a created task has a schedule state');
  return schedule;
}

function forecast(
  tasks: Readonly<Record<string, ScheduleState>>,
  days: number,
  from = NOW,
): Forecast {
  const forecaster = new Forecaster(NOW, from, from + days * DAY);
  for (const [id, schedule] of Object.entries(tasks)) forecaster.add(id, schedule);
  return forecaster.count();
}

/** The start times of a task's runs, computed one by one. */
function starts(taskId: string, state: ScheduleState, days: number): number[] {
  const { definition: task } = state;
  const schedule = scheduleOf(state);
  const found: number[] = [];
  for (let fire = schedule.next(NOW); fire !== null; fire = schedule.next(fire.at)) {
    const at = startWithJitter(taskId, task, fire.at, schedule);
    if (at > NOW + days * DAY || found.length === task.max_runs) break;
    found.push(at);
  }
  return found;
}

/** The number of them in each interval; empty intervals are left out. */
function tally(times: readonly number[], unit: number): Map<number, number> {
  const counts = new Map<number, number>();
  for (const time of times) {
    const at = Math.floor(time / unit) * unit;
    counts.set(at, (counts.get(at) ?? 0) + 1);
  }
  return counts;
}

const fleet: Readonly<Record<string, Partial<TaskDefinition>>> = {
  minutely: { schedule_expr: '* * * * *', timezone: 'Europe/Berlin' },
  seconds: { schedule_expr: '*/20 * * * * *' },
  nightly: { schedule_expr: '30 2 * * *', timezone: 'Europe/Berlin' },
  office: { schedule_expr: '*/5 9-17 * * MON-FRI', timezone: 'America/New_York' },
  shifted: { schedule_expr: '*/7 * * * *', jitter_seconds: 400 },
  crowded: { schedule_expr: '*/10 9-17 * * *', jitter_seconds: 7200 },
  lordHowe: { schedule_expr: '*/10 * * * *', timezone: 'Australia/Lord_Howe' },
  few: { schedule_expr: '*/10 * * * *', max_runs: 25, jitter_seconds: 30 },
  rule: { schedule_kind: 'rrule', schedule_expr: 'RRULE:FREQ=MINUTELY;INTERVAL=7' },
  counted: { schedule_kind: 'rrule', schedule_expr: 'RRULE:FREQ=HOURLY;COUNT=30' },
  bounded: {
    schedule_expr: '0 * * * *',
    starts_at: '2026-03-28T00:30:00.000Z',
    ends_at: '2026-03-28T10:30:00.000Z',
  },
  once: { schedule_kind: 'once', schedule_expr: '2026-03-30T12:00:00.500Z' },
};

describe('a forecast', () => {
  const schedules = Object.fromEntries(
    Object.entries(fleet).map(([id, fields]) => [id, scheduleStateOf(fields)]),
  );

  for (const [id, schedule] of Object.entries(schedules)) {
    it(`counts the fires of ${id} by hour as a walk over its schedule does`, () => {
      const { hours } = forecast({ [id]: schedule }, 4);
      const seen = hours.filter(({ fires }) => fires > 0).map(({ at, fires }) => [at, fires]);
      expect(seen).to.deep.equal([...tally(starts(id, schedule, 4), HOUR)]);
      expect(seen).to.not.have.lengthOf(0);
    });
  }

  it('sums all tasks and finds the busiest hours and minutes', () => {
    const result = forecast(schedules, 4);
    const all = Object.entries(schedules).flatMap(([id, schedule]) => starts(id, schedule, 4));
    const most = (unit: number): number[] =>
      [...tally(all, unit).values()].sort((a, b) => b - a).slice(0, 5);
    expect(result.total).to.equal(all.length);
    expect(result.busiestHours.map(({ fires }) => fires)).to.deep.equal(most(HOUR));
    expect(result.minutesProven).to.equal(false);
    expect(result.busiestMinutes.map(({ fires }) => fires)).to.deep.equal(most(MINUTE));
  });

  it('names the tasks of a peak', () => {
    const midnight = scheduleStateOf({ schedule_expr: '0 0 * * *' });
    const hourly = scheduleStateOf({ schedule_expr: '0 * * * *', timezone: 'Europe/Berlin' });
    const { busiestMinutes, minutesProven } = forecast({ a: midnight, b: midnight, c: hourly }, 1);
    expect(minutesProven).to.equal(true);
    expect(busiestMinutes[0]).to.deep.equal({
      at: Date.parse('2026-03-28T00:00:00Z'),
      fires: 3,
      from: [
        {
          fires: 2,
          tasks: 2,
          taskIds: ['a', 'b'],
          rule: 'cron 0 0 * * * UTC',
          scheduleText: 'at 00:00, every day, UTC',
        },
        {
          fires: 1,
          tasks: 1,
          taskIds: ['c'],
          rule: 'cron 0 * * * * Europe/Berlin',
          scheduleText: 'every hour, Europe/Berlin',
        },
      ],
    });
  });

  it('counts a snoozed fire when it runs, and not the fires it replaces', () => {
    const schedule = scheduleStateOf({ schedule_expr: '0 * * * *' });
    const data = {
      delay_seconds: 9000,
      next_fire_at: '2026-03-27T11:00:00.000Z',
      next_run_at: '2026-03-27T13:30:00.000Z',
    };
    const metadata = { occurredAt: toIso(NOW) } as Parameters<
      typeof evolveScheduleState
    >[2]['metadata'];
    const snoozed = evolveScheduleState(
      schedule,
      { type: 'TaskSnoozed', data },
      { revision: 1, metadata },
    );
    if (snoozed === null) throw new Error('a snoozed task has a schedule state');
    const { hours } = forecast({ snoozed }, 1);
    const first = hours.filter(({ fires }) => fires > 0).slice(0, 2);
    expect(first.map(({ at }) => toIso(at))).to.deep.equal([
      '2026-03-27T13:00:00.000Z',
      '2026-03-27T14:00:00.000Z',
    ]);
  });

  it('distinguishes the tasks that it does not count', () => {
    const paused: ScheduleState = { ...scheduleStateOf({}), status: 'paused' };
    const spent = scheduleStateOf({ schedule_kind: 'once', schedule_expr: '2026-03-01T00:00:00Z' });
    const event = scheduleStateOf({ schedule_kind: 'event', schedule_expr: 'orders.*' });
    const overdue = scheduleStateOf({ schedule_expr: '0 * * * *' }, NOW - 3 * HOUR);
    const { definition: task } = overdue;
    const strange: ScheduleState = {
      ...overdue,
      definition: { ...task, timezone: 'Mars/Olympus' },
    };
    const { tasks } = forecast({ paused, spent, event, overdue, strange }, 1);
    expect(tasks).to.deep.equal({
      counted: 3,
      paused: 1,
      byEvent: 1,
      exhausted: 1,
      unreadable: 1,
      overdue: 2,
    });
  });

  it('counts fires before a later start towards max_runs', () => {
    const few = scheduleStateOf({ schedule_expr: '0 * * * *', max_runs: 5 });
    expect(forecast({ few }, 1, NOW + 3 * HOUR).total).to.equal(2);
    expect(forecast({ few }, 1, NOW + 30 * HOUR).total).to.equal(0);
  });

  it('takes no longer for 100,000 tasks with a few rules', async () => {
    const rules = Array.from({ length: 60 }, (_, second) =>
      scheduleStateOf({ schedule_expr: `${second} * * * * *` }),
    );
    const forecaster = new Forecaster(NOW, NOW, NOW + 30 * DAY);
    const spent = await cpuMs(() => {
      for (let n = 0; n < 100_000; n += 1) {
        forecaster.add(`t${n}`, rules[n % 60] ?? scheduleStateOf({}));
      }
      expect(forecaster.count().total).to.equal(100_000 * 30 * 24 * 60);
    });
    expect(spent).to.be.lessThan(5000);
  });
});
