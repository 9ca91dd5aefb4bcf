import { expect } from 'chai';
import {
  healthReport,
  healthStatuses,
  liveness,
  pingCheck,
  readiness,
  worstOf,
  type HealthCheck,
  type HealthStatus,
} from '../../observability/health.ts';
import {
  projectionsCheck,
  schedulerCheck,
  workersCheck,
} from '../../observability/health-rules.ts';

const about = { now: Date.UTC(2026, 0, 2, 3, 4, 5, 6), version: '1.2.3', instance: 'a' };

function check(status: HealthStatus, name: HealthCheck['name'] = 'database'): HealthCheck {
  return { name, status, message: status };
}

describe('the health report', () => {
  it('has the status of its worst check, whatever the order of the checks', () => {
    for (const one of healthStatuses) {
      for (const other of healthStatuses) {
        const worse = healthStatuses.indexOf(one) > healthStatuses.indexOf(other) ? one : other;
        expect(worstOf([one, other]), `${one}, ${other}`).to.equal(worse);
      }
    }
    expect(worstOf([])).to.equal('healthy');
  });

  it('contains status, time, version and all checks', () => {
    const checks = [check('healthy'), check('degraded', 'workers')];
    expect(healthReport(checks, about)).to.deep.equal({
      httpStatus: 200,
      body: {
        status: 'degraded',
        timestamp: '2026-01-02T03:04:05.006Z',
        version: '1.2.3',
        checks,
      },
    });
  });

  it('has the HTTP status 503 when unhealthy', () => {
    const { httpStatus, body } = healthReport([check('healthy'), check('unhealthy')], about);
    expect(httpStatus).to.equal(503);
    expect(body.status).to.equal('unhealthy');
  });
});

describe('readiness', () => {
  it('is reported while no required check is unhealthy', () => {
    expect(readiness([check('healthy'), check('degraded')], true)).to.deep.include({
      httpStatus: 200,
    });
    expect(readiness([check('unhealthy')], true).body.status).to.equal('not_ready');
    expect(readiness([check('unhealthy')], true).httpStatus).to.equal(503);
  });

  it('is not reported before the start is complete', () => {
    expect(readiness([check('healthy')], false)).to.deep.equal({
      httpStatus: 503,
      body: { status: 'not_ready', checks: [check('healthy')] },
    });
  });
});

describe('liveness', () => {
  it('always has the HTTP status 200', () => {
    expect(liveness(about)).to.deep.include({ httpStatus: 200 });
    expect(liveness(about).body).to.include({ status: 'alive', version: '1.2.3', instance: 'a' });
  });
});

describe('the check of a store', () => {
  it('is healthy when the store responds', async () => {
    expect((await pingCheck('database', () => Promise.resolve())).status).to.equal('healthy');
  });

  it('says why the store does not respond, in one line and without a password', async () => {
    const failing = () => Promise.reject(new Error('no route to esdb://a:hush@store\n  at there'));
    const found = await pingCheck('stream_store', failing);
    expect(found).to.include({ name: 'stream_store', status: 'unhealthy' });
    expect(found.message).to.match(/^not responding: no route to /);
    expect(found.message).to.not.match(/hush|\n/);
  });
});

describe('the check of projections', () => {
  const fine = { name: 'tasks', lagSeconds: 0, progressed: false, parked: 0 };

  it('is healthy when all views have caught up, whether they advance or not', () => {
    expect(projectionsCheck([fine], 10, true).status).to.equal('healthy');
    expect(projectionsCheck([{ ...fine, lagSeconds: 10 }], 10, true).status).to.equal('healthy');
  });

  it('is degraded by a view that lags but advances', () => {
    const late = { ...fine, lagSeconds: 11, progressed: true };
    expect(projectionsCheck([fine, late], 10, true).status).to.equal('degraded');
  });

  it('is unhealthy if a view lags and does not advance, and names the view', () => {
    const stuck = { ...fine, name: 'runs', lagSeconds: 11 };
    const found = projectionsCheck([fine, stuck], 10, true);
    expect(found.status).to.equal('unhealthy');
    expect(found.message).to.match(/^runs: /);
  });

  it('is unhealthy if a view is ahead of the log, because it belongs to another log', () => {
    const ahead = { ...fine, name: 'runs', ahead: true };
    const found = projectionsCheck([fine, ahead], 10, true);
    expect(found.status).to.equal('unhealthy');
    expect(found.message).to.match(/^runs: ahead of the log/);
  });

  it('is degraded if no process projects, even if all views have caught up', () => {
    const found = projectionsCheck([fine], 10, false);
    expect(found).to.include({ status: 'degraded', message: 'no process is projecting' });
  });

  it('says how far the views are behind, within the limit', () => {
    const said = (...lags: readonly number[]): string =>
      projectionsCheck(
        lags.map((lagSeconds) => ({ ...fine, lagSeconds })),
        10,
        true,
      ).message;
    expect(said(0, 0.9)).to.equal('caught up');
    expect(said(0.2, 4.5, 3)).to.equal('up to 5 s behind');
  });

  it('is degraded by parked documents', () => {
    expect(projectionsCheck([{ ...fine, parked: 1 }], 10, true).status).to.equal('degraded');
  });
});

