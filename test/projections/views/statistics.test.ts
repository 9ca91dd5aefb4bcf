import { expect } from 'chai';
import fc from 'fast-check';
import { toIso } from '../../../domain/clock.ts';
import {
  mergeHistograms,
  percentileOf,
  withDuration,
} from '../../../projections/views/histogram.ts';
import {
  firstUtcDayOf,
  statisticsSummary,
  taskStatistics,
  type Division,
} from '../../../projections/reading/statistics-figures.ts';
import { lastDays, zoneNamed } from '../../../projections/reading/statistics-periods.ts';
import type { DayDocument } from '../../../projections/views/statistics-days.ts';
import { recentSumIn, type LastDayDocument } from '../../../projections/views/statistics-tasks.ts';
import { statisticsProjection } from '../../../projections/views/statistics.ts';
import { LogOfTest, failure, folded, success } from '../recorded.ts';

const now = Date.parse('2026-03-02T12:00:00.000Z');

const skip = {
  task_id: 'task-1',
  task_revision: 0,
  created_by: 'agent-1',
  trigger: 'schedule' as const,
  scheduled_for: null,
  priority: 5,
  reason: 'overlap' as const,
  because_of: 'run-1',
};

/** The days up to now, in UTC. */
function inUtc(days: number, at = now): Division {
  const zone = zoneNamed();
  if (zone === null) throw new Error('UTC is unknown');
  return { period: lastDays(zone, days, at), isHourly: false };
}

function dayOf(log: LogOfTest, key: string): DayDocument {
  return folded(statisticsProjection, log.events).get(key) as DayDocument;
}

describe('a histogram of durations', () => {
  it('gives every percentile within 2 %', () => {
    const durations = fc.array(fc.integer({ min: 1, max: 86_400_000 }), {
      minLength: 1,
      maxLength: 60,
    });
    fc.assert(
      fc.property(durations, fc.double({ min: 0, max: 1, noNaN: true }), (values, share) => {
        const estimate = percentileOf(values.reduce(withDuration, {}), share);
        const sorted = values.toSorted((one, other) => one - other);
        const exact = sorted[Math.max(1, Math.ceil(share * values.length)) - 1] ?? 0;
        expect(Math.abs((estimate ?? 0) - exact) / exact).to.be.lessThan(0.02);
      }),
      { numRuns: 300 },
    );
  });

  it('handles durations below its resolution, and an empty histogram', () => {
    expect(percentileOf(withDuration({}, 0), 0.5)).to.equal(0);
    expect(percentileOf({}, 0.5)).to.equal(null);
  });

  it('is the same whether durations are merged or counted together', () => {
    const values = fc.array(fc.integer({ min: 0, max: 100_000 }), { maxLength: 30 });
    fc.assert(
      fc.property(values, values, (one, other) => {
        const merged = mergeHistograms([
          one.reduce(withDuration, {}),
          other.reduce(withDuration, {}),
        ]);
        expect(merged).to.deep.equal([...one, ...other].reduce(withDuration, {}));
      }),
      { numRuns: 50 },
    );
  });

  it('stays small for a day of any durations', () => {
    const buckets = new Set<string>();
    for (let ms = 1; ms <= 86_400_000; ms *= 1.01) {
      buckets.add(Object.keys(withDuration({}, ms))[0] ?? '');
    }
    expect(buckets.size).to.be.lessThan(620);
  });
});

