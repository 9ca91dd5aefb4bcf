import { expect } from 'chai';
import { dueProjection, evolveScheduleStateOf } from '../../../projections/views/due.ts';
import { definition, folded, LogOfTest } from '../recorded.ts';

const nine = '2026-03-01T09:00:00.000Z';
const ten = '2026-03-01T10:00:00.000Z';

function created(log = new LogOfTest()): LogOfTest {
  log.add('task-1', 'TaskCreated', {
    definition: definition(),
    anchor: '2026-03-01T08:00:01.000Z',
    next_fire_at: nine,
  });
  return log;
}

const after = (log: LogOfTest): string | null | undefined =>
  folded(dueProjection, log.events).get('1')?.next_run_at;

describe('the due view', () => {
  it('shows when a task runs next', () => {
    expect(after(created())).to.equal(nine);
  });

  it('follows each decision', () => {
    const log = created();
    const fired = {
      nominal: nine,
      run_id: 'r',
      next_fire_at: ten,
      task_revision: 0,
      fire_count: 1,
    };
    log.add('fires-1', 'Fired', fired);
    expect(after(log)).to.equal(ten);
    const { next_fire_at: _next, nominal: _nominal, run_id: _run, ...rest } = fired;
    log.add('fires-1', 'FiresSkipped', {
      ...rest,
      reason: 'missed',
      from: ten,
      to: ten,
      count: 1,
      next_fire_at: null,
    });
    expect(after(log)).to.equal(null);
    log.add('fires-1', 'NextFireCorrected', { ...rest, tz_version: 'x', next_fire_at: ten });
    expect(after(log)).to.equal(ten);
  });

  it('shows when a snoozed fire runs, and a paused task as not due', () => {
    const log = created();
    const next_run_at = '2026-03-01T09:30:00.000Z';
    log.add('task-1', 'TaskSnoozed', { delay_seconds: 1800, next_fire_at: nine, next_run_at });
    expect(after(log)).to.equal(next_run_at);
    log.add('task-1', 'TaskPaused', { by_failures: false });
    expect(after(log)).to.equal(null);
    log.add('task-1', 'TaskResumed', { missed: 'skip', next_fire_at: ten });
    expect(after(log)).to.equal(ten);
  });

  it('forgets canceled tasks, whatever events follow', () => {
    const log = created();
    log.add('task-1', 'TaskCanceled', {});
    log.add('fires-1', 'Fired', {
      nominal: nine,
      run_id: 'r',
      next_fire_at: ten,
      task_revision: 0,
      fire_count: 1,
    });
    expect(folded(dueProjection, log.events).size).to.equal(0);
  });

  it('keeps only those fields of a definition that decisions need', () => {
    const [document] = folded(dueProjection, created().events).values();
    const kept = document?.rhythm.definition ?? {};
    for (const field of ['payload', 'title', 'description', 'tags']) {
      expect(kept).to.not.have.property(field);
    }
    expect(kept).to.include({ schedule_expr: '0 9 * * *', misfire_policy: 'latest' });
  });

  it('is the same if it is stored as JSON between any two events', () => {
    const log = created();
    log.add('task-1', 'TaskPaused', { by_failures: false });
    log.pass(2 * 3_600_000).add('task-1', 'TaskUpdated', {
      changes: { schedule_expr: '30 * * * *' },
      rescheduled: true,
      anchor: nine,
      next_fire_at: '2026-03-01T11:00:00.000Z',
    });
    log.add('task-1', 'TaskResumed', { missed: 'all', next_fire_at: '2026-03-01T11:00:00.000Z' });
    const kept = log.events.reduce<ReturnType<typeof dueProjection.evolve>>(
      (document, event) =>
        dueProjection.evolve(JSON.parse(JSON.stringify(document)) as typeof document, event, '1'),
      null,
    );
    let schedule: ReturnType<typeof evolveScheduleStateOf> = null;
    for (const event of log.events) schedule = evolveScheduleStateOf(schedule, event);
    expect(kept?.rhythm).to.deep.equal(schedule);
    expect(kept?.rhythm.owed).to.have.lengthOf(1);
    expect(kept?.rhythm.owed[0]).to.include({ reason: 'paused', policy: 'all', from: nine });
  });
});