describe('the check of the scheduler', () => {
  const now = Date.UTC(2026, 0, 2, 3, 4, 5, 6);
  const fine = {
    led: true,
    overdue: { count: 0, names: [] },
    audit: null,
    queues: null,
    now,
  };
  const audit = {
    at: new Date(now - 60_000).toISOString(),
    found: 0,
    mended: 0,
    faults: [],
    stuck: [],
    kinds: {},
  };

  it('is unhealthy if a task is overdue without a recorded reason, whoever leads, and names the task', () => {
    for (const led of [true, false]) {
      const found = schedulerCheck({ ...fine, led, overdue: { count: 1, names: ['t-1'] } });
      expect(found.status).to.equal('unhealthy');
      expect(found.message).to.contain('t-1');
    }
  });

  it('is degraded while no process schedules', () => {
    expect(schedulerCheck({ ...fine, led: false }).status).to.equal('degraded');
    expect(schedulerCheck(fine).status).to.equal('healthy');
  });

  it('is degraded while the service is on hold, and says who ordered the hold and why', () => {
    const since = '2026-11-21T05:00:00.000Z';
    const hold = { reason: 'a new disk', by: 'agent-1', by_name: 'olga', since };
    const found = schedulerCheck({ ...fine, hold });
    expect(found.status).to.equal('degraded');
    expect(found.message).to.equal('on hold since 2026-11-21T05:00:00.000Z, by olga: a new disk');
    expect(found['hold']).to.deep.equal(hold);
    const nameless = schedulerCheck({ ...fine, hold: { ...hold, by_name: null } });
    expect(nameless.message).to.include('by agent-1:');
  });

  it('shows the faults that the audit has repaired, and is healthy', () => {
    const mended = { ...audit, found: 2, mended: 2, kinds: { task_missing: 2 } };
    const found = schedulerCheck({ ...fine, audit: mended });
    expect(found.status).to.equal('healthy');
    expect(found['audit']).to.deep.equal(mended);
  });

  it('is degraded by faults that the audit cannot repair, and names stuck tasks', () => {
    const left = schedulerCheck({ ...fine, audit: { ...audit, found: 2, mended: 1 } });
    expect(left.status).to.equal('degraded');
    const stuck = schedulerCheck({ ...fine, audit: { ...audit, found: 1, stuck: ['t-9'] } });
    expect(stuck.status).to.equal('degraded');
    expect(stuck.message).to.contain('t-9');
  });

  it('is degraded if a check of the audit failed, or if the last audit was long ago', () => {
    const faulty = schedulerCheck({ ...fine, audit: { ...audit, faults: ['index_agrees'] } });
    expect(faulty.status).to.equal('degraded');
    expect(faulty.message).to.contain('index_agrees');
    const at = new Date(now - 6 * 60_000).toISOString();
    expect(schedulerCheck({ ...fine, audit: { ...audit, at } }).status).to.equal('degraded');
  });

  it("shows faults of a worker's queue for an hour after they were found", () => {
    const queues = { ...audit, found: 1, mended: 1, kinds: { run_missing: 1 } };
    expect(schedulerCheck({ ...fine, queues })['queues']).to.deep.equal(queues);
    const old = { ...queues, at: new Date(now - 2 * 3_600_000).toISOString() };
    expect(schedulerCheck({ ...fine, queues: old })['queues']).to.equal(null);
  });
});

describe('the check of the workers', () => {
  it('is unhealthy only if runs wait and no worker is alive', () => {
    const { now } = about;
    expect(workersCheck({ alive: 1, waiting: 9, now }).status).to.equal('healthy');
    expect(workersCheck({ alive: 0, waiting: 0, now }).status).to.equal('degraded');
    expect(workersCheck({ alive: 0, waiting: 1, now }).status).to.equal('unhealthy');
  });

  it('is degraded once runs have waited for a slot for a minute, and names the tasks that hold slots', () => {
    const since = about.now - 60_000;
    const holder = {
      task_id: 'a',
      task_title: 'Nightly',
      runs: 2,
      since: '2026-01-02T03:00:00.000Z',
    };
    const shortage = { since, slots: 2, holders: [holder] };
    const state = { alive: 1, waiting: 9, shortage };
    expect(workersCheck({ ...state, now: about.now - 1 }).status).to.equal('healthy');
    const check = workersCheck({ ...state, now: about.now });
    expect(check).to.deep.include({
      status: 'degraded',
      message:
        'runs have been waiting since 2026-01-02T03:03:05.006Z: all slots (2) are taken, ' +
        'most by Nightly (2 runs since 2026-01-02T03:00:00.000Z)',
      slots: { slots: 2, full_since: '2026-01-02T03:03:05.006Z', holders: [holder], calls: 0 },
    });
    const called = workersCheck({ ...state, shortage: { ...shortage, calls: 3 }, now: about.now });
    expect(called.message).to.match(/, 3 by direct calls of tools$/);
    expect(called['slots']).to.include({ calls: 3 });
  });
});