describe('the statistics of a day', () => {
  it('count ended runs of the task and of all tasks, by the day they finished', () => {
    const log = new LogOfTest();
    const started_at = '2026-02-28T23:59:59.000Z';
    log.add('run-1', 'RunSucceeded', success({ started_at: '2026-03-01T08:00:00.000Z' }));
    log.add('run-2', 'RunFailed', failure({ started_at }));
    log.add('run-3', 'RunSucceeded', success({ task_id: 'task-2' }));
    log.add('run-4', 'RunCanceled', { attempt: 1 });
    expect(dayOf(log, 'task-1/2026-03-01')).to.deep.include({
      scope: 'task-1',
      day: '2026-03-01',
      total: 2,
      successful: 1,
      failed: 1,
      execution_ms: 1000 + 8 * 3_600_000 + 3000,
      last_run: '2026-03-01T08:00:02.000Z',
      last_success: '2026-03-01T08:00:01.000Z',
      last_failure: '2026-03-01T08:00:02.000Z',
    });
    expect(dayOf(log, 'all/2026-03-01').total).to.equal(3);
  });

  it('keep the last days of each task, and whether it is failing', () => {
    const log = new LogOfTest();
    const last = (): unknown => folded(statisticsProjection, log.events).get('tasks/task-1');
    const started_at = '2026-03-01T08:00:00.000Z';
    log.add('run-1', 'RunSucceeded', success({ started_at }));
    log.add('run-2', 'RunFailed', failure({ started_at }));
    const known = {
      scope: 'tasks',
      day: '2026-03-01',
      recent: { '2026-03-01': [2, 1, 3000, 0] },
      last_success: '2026-03-01T08:00:01.000Z',
      last_failure: '2026-03-01T08:00:02.000Z',
      failed_day: '2026-03-01',
    };
    const took = { latest: { '2026-03-01': [1000, 2000] }, p95_ms: 2000 };
    expect(last()).to.deep.equal({ ...known, ...took, failing: known.last_failure });
    log.add('run-3', 'RunSucceeded', success({ started_at: '2026-03-01T08:00:03.000Z' }));
    const succeeded = {
      ...known,
      ...took,
      latest: { '2026-03-01': [1000, 2000, 0] },
      last_success: '2026-03-01T08:00:03.000Z',
    };
    expect(last()).to.deep.equal({ ...succeeded, recent: { '2026-03-01': [3, 1, 3000, 0] } });
    log.pass(40 * 86_400_000).add('run-4', 'RunSkipped', skip);
    expect(last()).to.deep.equal({
      ...succeeded,
      recent: { '2026-04-10': [0, 0, 0, 1] },
      skipped_day: '2026-04-10',
    });
  });

  it('sum the days of a task from its JSON alone', () => {
    const log = new LogOfTest();
    for (let day = 1; day <= 3; day += 1) {
      const started_at = toIso(Date.parse('2026-03-01T08:00:00.000Z') + (day - 1) * 86_400_000);
      for (let run = 0; run < day; run += 1) {
        log.add(`run-${day}-${run}`, 'RunFailed', failure({ started_at }));
      }
      log.add(`run-${day}-skipped`, 'RunSkipped', skip);
      log.pass(86_400_000);
    }
    const whole = folded(statisticsProjection, log.events).get('tasks/task-1') as LastDayDocument;
    const recent = Object.entries(whole.recent ?? {});
    const text = JSON.stringify(whole);
    expect(recent).to.have.length(3);
    const names = ['total', 'failed', 'ms', 'skipped'] as const;
    for (const [first] of recent) {
      for (const [last] of recent) {
        const within = recent.filter(([day]) => day >= first && day <= last);
        names.forEach((name, n) => {
          const sum = within.reduce((before, [, figures]) => before + (figures[n] ?? 0), 0);
          expect(recentSumIn(text, { first, last }, name), `${name}, ${first} to ${last}`).to.equal(
            sum,
          );
        });
      }
    }
    // The days of other fields do not count.
    const day = { first: '2026-03-04', last: '2026-03-04' };
    for (const other of [
      '"day":"2026-03-04","recent":{}',
      '"latest":{"2026-03-04":[7]},"recent":{}',
      '"recent":{},"latest":{"2026-03-04":[7]}',
      '"latest":{"2026-03-04":[7]}',
    ]) {
      expect(recentSumIn(`{${other}}`, day, 'total'), other).to.equal(0);
    }
  });
});

