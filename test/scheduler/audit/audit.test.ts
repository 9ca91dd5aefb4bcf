import { expect } from 'chai';
import { Supervisor } from '../../../app/roles/supervisor.ts';
import { createHealth } from '../../../app/watching/health.ts';
import { toIso } from '../../../domain/clock.ts';
import { EventStoreError } from '../../../domain/event-store.ts';
import type { DomainEvent } from '../../../domain/events/catalogue.ts';
import { changeKey, concurrencyOf } from '../../../domain/keys/key-stream.ts';
import { holdKey } from '../../../domain/keys/key.ts';
import { holdCommand, releaseCommand } from '../../../domain/operators/operations.ts';
import {
  cancelTaskCommand,
  pauseTaskCommand,
  resumeTaskCommand,
  snoozeTaskCommand,
  updateTaskCommand,
} from '../../../domain/tasks/task-commands.ts';
import { silent } from '../../../observability/telemetry.ts';
import { dueProjection } from '../../../projections/views/due.ts';
import { Audit } from '../../../scheduler/audit/audit.ts';
import { AuditedProcess, CountingTelemetry, plant } from './audit-world.ts';
import { minute, START, World } from '../scheduler-world.ts';

const hour = 60 * minute;
const hourly = { schedule_expr: '0 * * * *' } as const;
const once = { found: 1, mended: 1 };

