import { expect } from 'chai';
import { appendFileSync, existsSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import {
  addCutStream,
  addRaw,
  addRuns,
  addRunsAtOnce,
  addTask,
  manifestIn,
  onLog,
} from './small-log.ts';
import { requestReplay } from '../../../domain/operators/replays.ts';
import { Ledger } from '../../process/ledger.ts';
import { EventStoreDbServer } from '../../support/eventstoredb-server/server.ts';
import { useTemporaryDirectory } from '../../support/temporary-directory.ts';
import { projectRoot } from '../../support/project-root.ts';
import { svc, type Called } from '../cli/command-line.ts';

const AT = Date.parse('2026-05-01T10:00:00Z');
const RUNS = 30;

describe('a moved log', function () {
  this.timeout(180_000);
  const directory = useTemporaryDirectory();
  const servers: EventStoreDbServer[] = [];
  afterEach(() => {
    for (const server of servers.splice(0)) server.stop();
  });
  const path = (name: string): string => join(directory(), name);
  const startServer = async (): Promise<EventStoreDbServer> => {
    const server = await EventStoreDbServer.start();
    servers.push(server);
    return server;
  };
  /** Calls the command line on the embedded store of a folder, or on a server. */
  const on = (place: string | EventStoreDbServer, ...words: string[]): Promise<Called> => {
    const env =
      typeof place === 'string'
        ? { SVC_DATA_DIR: path(place) }
        : { SVC_DATA_DIR: path('beside'), SVC_EVENT_STORE_URL: place.url };
    return svc(words, { env });
  };
  const done = async (called: Promise<Called>): Promise<Called> => {
    const ended = await called;
    expect(ended.code, ended.err).to.equal(0);
    return ended;
  };

  /** A log with events that are hard to move. */
  async function seed(name: string, runs = RUNS): Promise<void> {
    await onLog(path(name), async (store) => {
      const task = await addTask(store, AT);
      await addRuns(store, task, AT, runs);
      await addCutStream(store, 'demo-cut', 7, 4);
      await addCutStream(store, 'demo-gone', 3, 3);
    });
    const sample = 'test/domain/events/samples/run-requested-1.json';
    const old = JSON.parse(readFileSync(join(projectRoot, sample), 'utf8')) as {
      stream: string;
      type: string;
      data: object;
      metadata: object;
    };
    const texts = { data: JSON.stringify(old.data), metadata: JSON.stringify(old.metadata) };
    await addRaw(path(name), old.stream, { type: old.type, ...texts });
  }

  /** The events of a log, without what depends on the log itself. */
  const storyIn = (name: string): readonly object[] =>
    Ledger.read(path(name))
      .events.filter(({ stream }) => stream !== 'import')
      .map(({ position: _position, createdAt: _createdAt, ...event }) => event);

  const movedTo = ({ log }: EventStoreDbServer) =>
    log.all.filter(({ stream, type }) => stream !== 'import' && !(stream + type).includes('$'));

  it('is the same after a move to EventStoreDB and back', async () => {
    await seed('here');
    const server = await startServer();
    await done(on('here', 'export', path('out')));
    const before = manifestIn(path('out'));
    expect(before.events).to.equal(1 + RUNS * 3 + 3 + 1);
    const imported = await done(on(server, 'import', path('out'), '--in-order'));
    expect(imported.out).to.include(`the content has the SHA-256 ${before.content_sha256}`);
    await done(on(server, 'export', path('back')));
    expect(manifestIn(path('back')).content_sha256).to.equal(before.content_sha256);
    await done(on('there', 'import', path('back')));
    await done(on('there', 'export', path('again')));
    expect(manifestIn(path('again')).content_sha256).to.equal(before.content_sha256);
    expect(storyIn('there')).to.deep.equal(storyIn('here'));

    // Streams continue at their revision, even if all their events are truncated.
    await onLog(path('there'), async (store) => {
      const [first] = await store.readStream('demo-cut', { limit: 1 });
      expect(first?.revision).to.equal(4);
      const event = first as NonNullable<typeof first>;
      const next = { ...event, id: '00000000-0000-4000-8000-000000000001' };
      expect((await store.append('demo-gone', [next], 2)).revision).to.equal(3);
    });
  });

  it('is restored into a folder from the backup of a server', async () => {
    await seed('here');
    const server = await startServer();
    await done(on('here', 'export', path('out')));
    await done(on(server, 'import', path('out')));
    await done(on(server, 'backup', path('backup')));
    await done(on('there', 'restore', path('backup')));
    const { events } = Ledger.read(path('there'));
    expect(events.filter(({ type }) => type === 'RunSucceeded')).to.have.lengthOf(RUNS);
    expect(events.at(-1)?.type).to.equal('OperationsHeld');
  });

  it('is appended concurrently to a server, keeping the order of each stream and of shared events', async () => {
    await seed('here', 100);
    const first = Ledger.read(path('here')).events[90]?.stream ?? '';
    await onLog(path('here'), async (store) => {
      await addCutStream(store, 'demo-between', 1, 0);
      await addRunsAtOnce(store, await addTask(store, AT + 1), AT + 1, 200);
    });
    const server = await startServer();
    // Lost responses: the same append is repeated, and others overtake it.
    server.faults.onNextAppends('unavailable-after-writing', 'unavailable-before-writing');
    await done(on('here', 'export', path('out')));
    const { json } = await done(on(server, 'import', path('out'), '--json'));
    expect(json['in_order']).to.equal(false);
    const there = movedTo(server);
    const here = Ledger.read(path('here')).events;
    const ids = (events: readonly { readonly id: string }[]): readonly string[] =>
      events.map(({ id }) => id);
    expect(ids(there)).to.have.members(ids(here) as string[]);
    expect(ids(there)).to.not.deep.equal(ids(here));
    // Events change places only within a second, and never with an event that all writers wait for.
    const times = there.map(({ metadata }) => {
      const { occurredAt } = JSON.parse(Buffer.from(metadata).toString()) as { occurredAt: string };
      return Date.parse(occurredAt);
    });
    const late = times
      .slice(0, 300)
      .filter((at, n) => n > 0 && at + 1_000 < Math.max(...times.slice(0, n)));
    expect(late).to.deep.equal([]);
    const between = (events: readonly { readonly stream: string }[]): number =>
      events.findIndex(({ stream }) => stream === 'demo-between');
    expect(between(there)).to.equal(between(here));
    const of = (events: readonly { readonly stream: string; readonly id: string }[]) =>
      ids(events.filter(({ stream }) => stream === first));
    expect(of(there)).to.deep.equal(of(here));
    await done(on(server, 'export', path('back')));
    await done(on('there', 'import', path('back')));
    const sorted = (name: string): readonly string[] =>
      storyIn(name)
        .map((event) => JSON.stringify(event))
        .sort();
    expect(sorted('there')).to.deep.equal(sorted('here'));
  });

  it('continues fully truncated streams concurrently', async () => {
    const gone = Array.from({ length: 30 }, (_, n) => `demo-gone${n}`);
    await onLog(path('here'), async (store) => {
      for (const stream of gone) await addCutStream(store, stream, 2, 2);
    });
    await done(on('here', 'export', path('out')));
    const server = await startServer();
    await done(on(server, 'import', path('out')));
    const streams = server.appends.map(({ stream }) => stream);
    expect(streams).to.include.members(gone.flatMap((stream) => [stream, `$$${stream}`]));
    // A sequential import would truncate each stream before it fills the next one.
    const filled = streams.filter((stream) => stream.startsWith('demo-gone'));
    const cutFirst = streams.findIndex((stream) => stream.startsWith('$$demo-gone'));
    expect(streams.indexOf(filled[5] ?? '')).to.be.lessThan(cutFirst);
  });

  it('continues in a server that has only some of a thousand events', async () => {
    await onLog(path('here'), async (store) => {
      await addRunsAtOnce(store, await addTask(store, AT), AT, 400);
    });
    await done(on('here', 'export', path('out')));
    const server = await startServer();
    const { largestEvent } = server.faults;
    let written = 0;
    const stopCounting = server.log.onWrite(() => {
      written += 1;
      if (written === 150) server.faults.largestEvent = 1;
    });
    const broken = await on(server, 'import', path('out'));
    expect(broken.code, broken.err).to.equal(1);
    stopCounting();
    server.faults.largestEvent = largestEvent;
    const { json } = await done(on(server, 'import', path('out'), '--json'));
    expect(json['found']).to.be.greaterThan(0).and.to.be.lessThan(1200);
    const ids = movedTo(server).map(({ id }) => id);
    expect(ids).to.have.members(Ledger.read(path('here')).events.map(({ id }) => id));
  });

  it('drops replays, which refer to positions of the old log', async () => {
    await onLog(path('here'), async (store) => {
      await addTask(store, AT);
      const id = '01950a5e-0000-7000-8000-000000000001';
      const context = { commandId: id, actor: 'a', source: 'test', correlationId: id, now: AT };
      const wish = { name: 'friday', until: '1', at: '2026-05-01T10:00:00.000Z', views: ['runs'] };
      await requestReplay(store, { ...wish, rate: null, keepFor: 60_000 }, context);
    });
    await done(on('here', 'export', path('out')));
    await done(on('there', 'import', path('out')));
    await done(on('there', 'import', path('out')));
    const types = storyIn('there').map((event) => (event as { type: string }).type);
    expect(types).to.deep.equal(['TaskCreated', 'ReplayRequested', 'ReplayDropRequested']);
  });

  it('leaves out events that a server has marked as truncated', async () => {
    await seed('here');
    const server = await startServer();
    await done(on('here', 'export', path('out')));
    await done(on(server, 'import', path('out')));
    // Its events stay in a server's log until a scavenge.
    server.write('$$demo-cut', '$metadata', JSON.stringify({ $tb: 6 }));
    await done(on(server, 'export', path('back')));
    expect(manifestIn(path('back')).events).to.equal(manifestIn(path('out')).events);
    const { out } = await done(on('there', 'import', path('back')));
    expect(out).to.include('2 truncated events were left out');
    await onLog(path('there'), async (store) => {
      const events = await store.readStream('demo-cut');
      expect(events.map(({ revision }) => revision)).to.deep.equal([6]);
    });
  });

  it('leaves out deleted events, except for a stream that was created again', async () => {
    await onLog(path('here'), async (store) => {
      for (const stream of ['demo-1', 'demo-2', 'demo-3', 'demo-4']) {
        await addCutStream(store, stream, 3, 0);
      }
    });
    const server = await startServer();
    await done(on('here', 'export', path('out')));
    await done(on(server, 'import', path('out')));
    server.log.softDelete('demo-1');
    server.log.tombstone('demo-2');
    server.log.softDelete('demo-3');
    server.write('demo-3', 'StreamEntryAdded', '{"data":{}}');
    await done(on(server, 'export', path('back')));
    const { out } = await done(on('there', 'import', path('back')));
    expect(out).to.include('9 truncated events were left out');
    await onLog(path('there'), async (store) => {
      const revisions = async (stream: string): Promise<readonly number[]> =>
        (await store.readStream(stream, { faulty: true })).map(({ revision }) => revision);
      expect([await revisions('demo-1'), await revisions('demo-2')]).to.deep.equal([[], []]);
      expect(await revisions('demo-3')).to.deep.equal([3]);
      expect(await revisions('demo-4')).to.deep.equal([0, 1, 2]);
    });
  });

  it('continues an interrupted import and rejects another log', async () => {
    await seed('here', 700);
    await done(on('here', 'export', path('out')));
    const stop = new AbortController();
    const broken = await svc(['import', path('out')], {
      env: { SVC_DATA_DIR: path('there') },
      terminal: true,
      signal: stop.signal,
      written: { send: (text: string) => text.includes('1,000 events') && stop.abort() } as never,
    });
    expect(broken.code).to.equal(1);
    expect(broken.err).to.include('interrupted');
    expect(statSync(path('there')).mode & 0o777).to.equal(0o700);
    expect(Ledger.read(path('there')).events).to.have.lengthOf(1000 + 1);
    const { json } = await done(on('there', 'import', path('out'), '--json'));
    expect(json['found']).to.equal(1000);
    expect(storyIn('there')).to.deep.equal(storyIn('here'));
    const again = await done(on('there', 'import', path('out'), '--json'));
    expect(again.json['found']).to.equal(manifestIn(path('out')).events);

    await onLog(path('there'), (store) => addTask(store, AT));
    const refused = await on('there', 'import', path('out'));
    expect(refused.code).to.equal(5);
    expect(refused.err).to.include('the log is not empty').and.to.include('TaskCreated');
    await onLog(path('other'), (store) => addTask(store, AT));
    expect((await on('other', 'import', path('out'))).code).to.equal(5);
    expect(Ledger.read(path('other')).events.map(({ stream }) => stream)).to.not.include('import');
  });

  it('is not imported from a changed or truncated export', async () => {
    await onLog(path('here'), (store) => addTask(store, AT));
    await done(on('here', 'export', path('out')));
    const lines = join(path('out'), 'events.ndjson');
    const whole = readFileSync(lines, 'utf8');
    appendFileSync(lines, ' ');
    const longer = await on('there', 'import', path('out'));
    expect(longer.code).to.equal(1);
    expect(longer.err).to.include('events.ndjson is damaged');
    writeFileSync(lines, whole.replace('cron', 'cran'));
    expect((await on('there', 'import', path('out'))).err).to.include('another SHA-256');
    expect((await on('there', 'import', directory())).err).to.include('is not an export or backup');
    expect(existsSync(path('there'))).to.equal(false);
  });

  it('keeps a damaged event between folders, but rejects it for a server', async () => {
    const metadata = JSON.stringify({ occurredAt: '2026-05-01T10:00:00.000Z' });
    await addRaw(path('here'), 'run-broken', { type: 'RunStarted', data: '{"cut', metadata });
    await done(on('here', 'export', path('out')));
    await done(on('there', 'import', path('out')));
    await done(on('there', 'export', path('again')));
    const of = (name: string): string => manifestIn(path(name)).content_sha256;
    expect(of('again')).to.equal(of('out'));
    const refused = await on(await startServer(), 'import', path('out'));
    expect(refused.code).to.equal(1);
    expect(refused.err).to.include('revision 0 of run-broken is damaged');
  });
});
