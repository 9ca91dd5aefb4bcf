import { expect } from 'chai';
import { getServers, setServers } from 'node:dns';
import { BEGINNING } from '../../../domain/event-store.ts';
import { silent, type Telemetry } from '../../../observability/telemetry.ts';
import { ReadModelError, type ReadModel } from '../../../projections/read-model.ts';
import { CoordinationError } from '../../../scheduler/coordination.ts';
import { openMongoCoordination } from '../../../stores/mongodb/coordination.ts';
import { openMongoReadModel } from '../../../stores/mongodb/read-model.ts';
import {
  at,
  fill,
  rejectsWith,
  thing,
  thingsProjection,
  writerOf,
} from '../../contracts/read-model-things.ts';
import { leavesNothingOpen } from '../../support/leaks.ts';
import { MongoServer } from '../../support/mongodb-server/server.ts';
import { reportingTo } from '../../support/reporting-to.ts';
import { eventually } from '../../support/signals.ts';

/** Long enough to find a running server on a busy machine, and short enough for a test. */
const TIMEOUTS = { serverSelectionTimeoutMs: 1_000, pingTimeoutMs: 4_000 };

describe('a MongoDB outage', () => {
  let server: MongoServer;
  const opened: { close(): Promise<void> }[] = [];

  async function open(
    more: { readonly url?: string; readonly telemetry?: Telemetry; readonly limit?: number } = {},
  ): Promise<ReadModel> {
    const readModel = await openMongoReadModel({
      url: more.url ?? server.url(),
      telemetry: more.telemetry ?? silent,
      ...TIMEOUTS,
      ...(more.limit !== undefined && { operationTimeoutMs: more.limit }),
    });
    opened.push(readModel);
    return readModel;
  }

  afterEach(async () => {
    await Promise.all(opened.splice(0).map((one) => one.close()));
    await server.stop();
  });
  leavesNothingOpen();
  beforeEach(async () => {
    server = await MongoServer.start();
  });

  it('may exist at the start, and everything works once the server is there', async () => {
    await server.stop();
    const readModel = await open();
    const projection = thingsProjection();
    await rejectsWith('UNAVAILABLE', readModel.ping());
    await rejectsWith('UNAVAILABLE', writerOf(readModel, projection));
    await server.resume();
    await eventually(() => readModel.ping());
    await fill(readModel, projection, [thing('a', 1, { name: 'late' })]);
    expect((await readModel.get(projection, 'a'))?.document).to.deep.equal({ name: 'late' });
  });

  it('makes every operation fail until it ends', async () => {
    const readModel = await open();
    const projection = thingsProjection();
    await fill(readModel, projection, [thing('a', 1, { name: 'kept' })]);
    const writer = await writerOf(readModel, projection);
    await server.stop();
    await Promise.all([
      rejectsWith('UNAVAILABLE', readModel.get(projection, 'a')),
      rejectsWith('UNAVAILABLE', readModel.liveGeneration(projection)),
      rejectsWith('UNAVAILABLE', readModel.ping()),
      rejectsWith('UNAVAILABLE', writer.load(['a'])),
    ]);
    await rejectsWith('UNAVAILABLE', writer.write({ documents: [], from: at(1), to: at(2) }));
    await server.resume();
    await eventually(() => readModel.ping());
    await writer.write({ documents: [thing('b', 2, {})], from: at(1), to: at(2) });
    expect(await readModel.count(projection, [])).to.equal(2);
  });

  it("is reported with the server's address, without the password", async () => {
    await server.stop();
    const url = `mongodb://someone:secret@${server.address}/`;
    const readModel = await open({ url });
    const error: unknown = await readModel.ping().catch((failure: unknown) => failure);
    expect(error).to.be.instanceOf(ReadModelError);
    expect(String(error)).to.contain(server.address).and.not.contain('secret');
  });

  it('is logged once at its start and once at its end', async () => {
    const lines: string[] = [];
    const note = (message: string): void => {
      lines.push(
        message.includes('can be used again') ? 'back' : message.includes('not') ? 'gone' : '',
      );
    };
    const readModel = await open({ telemetry: reportingTo({ warn: note, info: note }) });
    await readModel.ping();
    await server.stop();
    for (let i = 0; i < 3; i += 1) await rejectsWith('UNAVAILABLE', readModel.ping());
    await server.resume();
    await eventually(() => readModel.ping());
    expect(lines.filter((line) => line !== '')).to.deep.equal(['gone', 'back']);
  });

  it('includes a host name that cannot be resolved', async () => {
    const servers = getServers();
    setServers(['127.0.0.1:9']);
    try {
      const readModel = await open({ url: 'mongodb+srv://somewhere.example.com' });
      await rejectsWith('UNAVAILABLE', readModel.ping());
    } finally {
      setServers(servers);
    }
  });

  it('makes operations on a silent server fail in time', async () => {
    const readModel = await open({ limit: 1_000 });
    const projection = thingsProjection();
    await fill(await open(), projection, [thing('a', 1, {})]);
    const silence = ['ping', 'find'].map((command) =>
      server.fault({ command, times: Infinity, effect: { kind: 'hold' } }),
    );
    await rejectsWith('UNAVAILABLE', readModel.ping());
    await rejectsWith('UNAVAILABLE', readModel.get(projection, 'a'));
    for (const fault of silence) fault.release();
    await eventually(() => readModel.ping());
    await eventually(async () => (await readModel.get(projection, 'a')) !== null);
  });

  it('of a server that falls silent is noticed long before the operation timeout', async () => {
    const readModel = await open();
    const projection = thingsProjection();
    await fill(readModel, projection, [thing('a', 1, {})]);
    const silence = server.fault({ command: '*', times: Infinity, effect: { kind: 'hold' } });
    const asked = performance.now();
    await rejectsWith('UNAVAILABLE', readModel.get(projection, 'a'));
    expect(performance.now() - asked).to.be.lessThan(18_000);
    silence.release();
    await eventually(() => readModel.ping());
    expect(await readModel.get(projection, 'a')).to.not.equal(null);
  });

  it('includes queries over the time limit, which is passed to the server', async () => {
    const readModel = await open({ limit: 5_000 });
    const projection = thingsProjection();
    await fill(readModel, projection, [thing('a', 1, { team: 'red' })]);
    const filters = [{ field: 'team', op: 'eq', value: 'red' }] as const;
    const collection = `${projection.name}_s1_g1`;
    server.clearLog();
    const queries = [
      () => readModel.find(projection, { filters, sort: [], limit: 10 }),
      () => readModel.count(projection, filters),
      () => readModel.count(projection, []),
    ];
    for (const query of queries) await query();
    const sent = server.log.filter((entry) => entry.collection === collection);
    expect(sent.map(({ command, body }) => [command, body['maxTimeMS']])).to.have.deep.members([
      ['find', 5_000],
      ['aggregate', 5_000],
      ['count', 5_000],
      ['aggregate', 5_000],
    ]);
    const over = {
      code: 50,
      codeName: 'MaxTimeMSExpired',
      message: 'operation exceeded time limit',
    };
    server.fault({ command: 'find', collection, effect: { kind: 'error', ...over } });
    await rejectsWith('UNAVAILABLE', readModel.find(projection, { filters, sort: [], limit: 10 }));
  });

  it('during the handshake is detected within the ping timeout', async () => {
    const silence = server.fault({ command: '*', times: Infinity, effect: { kind: 'hold' } });
    const readModel = await open();
    await rejectsWith('UNAVAILABLE', readModel.ping());
    silence.release();
    await eventually(() => readModel.ping());
  });

  it('is a CoordinationError for the coordination store, which recovers by itself too', async () => {
    await server.stop();
    const coordination = await openMongoCoordination({
      url: server.url(),
      telemetry: silent,
      ...TIMEOUTS,
    });
    opened.push(coordination);
    const outcomes = await Promise.allSettled([
      coordination.ping(),
      coordination.acquire('lease', 'one', 1000),
      coordination.heartbeat('one', {}, 1000),
      coordination.recall('text'),
    ]);
    for (const outcome of outcomes) {
      expect(outcome.status).to.equal('rejected');
      if (outcome.status === 'rejected') {
        expect(outcome.reason).to.be.instanceOf(CoordinationError);
      }
    }
    await server.resume();
    await eventually(() => coordination.ping());
    await coordination.heartbeat('one', {}, 60_000);
    expect((await coordination.alive()).map(({ id }) => id)).to.deep.equal(['one']);
  });

  it('does not occur in one adapter when the other closes', async () => {
    const readModel = await open();
    const coordination = await openMongoCoordination({
      url: server.url(),
      telemetry: silent,
      ...TIMEOUTS,
    });
    opened.push(coordination);
    await coordination.ping();
    await readModel.close();
    await coordination.ping();
    await rejectsWith('UNAVAILABLE', readModel.ping());
  });

  it('is not confused with an invalid URL, which is rejected', async () => {
    const refusal: unknown = await openMongoReadModel({
      url: 'http://nowhere',
      telemetry: silent,
    }).catch((error: unknown) => error);
    expect(refusal).to.be.instanceOf(Error);
  });

  for (const option of ['tlsCAFile', 'tlsCertificateKeyFile', 'tlsCRLFile']) {
    it(`is not confused with a missing ${option}, which is rejected`, async () => {
      const url = `${server.url()}?tls=true&${option}=/not/there.pem`;
      for (const opens of [openMongoReadModel, openMongoCoordination]) {
        const refusal: unknown = await opens({ url, telemetry: silent }).catch(
          (error: unknown) => error,
        );
        expect(String(refusal)).to.include("ENOENT: no such file or directory, access '/not/");
      }
    });
  }

  for (const [path, options, database] of [
    ['', {}, 'svc'],
    ['?directConnection=true', {}, 'svc'],
    ['mine', {}, 'mine'],
    ['my%2Ddata?directConnection=true', {}, 'my-data'],
    ['mine', { database: 'other' }, 'other'],
  ] as const) {
    it(`keeps its views in ${database} for the path "${path}"${'database' in options ? ' and an option' : ''}`, async () => {
      const readModel = await openMongoReadModel({
        url: server.url(path),
        telemetry: silent,
        ...options,
      });
      opened.push(readModel);
      const projection = thingsProjection();
      await fill(readModel, projection, [thing('a', 1, {})]);
      expect(server.documents(database, `${projection.name}_s1_g1`)).to.have.length(1);
    });
  }

  it('includes a connection that breaks during a large command', async () => {
    const readModel = await open();
    const writer = await writerOf(readModel, thingsProjection());
    const key = 'x'.repeat(6_000_000);
    const documents = [thing(key, 1, {})];
    server.breaksAbove = 1_000_000;
    await rejectsWith('UNAVAILABLE', writer.load([key]));
    await rejectsWith('UNAVAILABLE', writer.write({ documents, from: BEGINNING, to: at(1) }));
    server.breaksAbove = Infinity;
    await writer.write({ documents, from: BEGINNING, to: at(1) });
    expect([...(await writer.load([key])).keys()]).to.deep.equal([key]);
  });

  it('does not prevent the repetition of a first batch after a lost response', async () => {
    const readModel = await open();
    const projection = thingsProjection();
    const writer = await writerOf(readModel, projection);
    const batch = { documents: [thing('a', 1, { amount: 1 })], from: BEGINNING, to: at(1) };
    server.fault({
      command: 'update',
      collection: `${projection.name}_s1_g1`,
      effect: { kind: 'drop', executed: true },
    });
    await rejectsWith('UNAVAILABLE', writer.write(batch));
    expect(await writer.checkpoint()).to.equal(BEGINNING);
    await writer.write(batch);
    await readModel.switchTo(projection, 1);
    expect((await readModel.get(projection, 'a'))?.document).to.deep.equal({ amount: 1 });
    expect(await readModel.count(projection, [])).to.equal(1);
  });

  it('does not count a batch twice when the response to its checkpoint is lost', async () => {
    const readModel = await open();
    const projection = thingsProjection();
    const writer = await writerOf(readModel, projection);
    const batch = { documents: [thing('a', 1, {})], from: BEGINNING, to: at(1) };
    server.fault({
      command: 'update',
      collection: '_checkpoints',
      effect: { kind: 'drop', executed: true },
    });
    await rejectsWith('UNAVAILABLE', writer.write(batch));
    await rejectsWith('FENCED', writer.write(batch));
    expect(await writer.checkpoint()).to.equal(at(1));
  });
});