describe('the latest durations of a task', () => {
  const day = 86_400_000;
  let log: LogOfTest;
  let at: number;
  beforeEach(() => {
    log = new LogOfTest();
    at = Date.parse('2026-03-01T08:00:00.000Z');
  });
  const pass = (milliseconds: number): void => {
    log.pass(milliseconds);
    at += milliseconds;
  };
  const ran = (...durations: readonly number[]): void => {
    for (const took of durations) {
      at += 1000;
      log.add(`run-${at}`, 'RunSucceeded', success({ started_at: toIso(at - took) }));
    }
  };
  const range = (from: number, to: number): readonly number[] =>
    Array.from({ length: to - from + 1 }, (_, n) => from + n);
  const known = () =>
    folded(statisticsProjection, log.events).get('tasks/task-1') as LastDayDocument;

  it('are those of 100 runs, whatever the days', () => {
    ran(...range(1, 60));
    pass(day);
    ran(...range(61, 130));
    const { latest = {}, p95_ms } = known();
    expect(Object.values(latest)).to.deep.equal([range(31, 60), range(61, 130)]);
    expect(p95_ms).to.equal(125);
    pass(day);
    ran(...Array<number>(100).fill(7));
    expect(Object.keys(known().latest ?? {})).to.deep.equal(['2026-03-03']);
    expect(known().p95_ms).to.equal(7);
  });

  it('reach back seven days from the latest of them', () => {
    ran(5000);
    pass(6 * day);
    ran(10);
    expect(known().p95_ms).to.equal(5000);
    pass(day);
    ran(20);
    expect(known().p95_ms).to.equal(20);
  });

  it('give as p95 the smallest duration that 95 % do not exceed', () => {
    const durations = fc.array(fc.nat(100_000), { minLength: 1, maxLength: 100 });
    fc.assert(
      fc.property(durations, (values) => {
        log = new LogOfTest();
        at = Date.parse('2026-03-01T08:00:00.000Z');
        ran(...values);
        const sorted = values.toSorted((one, other) => one - other);
        expect(known().p95_ms).to.equal(sorted[Math.ceil(values.length * 0.95) - 1]);
      }),
      { numRuns: 50 },
    );
  });
});

