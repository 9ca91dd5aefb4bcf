import { setMaxListeners } from 'node:events';
import { expect } from 'chai';
import { decorate } from '../../../domain/decorate.ts';
import { join } from 'node:path';
import { SystemClock } from '../../../app/clock.ts';
import { requireReadable, type EventStore } from '../../../domain/event-store.ts';
import type { DataOf } from '../../../domain/events/catalogue.ts';
import { hasEnded, runFold } from '../../../domain/runs/run.ts';
import { load } from '../../../domain/handle.ts';
import { silent } from '../../../observability/telemetry.ts';
import { auditProjection } from '../../../projections/views/audit.ts';
import { createProjector } from '../../../projections/projector/projector.ts';
import type { Projection, ReadModel } from '../../../projections/read-model.ts';
import { runsProjection } from '../../../projections/views/runs.ts';
import { statisticsProjection } from '../../../projections/views/statistics.ts';
import { webhooksProjection } from '../../../projections/views/webhooks.ts';
import type { Coordination } from '../../../scheduler/coordination.ts';
import { Retention, type RetentionLimits } from '../../../scheduler/retention/retention.ts';
import type { LastDayDocument } from '../../../projections/views/statistics-tasks.ts';
import { openSqliteCoordination } from '../../../stores/sqlite/coordination/coordination.ts';
import { openSqliteReadModel } from '../../../stores/sqlite/read-model/read-model.ts';
import { ProjectorHarness } from '../../projections/projector-harness.ts';
import { failure, request, success } from '../../projections/recorded.ts';
import { eventually } from '../../support/signals.ts';
import { QuickClock } from '../../support/quick-clock.ts';
import { makeTemporaryDirectory } from '../../support/temporary-directory.ts';

const HOUR = 3_600_000;
const DAY = 24 * HOUR;
const NOW = Date.parse('2026-03-06T12:00:00.000Z');

/** Views of removed records. Each contains documents of its own kind only. */
const views = [
  runsProjection,
  statisticsProjection,
  webhooksProjection,
  auditProjection,
] as unknown as readonly Projection[];

/** A clock that stands still, whose sleeps return at once. */
class StandingClock extends QuickClock {
  override now(): number {
    return NOW;
  }
}

