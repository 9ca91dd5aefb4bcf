import { expect } from 'chai';
import fc from 'fast-check';
import { toIso } from '../../../domain/clock.ts';
import {
  mergeHistograms,
  percentileOf,
  withDuration,
} from '../../../projections/views/histogram.ts';
import {
  firstDayOf,
  statisticsSummary,
  taskStatistics,
} from '../../../projections/reading/statistics-figures.ts';
import { statisticsProjection, type DayDocument } from '../../../projections/views/statistics.ts';
import { LogOfTest, failure, folded, success } from '../recorded.ts';

const now = Date.parse('2026-03-02T12:00:00.000Z');

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

  it("keep the document with a task's last day while the day is the same", () => {
    const log = new LogOfTest();
    const one = log.add('run-1', 'RunSucceeded', success());
    const other = log.add('run-2', 'RunSucceeded', success());
    const next = log.pass(86_400_000).add('run-3', 'RunSucceeded', success());
    const key = 'tasks/task-1';
    const document = statisticsProjection.evolve(null, one, key);
    expect(document).to.deep.equal({ scope: 'tasks', day: '2026-03-01' });
    expect(statisticsProjection.evolve(document, other, key)).to.equal(document);
    expect(statisticsProjection.evolve(document, next, key)?.day).to.equal('2026-03-02');
  });
});

describe('the answers computed from days', () => {
  const log = new LogOfTest();
  log.add(
    'run-1',
    'RunSucceeded',
    success({ started_at: toIso(Date.parse('2026-03-01T08:00:00Z')) }),
  );
  log.add('run-2', 'RunFailed', failure({ started_at: '2026-03-01T07:59:59.000Z' }));
  const days = [dayOf(log, 'task-1/2026-03-01')];

  it('are of one namespace, and are added up for those who see several', () => {
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
    const summary = statisticsSummary(1, days, 2, Date.parse(`${date}T12:00:00.000Z`));
    expect(summary.total_runs).to.equal(2);
    expect(summary.by_day[0]?.total_runs).to.equal(2);
  });

  it('keep the figures of each namespace when its runs are removed', () => {
    const log = new LogOfTest();
    log.add('run-1', 'RunSucceeded', success({ namespace: 'north' }));
    const before = folded(statisticsProjection, log.events);
    const figures = [...before.values()].flatMap((document) => {
      if (!('total' in document)) return [];
      const { day: _day, ...rest } = document as DayDocument;
      return [rest];
    });
    const { day } = [...before.values()][0] as DayDocument;
    const kept = new LogOfTest();
    kept.add(`kept-${day}`, 'StatisticsKept', { day, figures, complete: true });
    expect(Object.fromEntries(folded(statisticsProjection, kept.events))).to.deep.equal(
      Object.fromEntries(before),
    );
  });

  it('give the figures of a task over the period, with every day of it', () => {
    const answer = taskStatistics('task-1', 3, days, now);
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
      success_rate: null,
      failure_rate: null,
      avg_execution_time_seconds: null,
      p50_execution_time_seconds: null,
      p95_execution_time_seconds: null,
    };
    expect(taskStatistics('task-1', 1, [], now)).to.deep.equal({
      task_id: 'task-1',
      period_days: 1,
      ...nothing,
      last_run: null,
      last_success: null,
      last_failure: null,
      by_day: [{ date: '2026-03-02', ...nothing }],
    });
    expect(statisticsSummary(7, [], 0, now)).to.deep.include({
      period_days: 7,
      ...nothing,
      total_tasks_executed: 0,
      runs_per_day: 0,
    });
  });

  it('begin with the day that makes today the last of the period', () => {
    expect(firstDayOf(1, now)).to.equal('2026-03-02');
    expect(firstDayOf(7, now)).to.equal('2026-02-24');
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
    expect(last()).to.deep.equal({ ...kept, day: metadata.occurredAt.slice(0, 10) });
  });
});
