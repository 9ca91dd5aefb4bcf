import { expect } from 'chai';
import { readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { toIso } from '../../../domain/clock.ts';
import { createEventCodec } from '../../../domain/events/codec.ts';
import type { DomainEvent } from '../../../domain/events/catalogue.ts';
import type { StreamAppend } from '../../../domain/event-store.ts';
import { toNewEvents } from '../../../domain/handle.ts';
import { newId } from '../../../domain/ids.ts';
import { streams } from '../../../domain/streams.ts';
import { silent } from '../../../observability/telemetry.ts';
import { openSqliteEventStore } from '../../../stores/sqlite/event-log/event-store.ts';
import { request, success } from '../../projections/recorded.ts';
import type { ApiClient } from '../../support/api-client.ts';
import {
  ServiceProcess,
  buildService,
  credentialsIn,
  endsItsProcesses,
  signIn,
} from '../../support/service-process.ts';
import { eventually, found } from '../../support/signals.ts';
import { useTemporaryDirectory } from '../../support/temporary-directory.ts';
import { faultsOfViews } from '../view-checks.ts';

const RUNS = 3_000;

/** Each run has three events. With so many, separate threads fill the view. */
const MANY_RUNS = 35_000;

/** Few, so that the other views are built quickly. */
const TASKS = 20;

interface Shown {
  readonly version: number;
  readonly rebuild: { readonly state: string; readonly progress: number } | null;
  readonly previous: { readonly version: number } | null;
}

/** The time limit of steps that take long on a slow machine. */
const limits = { limitMs: 120_000 };

/** How long it may take to build the views of {@link MANY_RUNS}. Milliseconds. */
const BUILT = 240_000;

describe('a rebuild whose projector is killed', function () {
  this.timeout(900_000);
  endsItsProcesses();
  const directory = useTemporaryDirectory();
  before(() => buildService());

  const start = (roles: string): Promise<ServiceProcess> =>
    ServiceProcess.start({ SVC_DATA_DIR: directory(), SVC_ROLES: roles, SVC_RATE_LIMIT: '0' });

  /** A log with runs that have ended, one each second until now. @returns the time of the first */
  async function seed(runs: number): Promise<number> {
    const codec = createEventCodec();
    const store = await openSqliteEventStore({ directory: directory(), codec, telemetry: silent });
    const begun = Date.now() - runs * 1000;
    const created_by = newId(begun);
    const tasks = Array.from({ length: TASKS }, () => newId(begun));
    for (let from = 0; from < runs; from += 500) {
      const appends = Array.from({ length: 500 }, (_, n): StreamAppend => {
        const now = begun + (from + n) * 1000;
        const id = newId(now);
        const leased_until = toIso(now + 60_000);
        const events: readonly DomainEvent[] = [
          { type: 'RunRequested', data: request({ task_id: tasks[n % TASKS] ?? id, created_by }) },
          { type: 'RunStarted', data: { worker: 'w', attempt: 1, leased_until } },
          { type: 'RunSucceeded', data: success() },
        ];
        const base = { actor: 'service', source: 'test', correlationId: id };
        const context = { ...base, commandId: id, now };
        const stream = streams.run(id);
        return { stream, events: toNewEvents(stream, events, context), expected: 'none' };
      });
      await store.appendInOrder(appends);
    }
    await store.close();
    return begun;
  }

  it('resumes at each stage, while reads never fail', async () => {
    const begun = await seed(RUNS);
    let projector = ServiceProcess.begin({
      SVC_DATA_DIR: directory(),
      SVC_ROLES: 'projector',
    });
    const api = await start('api');
    const client = api.client(await signIn(api.client(), credentialsIn(directory())));
    const reads = new Reads(client);
    const look = async (): Promise<Shown> => {
      const answer = await client.get('/projections');
      const all = answer.at('projections') as (Shown & { readonly name: string })[];
      return await found(() => all.find(({ name }) => name === 'runs'));
    };
    const order = async (verb: string, body?: object): Promise<void> => {
      const answer = await client.post(`/projections/runs/${verb}`, body);
      expect(answer.status, answer.text).to.be.oneOf([200, 202]);
    };
    const killAndStart = async (): Promise<void> => {
      await projector.kill();
      projector = await start('projector');
    };

    await order('rebuild', { switch: 'manual', rate: 1_000 });
    await eventually(async () => {
      const { rebuild } = await look();
      expect(rebuild?.state).to.equal('filling');
      expect(rebuild?.progress ?? 0).to.be.greaterThan(0.1);
    }, limits);
    await killAndStart();
    await eventually(async () => {
      expect((await look()).rebuild).to.deep.include({ state: 'ready', progress: 1 });
    }, limits);
    await killAndStart();
    expect((await look()).version).to.equal(1);
    // Requested while no projector could do it.
    await projector.kill();
    const switching = order('switch');
    projector = await start('projector');
    await switching;
    await eventually(async () => {
      const { version, rebuild, previous } = await look();
      expect({ version, rebuild }).to.deep.equal({ version: 2, rebuild: null });
      expect(previous).to.deep.include({ version: 1 });
    }, limits);
    await killAndStart();
    await order('rollback');
    await eventually(async () => {
      expect((await look()).version).to.equal(1);
    }, limits);
    // Views as of a time are built in the same way.
    const until = toIso(begun + (RUNS / 2 - 1) * 1000);
    await client.post('/replays', { name: 'half', until, rate: 4_000 });
    const replay = async (): Promise<{ readonly state: string; readonly progress: number }> => {
      const { json } = await client.get('/replays');
      const [first] = json['replays'] as { readonly state: string; readonly progress: number }[];
      return found(() => first);
    };
    await eventually(async () => {
      expect((await replay()).progress).to.be.greaterThan(0.1);
    }, limits);
    await killAndStart();
    await eventually(async () => {
      expect((await replay()).state).to.equal('ready');
    }, limits);
    expect((await client.get('/runs?view=half')).at('total')).to.equal(RUNS / 2);
    const past = await client.get('/stats/summary?view=half&days=2');
    expect(past.at('total_runs')).to.equal(RUNS / 2);
    await projector.kill();
    const dropping = client.delete('/replays/half');
    projector = await start('projector');
    expect((await dropping).status).to.equal(200);
    await eventually(async () => {
      expect((await client.get('/replays')).json).to.deep.equal({ replays: [] });
    }, limits);
    await eventually(() => reads.answered > 100, { what: 'a hundred reads' });
    const failed = await reads.stop();
    expect(failed).to.deep.equal([]);
    expect((await projector.terminate()).code).to.equal(0);
    expect((await api.terminate()).code).to.equal(0);
    expect(await faultsOfViews(directory())).to.deep.equal([]);
  });

  it('resumes when threads fill it, in whatever phase they are', async () => {
    await seed(MANY_RUNS);
    const partsOf = (): readonly string[] =>
      readdirSync(directory()).filter((name) => /^runs-.+\.share\d+\.db$/.test(name));
    const sizeOfParts = (): number =>
      partsOf().reduce((sum, name) => {
        return sum + (statSync(join(directory(), name), { throwIfNoEntry: false })?.size ?? 0);
      }, 0);
    // The filled view has a WAL. On a busy machine it may be filled between two checks.
    const isFilled = (): boolean =>
      readdirSync(directory()).some((name) => /^runs-s\d+-g2\.db-wal$/.test(name));
    const begin = (): ServiceProcess =>
      ServiceProcess.begin({
        SVC_DATA_DIR: directory(),
        SVC_ROLES: 'api,projector',
        SVC_RATE_LIMIT: '0',
      });
    let service = begin();
    await service.ready(BUILT);
    const admin = async (): Promise<ApiClient> =>
      service.client(await signIn(service.client(), credentialsIn(directory())));
    const order = await (await admin()).post('/projections/runs/rebuild', { switch: 'auto' });
    expect(order.status, order.text).to.equal(202);
    // The shares grow to about 16 million bytes. Kills just after their start, halfway, and near the end.
    for (const size of [1, 6_000_000, 12_000_000]) {
      await eventually(() => sizeOfParts() >= size || isFilled(), {
        limitMs: 120_000,
        what: `shares of ${String(size)} bytes`,
      });
      await service.kill();
      service = begin();
    }
    await service.ready(BUILT);
    const client = await admin();
    await eventually(async () => {
      const all = (await client.get('/projections')).at('projections');
      const runs = (all as (Shown & { readonly name: string })[]).find(
        ({ name }) => name === 'runs',
      );
      expect(runs).to.deep.include({ version: 2, rebuild: null });
    }, limits);
    expect((await client.get('/runs?limit=1')).at('total')).to.equal(MANY_RUNS);
    expect(partsOf()).to.deep.equal([]);
    expect((await service.terminate()).code).to.equal(0);
    expect(await faultsOfViews(directory())).to.deep.equal([]);
  });
});

/** Continuous reads; each has to find every run. */
class Reads {
  #answered = 0;
  readonly #failed: string[] = [];
  #stopped = false;
  readonly #running: Promise<void>;

  constructor(client: ApiClient) {
    this.#running = this.#read(client).catch((error: unknown) => {
      this.#failed.push(String(error));
    });
  }

  /** The number of reads so far. */
  get answered(): number {
    return this.#answered;
  }

  /** @returns the reads that failed */
  async stop(): Promise<readonly string[]> {
    this.#stopped = true;
    await this.#running;
    return this.#failed;
  }

  /** Some a second: without a pause they would starve the processes they check. */
  #read(client: ApiClient): Promise<void> {
    const look = async (): Promise<boolean> => {
      const answer = await client.get('/runs?limit=5');
      this.#answered += 1;
      if (answer.status !== 200 || answer.at('total') !== RUNS) {
        this.#failed.push(`${answer.status} ${answer.text.slice(0, 200)}`);
      }
      return this.#stopped;
    };
    return eventually(look, { limitMs: 900_000, everyMs: 60 });
  }
}