describe("the scheduler's audit", () => {
  let world: World;

  beforeEach(async () => {
    world = await World.open();
  });

  afterEach(async () => {
    await world.close();
  });

  const start = async (): Promise<AuditedProcess> =>
    new AuditedProcess(world, await world.start('one'));

  const request = (taskId: string): DomainEvent => ({
    type: 'RunRequested',
    data: {
      task_id: taskId,
      task_revision: 0,
      created_by: 'agent-1',
      trigger: 'manual',
      scheduled_for: null,
      priority: 5,
      run_at: toIso(START),
      event: null,
      retry_of: null,
      prior_steps: [],
      overlap_policy: 'allow',
    },
  });

  it('finds nothing in a fleet that changes all day', async function () {
    this.timeout(180_000);
    const zones = ['UTC', 'America/New_York', 'Europe/Berlin', 'Australia/Lord_Howe'];
    for (const [n, timezone] of zones.entries()) {
      await world.createTask(`daily-${n}`, { schedule_expr: `${n * 10} 3 * * *`, timezone });
      await world.createTask(`often-${n}`, { schedule_expr: '*/20 * * * *', timezone });
      await world.createTask(`rule-${n}`, {
        schedule_kind: 'rrule',
        schedule_expr: 'FREQ=HOURLY;COUNT=3',
        timezone,
      });
      await world.createTask(`few-${n}`, { schedule_expr: '*/30 * * * *', timezone, max_runs: 2 });
    }
    const audited = await start();
    for (let n = 0; n < 24; n += 1) {
      if (n === 3) await pauseTaskCommand(world.command('often-1'));
      if (n === 5) await resumeTaskCommand({ ...world.command('often-1'), missed: 'latest' });
      if (n === 7) await snoozeTaskCommand({ ...world.command('daily-2'), delaySeconds: 3000 });
      if (n === 8)
        await updateTaskCommand({
          ...world.command('often-2'),
          changes: { schedule_expr: '7 * * * *' },
        });
      if (n === 9) await cancelTaskCommand(world.command('often-3'));
      await world.clock.advance(hour - minute);
      const { findings, faults } = await audited.pass();
      expect(findings, `hour ${n}`).to.deep.equal({});
      expect(faults).to.deep.equal([]);
    }
    expect([...audited.telemetry.counts]).to.deep.equal([]);
  });

  it('requests the run of a fire that has none', async () => {
    await world.createTask('t', hourly);
    const audited = await start();
    let away = true;
    audited.process.store.onAppend = (stream) => {
      if (away && stream.startsWith('run-')) throw new EventStoreError('UNAVAILABLE', 'away');
    };
    await world.clock.advance(hour + minute);
    away = false;
    expect((await world.outcome('t')).requested).to.deep.equal([]);
    await audited.pass();
    expect(audited.telemetry.audited('fire_without_run')).to.deep.equal(once);
    const { fired, requested } = await world.outcome('t');
    expect(requested).to.deep.equal(fired);
    await audited.pass();
    expect(audited.telemetry.audited('fire_without_run')).to.deep.equal(once);
  });

  it('retries fires whose runs it could not request, even if the log is unavailable at the next pass', async () => {
    for (const task of ['t', 'u']) await world.createTask(task, hourly);
    const audited = await start();
    const { store } = audited.process;
    let away = true;
    store.onAppend = (stream) => {
      if (away && stream.startsWith('run-')) throw new EventStoreError('UNAVAILABLE', 'away');
    };
    await world.clock.advance(hour + minute);
    await audited.pass();
    store.onRead = (stream) => {
      if (stream.startsWith('run-')) throw new EventStoreError('UNAVAILABLE', 'away');
    };
    expect((await audited.pass()).faults).to.include('fires_have_runs');
    [away, store.onRead] = [false, () => {}];
    await audited.pass();
    for (const task of ['t', 'u']) {
      const { fired, requested } = await world.outcome(task);
      expect(requested).to.deep.equal(fired).that.is.not.deep.equal([]);
    }
  });

  it('continues at its checkpoint, unless the log does not reach it', async () => {
    await world.createTask('t', hourly);
    const first = await start();
    await world.clock.advance(hour + minute);
    await first.pass();
    const verified = await world.coordination.recall('fires-verified');
    expect(verified).to.be.a('string').that.is.not.equal('');
    // A checkpoint of a longer log, as found after a restored backup.
    await world.coordination.remember('fires-verified', `9${verified?.slice(1)}`, 99);
    await plant(world, 'fires-t', [
      {
        type: 'Fired',
        data: {
          nominal: toIso(START + 2 * hour),
          run_id: '00000000-0000-5000-8000-000000000001',
          next_fire_at: toIso(START + 3 * hour),
          task_revision: 0,
          fire_count: 2,
        },
      },
    ]);
    await world.clock.advance(minute);
    const second = new AuditedProcess(world, first.process);
    await second.pass();
    expect(second.telemetry.audited('fire_without_run')).to.deep.equal(once);
  });

  it('releases a key of an ended run, wherever the release was lost', async () => {
    await world.createTask('t', hourly);
    const name = { kind: 'concurrency', owner: 'agent-1', key: 'k' } as const;
    for (const run of ['ended', 'living']) {
      const claim = {
        run_id: run,
        task_id: 't',
        trigger: 'manual',
        priority: 5,
        since: START,
        limit: 5,
        attempt: 1,
      } as const;
      await plant(world, `run-${run}`, [request('t')]);
      const context = { ...world.context(), now: START };
      await changeKey(world.store, name, context, (state) => {
        return { events: holdKey(state, claim, START).events, answer: null };
      });
    }
    const started = { worker: 'w', attempt: 1, leased_until: toIso(START + hour) };
    await plant(world, 'run-living', [{ type: 'RunStarted', data: started }]);
    await plant(world, 'run-ended', [{ type: 'RunCanceled', data: { attempt: 0 } }]);
    await world.coordination.heartbeat('w', {}, hour);
    const audited = await start();
    await audited.pass();
    expect((await concurrencyOf(world.store, 'agent-1', 'k')).holders).to.have.length(2);
    await world.clock.advance(2 * minute);
    await audited.pass();
    expect(audited.telemetry.audited('key_without_run')).to.deep.equal(once);
    const { holders } = await concurrencyOf(world.store, 'agent-1', 'k');
    expect(holders.map(({ run_id }) => run_id)).to.deep.equal(['living']);
  });

  it('frees a run whose worker has been gone for a minute', async () => {
    await world.createTask('t', hourly);
    const audited = await start();
    const started = { worker: 'gone', attempt: 1, leased_until: toIso(START + minute) };
    await plant(world, 'run-r', [request('t'), { type: 'RunStarted', data: started }]);
    await audited.pass();
    expect(audited.telemetry.audited('run_of_gone_worker').found).to.equal(0);
    await world.clock.advance(minute);
    await audited.pass();
    expect(audited.telemetry.audited('run_of_gone_worker')).to.deep.equal(once);
    const types = (await world.store.readStream('run-r')).map(({ type }) => type);
    expect(types).to.deep.equal(['RunRequested', 'RunStarted', 'RunInterrupted']);
  });

  it('restores a task that the index has lost, and the task fires', async () => {
    await world.createTask('t', hourly);
    const audited = await start();
    audited.process.index.correct('t', null);
    await audited.pass();
    expect(audited.telemetry.audited('task_missing')).to.deep.equal(once);
    await world.clock.advance(hour);
    expect((await world.outcome('t')).fired).to.deep.equal([toIso(START + hour)]);
  });

  it('updates a task that has missed an event, and drops a canceled task', async () => {
    await world.createTask('t', hourly);
    await world.createTask('c', hourly);
    const audited = await start();
    const { index } = audited.process;
    const before = index.get('t')?.state;
    const canceled = index.get('c')?.state;
    await updateTaskCommand({ ...world.command('t'), changes: { schedule_expr: '30 * * * *' } });
    await cancelTaskCommand(world.command('c'));
    await world.idle();
    const entry = index.get('t');
    if (entry === undefined || before === undefined || canceled === undefined) {
      throw new Error('the index does not follow');
    }
    entry.state = before;
    index.correct('c', canceled);
    await audited.pass();
    expect(audited.telemetry.audited('task_behind')).to.deep.equal(once);
    expect(audited.telemetry.audited('task_left')).to.deep.equal(once);
    expect(index.get('c')).to.equal(undefined);
    await world.clock.advance(hour);
    expect((await world.outcome('t')).fired).to.deep.equal([toIso(START + 30 * minute)]);
    expect((await world.outcome('c')).fired).to.deep.equal([]);
  });

  it("restores a task's place in the index", async () => {
    await world.createTask('t', hourly);
    const audited = await start();
    const [entry] = audited.process.index.takeDue(START + hour, 1);
    if (entry === undefined) throw new Error('nothing is due');
    entry.deciding = false;
    await world.clock.advance(hour + 2 * minute);
    expect((await world.outcome('t')).fired).to.deep.equal([]);
    await audited.pass();
    expect(audited.telemetry.audited('task_overdue').found).to.equal(0);
    await audited.pass();
    expect(audited.telemetry.audited('task_overdue')).to.deep.equal(once);
    expect((await world.outcome('t')).fired).to.deep.equal([toIso(START + hour)]);
  });

  it('restores a missing next fire', async () => {
    await world.createTask('t', hourly);
    const audited = await start();
    await plant(world, 'fires-t', [
      {
        type: 'NextFireCorrected',
        data: { next_fire_at: null, tz_version: 'x', task_revision: 0, fire_count: 0 },
      },
    ]);
    await audited.pass();
    expect(audited.telemetry.audited('no_fire_ahead')).to.deep.equal(once);
    await world.clock.advance(hour);
    expect((await world.outcome('t')).fired).to.deep.equal([toIso(START + hour)]);
  });

  describe('with a task whose stream ends in an unreadable event', () => {
    it('names it in the health check, while other tasks continue and retries get rarer', async () => {
      await world.createTask('t', hourly);
      await world.createTask('other', hourly);
      const audited = await start();
      const { store } = audited.process;
      let tries = 0;
      store.onAppend = (stream) => {
        if (stream !== 'fires-t') return;
        tries += 1;
        throw new EventStoreError('CONFLICT', 'another writer was faster', { stream });
      };
      store.onRead = (stream) => {
        if (stream === 'fires-t') throw new EventStoreError('CORRUPT_EVENT', 'not of its schema');
      };
      await world.clock.advance(hour + 2 * minute);
      await audited.pass();
      await audited.pass();
      expect(audited.telemetry.audited('task_stuck')).to.deep.equal({ found: 1, mended: 0 });
      const before = tries;
      await world.clock.advance(10 * minute);
      expect(tries - before).to.be.within(1, 12);
      expect((await world.outcome('other')).fired).to.have.length(1);
      const check = await schedulerHealth();
      expect(check).to.include({ status: 'unhealthy' });
      expect(check['message']).to.match(/^1 task is overdue .*: t$/);
      expect(check['audit']).to.deep.include({ found: 1, mended: 0, stuck: ['t'] });
    });
  });

  it('shows its findings in the health check until they are repaired', async () => {
    await world.createTask('t', hourly);
    const audited = await start();
    audited.process.index.correct('t', null);
    await audited.pass();
    const check = await schedulerHealth();
    expect(check).to.deep.include({ status: 'healthy', message: 'at work' });
    const kinds = { task_missing: 1 };
    expect(check['audit']).to.deep.include({ found: 1, mended: 1, stuck: [], faults: [], kinds });
  });

  it('reports no task as overdue because a view lags', async () => {
    await world.createTask('t', hourly);
    const audited = await start();
    await audited.pass();
    await world.clock.advance(hour + 2 * minute);
    expect((await world.outcome('t')).fired).to.have.length(1);
    const check = await schedulerHealth();
    expect(check['message']).to.match(/^the audit has not completed since /);
  });

  it('reports no held task as overdue until a minute after the release', async () => {
    const { store, clock } = world;
    await world.createTask('t', hourly);
    await holdCommand(store, 'a restore', world.context());
    await clock.advance(2 * hour);
    await world.project([dueProjection]);
    await releaseCommand(store, 'skip', world.context());
    await clock.advance(minute);
    expect((await schedulerHealth())['message']).not.to.include('overdue');
    await clock.advance(1000);
    expect((await schedulerHealth())['message']).to.match(/^1 task is overdue /);
  });

  it('continues after a failed check, and reports it', async () => {
    const telemetry = new CountingTelemetry();
    const reports: unknown[] = [];
    const looked: string[] = [];
    const audit = new Audit({
      checks: [
        { name: 'broken', run: () => Promise.reject(new Error('no')) },
        { name: 'sound', run: async () => void looked.push('sound') },
      ],
      clock: world.clock,
      telemetry,
      isWanted: () => true,
      publish: async (report) => void reports.push(report),
    });
    await audit.pass(new AbortController().signal);
    expect(looked).to.deep.equal(['sound']);
    expect(telemetry.counts.get('scheduler_audit_faults_total broken')).to.equal(1);
    expect(reports).to.have.length(1);
    expect(reports[0]).to.deep.include({ faults: ['broken'], findings: {} });
    expect(audit.lastSuccess).to.equal(null);
  });

  it('runs every minute, but only while it is wanted', async () => {
    let wanted = false;
    let passes = 0;
    const audit = new Audit({
      checks: [],
      clock: world.clock,
      telemetry: silent,
      isWanted: () => wanted,
      publish: async () => void (passes += 1),
    });
    const stop = new AbortController();
    const running = audit.run(stop.signal);
    await world.clock.advance(5 * minute);
    expect(passes).to.equal(0);
    wanted = true;
    await world.clock.advance(5 * minute);
    expect(passes).to.equal(5);
    stop.abort();
    await running;
  });

  async function schedulerHealth(): Promise<Record<string, unknown>> {
    const { store, readModel, coordination, clock } = world;
    await coordination.heartbeat('one', { roles: ['scheduler'] }, hour);
    const stores = {
      store,
      readModel,
      coordination,
      notices: null,
      refusal: () => null,
      warmUp: async () => {},
      close: async () => {},
    };
    const supervisor = new Supervisor(clock, silent);
    const about = { version: '0', instance: '1', started: () => true };
    const health = createHealth({ stores, clock, supervisor, ...about });
    const { body } = await health.report();
    const { checks } = body as { readonly checks: readonly Record<string, unknown>[] };
    const check = checks.find(({ name }) => name === 'scheduler');
    if (check === undefined) throw new Error('there is no check of the scheduler');
    return check;
  }
});
