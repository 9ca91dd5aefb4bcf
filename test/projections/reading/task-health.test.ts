import { expect } from 'chai';
import { fromIso } from '../../../domain/clock.ts';
import { healthOf, type HealthSigns } from '../../../projections/reading/task-health.ts';

describe('the health of a task', () => {
  const now = fromIso('2026-03-10T12:00:00.000Z');
  const fine: HealthSigns = {
    status: 'active',
    next_run_at: '2026-03-10T13:00:00.000Z',
    exhausted: false,
    day: '2026-03-10',
    failing: null,
    failed_day: null,
  };
  const healthWith = (changes: Partial<HealthSigns>): string =>
    healthOf({ ...fine, ...changes }, now);
  const failing = '2026-03-10T11:00:00.000Z';
  const overdue = '2026-03-10T11:58:59.999Z';

  it('is failing if its latest run failed, overdue or not', () => {
    expect(healthWith({ failing, next_run_at: overdue })).to.equal('failing');
  });

  it('is overdue once its next run has been due for a minute', () => {
    expect(healthWith({ next_run_at: overdue, failed_day: '2026-03-10' })).to.equal('overdue');
    expect(healthWith({ next_run_at: '2026-03-10T11:59:00.000Z' })).to.equal('ok');
  });

  it('is that of its status if it is paused or canceled', () => {
    for (const status of ['paused', 'canceled'] as const) {
      expect(healthWith({ status, failing })).to.equal(status);
    }
  });

  it('is unsteady if a run failed in the last seven days of UTC', () => {
    expect(healthWith({ failed_day: '2026-03-04' })).to.equal('unsteady');
    expect(healthWith({ failed_day: '2026-03-03' })).to.equal('ok');
  });

  it('tells tasks that have not run from those that will not run again', () => {
    for (const day of [null, '']) expect(healthWith({ day })).to.equal('new');
    expect(healthWith({ day: null, next_run_at: null, exhausted: true })).to.equal('ended');
    expect(healthWith({ next_run_at: null })).to.equal('ok');
  });
});