describe('the retention of records', () => {
  let harness: ProjectorHarness;
  let coordination: Coordination;
  const closing: (() => Promise<void>)[] = [];

  beforeEach(async () => {
    harness = await ProjectorHarness.open();
    const directory = await makeTemporaryDirectory();
    coordination = await openSqliteCoordination({ directory: directory.path, telemetry: silent });
    closing.push(
      () => harness.close(),
      () => coordination.close(),
      () => directory.remove(),
    );
  });
  afterEach(async () => {
    for (const close of closing.splice(0)) await close();
  });

  const forAll: RetentionLimits = {
    ...{ runs: 2 * DAY, deliveries: 2 * DAY, sessions: 2 * DAY, refusals: 2 * DAY },
    requests: 2 * DAY,
  };
  const pass = (limits: Partial<RetentionLimits> = forAll, store = harness.store) => {
    const off = { runs: null, deliveries: null, sessions: null, refusals: null, requests: null };
    const retention = new Retention({
      ...{ store, coordination, telemetry: silent, clock: new StandingClock() },
      ...{ leadership: { leads: true, fence: 1 }, name: 'test', limits: { ...off, ...limits } },
    });
    return retention.pass(new AbortController().signal);
  };

  /** Runs, deliveries, sessions, refusals and requests of 1 to 6 March, some of them unfinished. */
  async function seed(): Promise<void> {
    const { log } = harness;
    const byAgent = { actor: 'agent-1' };
    for (let day = 1; day <= 6; day += 1) {
      for (const task of ['task-1', 'task-2']) {
        const id = `run-${task}-${String(day)}`;
        const asked = log.add(id, 'RunRequested', request({ task_id: task }));
        if (day % 2 === 1) Object.assign(asked.metadata, byAgent);
        log.add(id, 'RunStarted', { worker: 'w', attempt: 1, leased_until: asked.createdAt });
        const data = { task_id: task, started_at: asked.createdAt };
        if (task === 'task-1') log.add(id, 'RunSucceeded', success(data));
        else log.add(id, 'RunFailed', failure(data));
      }
      log.add(`run-skipped-${String(day)}`, 'RunSkipped', {
        ...{ task_id: 'task-1', task_revision: 0, created_by: 'agent-1', trigger: 'schedule' },
        ...{ scheduled_for: null, priority: 5, reason: 'overlap', because_of: 'x' },
      });
      log.add(`run-unfinished-${String(day)}`, 'RunRequested', request());
      const delivery = `webhook-${String(day)}`;
      log.add(delivery, 'WebhookScheduled', {
        ...{ agent_id: 'agent-1', event_id: null, task_id: null, run_id: null },
        payload: { type: 'webhook.test', timestamp: '2026-03-01T00:00:00.000Z', data: {} },
      });
      if (day !== 2) {
        log.add(delivery, 'WebhookDelivered', {
          ...{ attempt: 1, secret_version: 0, took_ms: 1, url: 'http://x.example' },
          ...{ status: 200, answer: '' },
        });
      }
      const session = log.add(`session-${String(day)}`, 'SessionStarted', {
        ...{ agent_id: 'agent-1', refresh_id: 'r', credentials_revision: null },
        // The second stays open for long.
        expires_at: `2026-${day === 2 ? '05' : '03'}-0${String(day)}T23:00:00.000Z`,
      });
      const refusal = log.add(`refusals-agent-1-2026-03-0${String(day)}`, 'CommandRefused', {
        ...{ agent_id: 'agent-1', action: 'POST /tasks', path: '/tasks', status: 403 },
        ...{ code: 'forbidden', count: 1 },
        ...{ first_at: '2026-03-01T00:00:00.000Z', last_at: '2026-03-01T00:00:00.000Z' },
      });
      for (const { metadata } of [session, refusal]) Object.assign(metadata, byAgent);
      const memory = `idem-${String(day)}`;
      log.add(memory, 'CommandReceived', {
        ...{ agent_id: 'agent-1', request_hash: 'h', method: 'POST', path: '/tasks' },
        expires_at: `2026-03-0${String(day + 1)}T09:00:00.000Z`,
      });
      log.add(memory, 'CommandAnswered', { status: 201, body: {}, headers: {} });
      // A record that was retried later ends then.
      if (day === 4) log.add('run-task-2-1', 'RunRetried', { run_id: 'x', from: 'start' });
      log.pass(DAY - 60_000);
    }
    await harness.append();
  }

  /** A log in which an event of a stream does not match its schema. */
  function withBroken(stream: string): EventStore {
    const { store } = harness;
    const readStream: EventStore['readStream'] = async (name, part) => {
      const events = await store.readStream(name, part);
      if (name !== stream) return events;
      const broken = events.map((event) => ({ ...event, fault: 'broken' }));
      return part?.faulty === true ? broken : broken.map(requireReadable);
    };
    return decorate(store, { readStream });
  }

  /** The documents of all views, by view and key, without the positions. */
  async function documents(readModel: ReadModel): Promise<Readonly<Record<string, unknown>>> {
    const all: Record<string, unknown> = {};
    for (const view of views) {
      const found = await readModel.find(view, { filters: [], sort: [], limit: 1_000 });
      for (const { key, document } of found) all[`${view.name} ${key}`] = document;
    }
    return all;
  }

  async function follow(): Promise<void> {
    harness.start(views);
    await caughtUp(harness.readModel);
  }
  async function caughtUp(readModel: ReadModel): Promise<void> {
    const head = await harness.store.head();
    await eventually(async () => {
      const at = await Promise.all(views.map((view) => readModel.checkpoint(view)));
      return at.every((position) => position >= head);
    });
  }

  const startOf = (stream: string): string | undefined =>
    harness.log.events.find((event) => event.stream === stream && event.type === 'RunStarted')
      ?.metadata.occurredAt;

  /** The views rebuilt from the present log. */
  async function madeAnew(): Promise<Readonly<Record<string, unknown>>> {
    const directory = join(harness.viewDirectory, 'anew');
    const readModel = await openSqliteReadModel({ directory, telemetry: silent });
    const { store } = harness;
    const stop = new AbortController();
    setMaxListeners(0, stop.signal);
    const clock = new SystemClock();
    const parts = { store, readModel, projections: views, telemetry: silent, clock, fence: 1 };
    const projector = createProjector(parts);
    const running = projector.run(stop.signal);
    try {
      await caughtUp(readModel);
      return await documents(readModel);
    } finally {
      stop.abort();
      await running;
      await readModel.close();
    }
  }

  async function records(): Promise<readonly DataOf<'RecordsRemoved'>[]> {
    const events = await harness.store.readStream('retention');
    return events.flatMap((event) => (event.type === 'RecordsRemoved' ? [event.data] : []));
  }
  async function removedOf(kind: string): Promise<{ records: number; events: number }> {
    const of = (await records()).filter((each) => each.kind === kind);
    const sum = (field: 'records' | 'events') => of.reduce((n, each) => n + each[field], 0);
    return { records: sum('records'), events: sum('events') };
  }
  const left = async (stream: string, store: EventStore = harness.store): Promise<string> =>
    (await store.readStream(stream)).map(({ type }) => type).join();

  it('removes ended records that are old enough from the views and the log, and nothing else', async () => {
    await seed();
    await follow();
    await pass();
    await caughtUp(harness.readModel);
    const shown = await documents(harness.readModel);
    const keys = (view: string): readonly string[] =>
      Object.keys(shown).flatMap((key) =>
        key.startsWith(`${view} `) ? [key.split(' ')[1] ?? ''] : [],
      );
    expect(keys('runs').filter((key) => !key.startsWith('unfinished'))).to.have.members([
      'task-1-4',
      'task-1-5',
      'task-1-6',
      'task-2-4',
      'task-2-5',
      'task-2-6',
      'task-2-1',
      'skipped-4',
      'skipped-5',
      'skipped-6',
    ]);
    expect(keys('runs').filter((key) => key.startsWith('unfinished'))).to.have.length(6);
    expect(keys('webhooks')).to.have.members(['2', '5', '6']);
    expect(await left('run-task-1-1')).to.equal('RunRemoved');
    expect(hasEnded((await load(harness.store, 'run-task-1-1', runFold)).state)).to.equal(true);
    expect(await left('run-task-2-1')).to.match(/^RunRequested,.*RunRetried$/);
    expect(await left('run-unfinished-1')).to.equal('RunRequested');
    expect(await left('webhook-1')).to.equal('WebhookRemoved');
    expect([await left('session-1'), await left('session-3')]).to.deep.equal(['', '']);
    expect(await left('session-2')).to.equal('SessionStarted');
    expect([await left('refusals-agent-1-2026-03-03'), await left('idem-3')]).to.deep.equal([
      '',
      '',
    ]);
    expect(await left('idem-4')).to.not.equal('');
    const audited = Object.values(shown).filter((each) => (each as { actor?: string }).actor);
    const streams = audited.map((each) => (each as { stream: string }).stream);
    expect(streams).to.include.members(['session-2', 'session-4', 'run-task-2-1']);
    expect(streams).to.not.include.members(['session-1']);
    expect(streams).to.not.include.members(['run-task-1-1']);
    expect(await removedOf('runs')).to.deep.equal({ records: 8, events: 18 });
    expect(await removedOf('sessions')).to.deep.equal({ records: 2, events: 2 });
  });

  it('keeps the figures of days, and when tasks last ran, also in a rebuilt view', async () => {
    await seed();
    await follow();
    const before = await documents(harness.readModel);
    await pass();
    await caughtUp(harness.readModel);
    const after = await documents(harness.readModel);
    const figures = (all: Readonly<Record<string, unknown>>) =>
      Object.fromEntries(Object.entries(all).filter(([key]) => key.startsWith('statistics ')));
    expect(Object.keys(figures(after))).to.have.length(6 * 4 + 2);
    const [one, two] = ['statistics tasks/task-1', 'statistics tasks/task-2'];
    // How long each run took is removed with the runs.
    const kept = (key: string) => {
      const known = before[key] as LastDayDocument;
      const left = Object.entries(known.latest ?? {}).filter(([day]) => day > '2026-03-03');
      expect(left).to.have.length(3);
      return { ...known, latest: Object.fromEntries(left) };
    };
    expect(figures(after)).to.deep.equal({
      ...figures(before),
      [one]: { ...kept(one), removed_start: startOf('run-task-1-3') },
      [two]: { ...kept(two), removed_start: startOf('run-task-2-3') },
    });
    expect(await madeAnew()).to.deep.equal(after);
  });

  it('continues after a crash at any call of the log', async () => {
    await seed();
    await follow();
    for (let calls = 0, done = false; !done; calls += 1) {
      let budget = calls;
      const dying = (method: 'append' | 'truncate') =>
        (async (...given: never[]) => {
          budget -= 1;
          if (budget < 0) throw new Error('killed');
          return (harness.store[method] as (...all: never[]) => Promise<unknown>)(...given);
        }) as never;
      const store = decorate(harness.store, {
        append: dying('append'),
        truncate: dying('truncate'),
      });
      done = await pass(forAll, store).then(
        () => true,
        () => false,
      );
    }
    await caughtUp(harness.readModel);
    expect(await removedOf('runs')).to.deep.equal({ records: 8, events: 18 });
    expect(await removedOf('deliveries')).to.deep.equal({ records: 3, events: 6 });
    expect(await removedOf('sessions')).to.deep.equal({ records: 2, events: 2 });
    expect(await removedOf('refusals')).to.deep.equal({ records: 4, events: 4 });
    expect(await removedOf('requests')).to.deep.equal({ records: 3, events: 6 });
    expect(await left('run-task-1-3')).to.equal('RunRemoved');
    expect(await madeAnew()).to.deep.equal(await documents(harness.readModel));
    const again = (await records()).length;
    await pass();
    expect(await records()).to.have.length(again);
  });

  it('removes records concurrently, so that they share commits', async () => {
    await seed();
    let asked = 0;
    let second = (): void => {};
    const both = new Promise<void>((resolve) => (second = resolve));
    // The first streams are read concurrently, before any tombstone.
    const append: EventStore['append'] = async (stream, events, expected) => {
      if (events[0]?.type === 'RunRemoved') {
        asked += 1;
        if (asked === 2) second();
        await both;
      }
      return harness.store.append(stream, events, expected);
    };
    await pass(forAll, decorate(harness.store, { append }));
    expect(await removedOf('runs')).to.deep.equal({ records: 8, events: 18 });
  });

  it('leaves a record with an unreadable event, and removes the others', async () => {
    await seed();
    await pass(forAll, withBroken('run-task-1-1'));
    expect(await left('run-task-1-1')).to.match(/RunSucceeded$/);
    expect(await left('run-task-1-2')).to.equal('RunRemoved');
    expect(await removedOf('runs')).to.deep.equal({ records: 7, events: 15 });
    expect(await removedOf('sessions')).to.deep.equal({ records: 2, events: 2 });
  });

  it('removes the other kinds if one fails, and then reports the error', async () => {
    await seed();
    const { store } = harness;
    const append: EventStore['append'] = (stream, ...rest) =>
      stream.startsWith('run-')
        ? Promise.reject(new Error('no runs today'))
        : store.append(stream, ...rest);
    const removed = async (): Promise<ReadonlySet<string>> => {
      const events = await store.readStream('retention');
      return new Set(events.flatMap((e) => (e.type === 'RecordsRemoved' ? [e.data.kind] : [])));
    };
    const refused = await pass(forAll, decorate(store, { append })).catch(String);
    expect(refused).to.equal('Error: no runs today');
    const others = ['deliveries', 'sessions', 'refusals', 'requests'];
    expect(await removed()).to.deep.equal(new Set(others));
    await pass();
    expect(await removed()).to.deep.equal(new Set([...others, 'runs']));
  });

  it('is not blocked by events of a clock that was years ahead', async () => {
    const { log } = harness;
    const [type, data] = ['RunSucceeded', success({ task_id: 'task-1' })] as const;
    const ahead = [
      log.add('run-ahead', 'RunRequested', request()),
      log.add('run-ahead', type, data),
    ];
    ahead.push(log.add('idem-ahead', 'CommandAnswered', { status: 201, body: {}, headers: {} }));
    for (const { metadata } of ahead) {
      Object.assign(metadata, { occurredAt: '2111-01-01T00:00:00.000Z' });
    }
    await seed();
    await pass();
    expect(await removedOf('runs')).to.deep.equal({ records: 8, events: 18 });
    expect(await left('idem-3')).to.equal('');
    expect(await left('run-ahead')).to.equal('RunRequested,RunSucceeded');
  });

  it('keeps everything of a kind without a limit', async () => {
    await seed();
    const head = await harness.store.head();
    await pass({});
    expect(await harness.store.head()).to.equal(head);
    await pass({ sessions: 2 * DAY });
    expect((await records()).map(({ kind }) => kind)).to.deep.equal(['sessions']);
  });
});