describe('statistics computed from days', () => {
  const log = new LogOfTest();
  log.add(
    'run-1',
    'RunSucceeded',
    success({ started_at: toIso(Date.parse('2026-03-01T08:00:00Z')) }),
  );
  log.add('run-2', 'RunFailed', failure({ started_at: '2026-03-01T07:59:59.000Z' }));
  const days = [dayOf(log, 'task-1/2026-03-01')];

  it('are separate for each namespace, and added up for callers who see several', () => {
    const log = new LogOfTest();
    log.add('run-1', 'RunSucceeded', success({}));
    log.add('run-2', 'RunSucceeded', success({ task_id: 'task-2', namespace: 'north' }));
    const documents = folded(statisticsProjection, log.events);
    const [date = ''] = [...documents.keys()]
      .filter((key) => key.startsWith('all/'))
      .map((key) => key.slice('all/'.length));
    const of = (key: string) => documents.get(key) as DayDocument;
    expect(of(`all/${date}`)).to.include({ scope: 'all', total: 1 });
    expect(of(`all/${date}`)).to.not.have.property('namespace');
    expect(of(`all@north/${date}`)).to.include({ scope: 'all', namespace: 'north', total: 1 });
    expect(documents.get('tasks/task-2')).to.include({ scope: 'tasks', namespace: 'north' });
    const days = [of(`all/${date}`), of(`all@north/${date}`)];
    const summary = statisticsSummary(inUtc(1, Date.parse(`${date}T12:00:00.000Z`)), days, 2);
    expect(summary.total_runs).to.equal(2);
    expect(summary.by_day[0]?.total_runs).to.equal(2);
  });

  it('keep the figures of each namespace when its runs are removed', () => {
    const log = new LogOfTest();
    log.add('run-1', 'RunSucceeded', success({ namespace: 'north' }));
    log.add('run-2', 'RunFailed', failure({ namespace: 'north', error: 'order 12345 is unknown' }));
    log.add('run-3', 'RunSkipped', { ...skip, namespace: 'north' });
    const before = folded(statisticsProjection, log.events);
    const figures = [...before.values()].flatMap((document) => {
      if (!('total' in document)) return [];
      const { day: _day, ...rest } = document as DayDocument;
      return [rest];
    });
    const { day } = [...before.values()][0] as DayDocument;
    const kept = new LogOfTest();
    for (const each of [log, kept]) {
      each.add(`kept-${day}`, 'StatisticsKept', { day, figures, complete: true });
    }
    const followed = folded(statisticsProjection, log.events);
    expect(Object.fromEntries(folded(statisticsProjection, kept.events))).to.deep.equal(
      Object.fromEntries(followed),
    );
    // How long each run took is not kept.
    expect(before.get('tasks/task-1')).to.include.keys('latest', 'p95_ms');
    expect(followed.get('tasks/task-1')).not.to.include.any.keys('latest', 'p95_ms');
  });

  it('give the figures of a task over the period, with every day of it', () => {
    const answer = taskStatistics('task-1', inUtc(3), days);
    expect(answer).to.deep.include({
      task_id: 'task-1',
      period_days: 3,
      total_runs: 2,
      successful_runs: 1,
      failed_runs: 1,
      success_rate: 0.5,
      failure_rate: 0.5,
      avg_execution_time_seconds: 2,
      last_run: '2026-03-01T08:00:02.000Z',
    });
    expect(answer.p95_execution_time_seconds).to.be.closeTo(3, 0.06);
    expect(answer.p50_execution_time_seconds).to.be.closeTo(1, 0.02);
    expect(answer.by_day.map(({ date, total_runs }) => `${date} ${total_runs}`)).to.deep.equal([
      '2026-02-28 0',
      '2026-03-01 2',
      '2026-03-02 0',
    ]);
  });

  it('have every field when nothing ran', () => {
    const nothing = {
      total_runs: 0,
      successful_runs: 0,
      failed_runs: 0,
      skipped_runs: 0,
      success_rate: null,
      failure_rate: null,
      avg_execution_time_seconds: null,
      p50_execution_time_seconds: null,
      p95_execution_time_seconds: null,
    };
    expect(taskStatistics('task-1', inUtc(1), [])).to.deep.equal({
      task_id: 'task-1',
      period_days: 1,
      ...nothing,
      last_run: null,
      last_success: null,
      last_failure: null,
      timezone: 'UTC',
      by_day: [{ date: '2026-03-02', start: '2026-03-02T00:00:00.000Z', ...nothing }],
    });
    expect(statisticsSummary(inUtc(7), [], 0)).to.deep.include({
      period_days: 7,
      ...nothing,
      total_tasks_executed: 0,
      runs_per_day: 0,
    });
  });

  it('begin with the day that makes today the last of the period', () => {
    expect(firstUtcDayOf(inUtc(1).period)).to.equal('2026-03-02');
    expect(firstUtcDayOf(inUtc(7).period)).to.equal('2026-02-24');
  });

  it('know when a task last ran even if all its runs were removed', () => {
    const log = new LogOfTest();
    const removed = (run: string, at: string): unknown =>
      log.add(run, 'RunRemoved', { started: { task_id: 'task-1', at } });
    removed('run-2', '2026-03-02T09:00:00.000Z');
    removed('run-1', '2026-03-01T09:00:00.000Z');
    log.add('run-3', 'RunRemoved', {});
    const kept = { scope: 'tasks', removed_start: '2026-03-02T09:00:00.000Z' };
    const last = (): unknown => folded(statisticsProjection, log.events).get('tasks/task-1');
    expect(last()).to.deep.equal({ ...kept, day: '' });
    const { metadata } = log.add('run-4', 'RunSucceeded', success());
    expect(last()).to.deep.include({ ...kept, day: metadata.occurredAt.slice(0, 10) });
  });
});
