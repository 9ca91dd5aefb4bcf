import { expect } from 'chai';
import { chmodSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { toIso } from '../../../domain/clock.ts';
import type { DomainEvent } from '../../../domain/events/catalogue.ts';
import type { EventStore } from '../../../domain/event-store.ts';
import { toNewEvents } from '../../../domain/handle.ts';
import { newId } from '../../../domain/ids.ts';
import { beginImport } from '../../../domain/operators/import.ts';
import { holdCommand } from '../../../domain/operators/operations.ts';
import { streams } from '../../../domain/streams.ts';
import { logFile } from '../../../stores/sqlite/event-log/schema.ts';
import { request } from '../../projections/recorded.ts';
import { addRaw, addRuns, addTask, onLog } from '../archive/small-log.ts';
import { EventStoreDbServer } from '../../support/eventstoredb-server/server.ts';
import { S3Server } from '../../support/s3-server.ts';
import { useTemporaryDirectory } from '../../support/temporary-directory.ts';
import { svc } from './command-line.ts';

interface Finding {
  readonly check: string;
  readonly verdict: 'ok' | 'warn' | 'fault';
  readonly found: string;
  readonly advice: string | null;
}

const DAY = 86_400_000;
/** An unused port. */
const nowhere = { SVC_URL: 'http://127.0.0.1:1' };

describe('svc doctor', function () {
  this.timeout(180_000);
  const directory = useTemporaryDirectory();
  const context = (now: number): Parameters<typeof toNewEvents>[2] => {
    const id = newId(now);
    return { commandId: id, actor: 'service', source: 'test', correlationId: id, now };
  };
  const add = async (
    store: EventStore,
    stream: string,
    at: number,
    ...events: DomainEvent[]
  ): Promise<void> => {
    await store.append(stream, toNewEvents(stream, events, context(at)), 'none');
  };

  /** A folder as a service leaves it. */
  async function seed(
    more: (store: EventStore) => Promise<unknown> = async () => {},
  ): Promise<void> {
    chmodSync(directory(), 0o700);
    const key = join(directory(), 'jwt-secret.key');
    writeFileSync(key, 'k'.repeat(64), { mode: 0o600 });
    await onLog(directory(), async (store) => {
      const task = await addTask(store, Date.now());
      await addRuns(store, task, Date.now() - DAY, 2);
      await more(store);
    });
  }

  async function look(
    env: Readonly<Record<string, string>> = {},
    ...words: string[]
  ): Promise<{ readonly code: number; readonly of: (check: string) => readonly Finding[] }> {
    const all = { SVC_DATA_DIR: directory(), ...nowhere, ...env };
    const called = await svc(['doctor', '--json', ...words], { env: all });
    const findings = called.json['findings'] as readonly Finding[];
    for (const { verdict, advice } of findings) expect(advice === null).to.equal(verdict === 'ok');
    const faults = findings.filter(({ verdict }) => verdict === 'fault').length;
    expect(called.code).to.equal(faults > 0 ? 1 : 0);
    return { code: called.code, of: (check) => findings.filter((each) => each.check === check) };
  }

  it('finds no problems in a sound store', async () => {
    await seed();
    const { code, of } = await look();
    expect(code).to.equal(0);
    const sound = ['settings', 'data directory', 'key of tokens', 'disk', 'log', 'views', 'orders'];
    for (const check of [...sound, 'artifacts', 'clocks', 'tasks', 'events', 'fires', 'keys']) {
      const verdicts = of(check).map(({ verdict }) => verdict);
      expect(verdicts, check).to.deep.equal(['ok']);
    }
    expect(of('log')[0]?.found).to.match(/^embedded, SQLite 3\.\d+\.\d+$/);
    expect(of('events')[0]?.found).to.equal('7 in the log');
    expect(of('processes')[0]?.found).to.equal('no service runs on this store');

    const shown = await svc(['doctor', '--quick'], {
      env: { SVC_DATA_DIR: directory(), ...nowhere },
    });
    expect(shown.out).to.match(/^ok {5}orders {10}not on hold$/m);
    expect(shown.out).to.match(/^warn {3}processes .*\n {23}→ start one/m);
    expect(shown.out).to.not.include('in the log');
    expect(shown.out).to.match(/\n0 faults, 1 warning\n$/);
  });

  it('reports wrong settings, keys and folders', async () => {
    await seed();
    chmodSync(join(directory(), 'jwt-secret.key'), 0o644);
    chmodSync(directory(), 0o755);
    const { of } = await look({ SVC_PORT: 'eighty' }, '--quick');
    expect(of('settings')[0]).to.include({ verdict: 'fault' });
    expect(of('settings')[0]?.found).to.include('SVC_PORT');
    expect(of('key of tokens')[0]).to.include({ verdict: 'fault' });
    expect(of('data directory')[0]).to.include({ verdict: 'warn' });
    const { of: unknown } = await look({ SVC_DATA_DIRR: 'x' }, '--quick');
    expect(unknown('settings')[0]).to.include({ verdict: 'warn' });
    const { of: none } = await look({ SVC_DATA_DIR: join(directory(), 'none') });
    expect(none('data directory')[0]?.found).to.include('does not exist');
  });

  it('reports an artifact store that cannot be used, with the remedy', async () => {
    await seed();
    const server = await S3Server.start();
    const { credentials, url } = server;
    const env = {
      SVC_ARTIFACTS_S3_BUCKET: server.bucket,
      SVC_ARTIFACTS_S3_REGION: server.region,
      SVC_ARTIFACTS_S3_ENDPOINT: url,
      SVC_ARTIFACTS_S3_KEY_ID: credentials.keyId,
      SVC_ARTIFACTS_S3_SECRET: credentials.secret,
    };
    const { of } = await look(env, '--quick');
    expect(of('artifacts')[0]).to.include({
      verdict: 'ok',
      found: 'bucket results; results up to 16 MiB',
    });
    const { of: wrong } = await look({ ...env, SVC_ARTIFACTS_S3_BUCKET: 'nowhere' }, '--quick');
    expect(wrong('artifacts')[0]).to.deep.include({
      verdict: 'fault',
      found: 'could not list artifacts in the bucket nowhere (NoSuchBucket)',
      advice: 'create it, or correct SVC_ARTIFACTS_S3_BUCKET',
    });
    expect(server.requests.every((each) => each.startsWith('GET'))).to.equal(true);
    await server.close();
    writeFileSync(join(directory(), 'artifacts'), 'in the way');
    const { of: blocked } = await look({}, '--quick');
    expect(blocked('artifacts')[0]).to.include({ verdict: 'fault' });
  });

  it('reports an inaccessible key', async () => {
    await seed();
    const key = join(directory(), 'jwt-secret.key');
    rmSync(key);
    // Not even root can resolve a path through this.
    symlinkSync(key, key);
    const { of } = await look({}, '--quick');
    expect(of('key of tokens')[0]).to.include({ verdict: 'fault' });
    expect(of('key of tokens')[0]?.found).to.match(/this user can't read/);
  });

  it('reports a data directory that is a file or below one', async () => {
    const file = join(directory(), 'file');
    writeFileSync(file, '');
    for (const folder of [file, join(file, 'data')]) {
      const { code, json } = await svc(['doctor', '--json'], { env: { SVC_DATA_DIR: folder } });
      expect(code).to.equal(1);
      const faults = (json['findings'] as readonly Finding[]).filter(
        ({ verdict }) => verdict === 'fault',
      );
      expect(faults).to.deep.equal([
        {
          check: 'data directory',
          verdict: 'fault',
          found: `${folder} can't be made: ${file} is not a folder`,
          advice: 'SVC_DATA_DIR must name a folder',
        },
      ]);
    }
  });

  it('reports fires without a run, runs without a payload, keys of finished runs, and unreadable events', async () => {
    const long = Date.now() - DAY;
    const [orphan, over, published, lost] = [newId(long), newId(long), newId(long), newId(long)];
    const created_by = 'agent-1';
    const asked = {
      task_id: newId(long),
      task_revision: 0,
      created_by,
      trigger: 'manual' as const,
    };
    await seed(async (store) => {
      const due = { next_fire_at: null, task_revision: 0, fire_count: 1 };
      const nominal = toIso(long);
      const fired = { nominal, run_id: orphan, ...due };
      await add(store, streams.fires(asked.task_id), long, { type: 'Fired', data: fired });
      await add(store, streams.run(over), long, {
        type: 'RunSkipped',
        data: { ...asked, scheduled_for: null, priority: 5, reason: 'overlap', because_of: null },
      });
      for (const id of [published, lost]) {
        if (id === published) {
          const data = { event_id: id, payload: { n: 1 }, triggered_tasks: [asked.task_id] };
          await add(store, streams.payload(id), long, { type: 'PayloadStored', data });
        }
        const event = { id, topic: 'a', source_agent_id: created_by, published_at: nominal };
        const data = request({ trigger: 'event', event });
        await add(store, streams.run(newId(long)), long, { type: 'RunRequested', data });
      }
      const slot = { run_id: over, task_id: asked.task_id, trigger: 'manual' as const };
      const state = { kind: 'concurrency' as const, key: 'one', owner: created_by, waiters: [] };
      const holders = [{ ...slot, since: nominal, limit: 1, attempt: 1 }];
      await add(store, streams.key('concurrency', created_by, 'one'), long, {
        type: 'KeyHeld',
        data: { run_id: over, ...state, holders, used: null },
      });
    });
    await addRaw(directory(), 'key-broken', { type: 'KeyHeld', data: '{', metadata: '{}' });
    const unfit = { type: 'RunStarted', data: '{"worker":5}', metadata: '{"schemaVersion":"1"}' };
    await addRaw(directory(), 'run-unfit', unfit);
    const minute = Date.now() + 2 * 60_000;
    const clock = { now: () => minute } as never;
    const called = await svc(['doctor', '--json'], {
      env: { SVC_DATA_DIR: directory(), ...nowhere },
      clock,
    });
    expect(called.code).to.equal(1);
    const findings = called.json['findings'] as readonly Finding[];
    const found = (check: string): string =>
      findings.find((each) => each.check === check && each.verdict === 'fault')?.found ?? '';
    expect(found('fires')).to.include(orphan);
    expect(found('payloads')).to.equal(`events whose payload is missing: ${lost}`);
    expect(found('keys')).to.include(over).and.to.include('concurrency one');
    expect(found('events')).to.equal('damaged: revision 0 of key-broken, 0 of run-unfit');
  });

  it('reports a damaged log, as other commands do', async () => {
    await seed(async (store) => {
      const id = await addTask(store, Date.now());
      await addRuns(store, id, Date.now(), 400);
    });
    const file = logFile(directory());
    const content = readFileSync(file);
    writeFileSync(file, content.fill(0xff, content.length / 2));
    const { of } = await look({}, '--quick');
    expect(of('tasks')[0]).to.include({ verdict: 'fault' });
    expect(of('tasks')[0]?.found).to.include(file).and.to.include('damaged');
    for (const command of ['owed', 'simulate']) {
      const { code, err } = await svc([command], { env: { SVC_DATA_DIR: directory() } });
      expect(err).to.include(file).and.to.include('damaged');
      expect(code).to.equal(6);
    }
  });

  it('reports a hold, an unfinished import, and an event in the future', async () => {
    await seed(async (store) => {
      await holdCommand(store, 'moving', context(Date.now()));
      await addTask(store, Date.now() + DAY);
    });
    const { of } = await look({}, '--quick');
    expect(of('orders')[0]).to.include({ verdict: 'warn' });
    expect(of('orders')[0]?.found).to.include('moving');
    expect(of('clocks')[0]).to.include({ verdict: 'fault' });
    expect(of('clocks')[0]?.found).to.match(/8\d{4} s in the future/);
    await onLog(directory(), (store) => beginImport(store, 'export-1', 5, context(Date.now())));
    expect((await look({}, '--quick')).of('orders')[0]).to.include({ verdict: 'fault' });
  });

  it("reports the server's version and its outage", async () => {
    const server = await EventStoreDbServer.start();
    const env = { SVC_EVENT_STORE_URL: server.url };
    const there = await look(env, '--quick');
    expect(there.of('log')[0]).to.include({ verdict: 'ok', found: 'EventStoreDB 24.10.0' });
    server.stop();
    const away = await look(env, '--quick');
    expect(away.of('log')[0]).to.include({ verdict: 'fault' });
    expect(away.of('log')[0]?.advice).to.include('SVC_EVENT_STORE_URL');
  });
});
