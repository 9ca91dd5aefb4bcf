import { createHash } from 'node:crypto';
import { BEGINNING } from '../../domain/event-store.ts';
import type { JsonObject } from '../../domain/json.ts';
import { silent } from '../../observability/telemetry.ts';
import type { Projection, ReadModel } from '../../projections/read-model.ts';
import { openSqliteReadModel } from '../../stores/sqlite/read-model/read-model.ts';
import { withBenchFolder } from '../bench-folder.ts';
import { secondsOf } from '../bench-service.ts';
import type { Figures, Benchmark } from '../benchmark.ts';

const DOCUMENTS = 100_000;
const BULK_BATCH = 1_300;
const LIVE_BATCH = 500;

/** The embedded read model: filling a view in bulk, changing it with five indexes, reading it. */
export const views: Benchmark = {
  targets: [],
  count: () => DOCUMENTS,
  measure: () =>
    withBenchFolder('views', async (directory) => {
      const readModel = await openSqliteReadModel({ directory, telemetry: silent });
      try {
        const filled = await fill(readModel);
        await readModel.switchTo(runs, 1);
        const statuses = ['queued', 'running', 'succeeded', 'failed'];
        const changed = await changeLive(readModel, 100, (batch, i) => ({
          number: DOCUMENTS - 1 - ((batch * 977 + i * 5) % Math.min(3_000, DOCUMENTS)),
          status: statuses[(batch + i) % 4] ?? 'queued',
        }));
        const added = await changeLive(readModel, 40, (batch, i) => ({
          number: DOCUMENTS + batch * LIVE_BATCH + i,
          status: 'queued',
        }));
        return {
          'filled/s': filled,
          'changed/s': changed,
          'added/s': added,
          ...(await read(readModel)),
        };
      } finally {
        await readModel.close();
      }
    }),
};

const runs: Projection = {
  name: 'bench_runs',
  schema: 1,
  streams: ['run-'],
  fields: { task: 'text', agent: 'text', status: 'text', priority: 'number', requested: 'number' },
  indexes: [
    ['task', 'requested'],
    ['agent', 'requested'],
    ['status', 'requested'],
    ['priority', 'requested'],
    ['requested'],
  ],
  keys: () => [],
  evolve: (document) => document,
};

/** Returns documents a second, without the indexes. */
async function fill(readModel: ReadModel): Promise<number> {
  const writer = await readModel.openWriter(runs, { generation: 1, bulk: true, fence: 1 });
  let seconds = 0;
  for (let first = 0; first < DOCUMENTS; first += BULK_BATCH) {
    const documents = Array.from({ length: Math.min(BULK_BATCH, DOCUMENTS - first) }, (_, i) => ({
      key: keyOf(first + i),
      position: positionOf(first + i + 1),
      document: runOf(first + i, 'succeeded'),
    }));
    const from = first === 0 ? BEGINNING : positionOf(first);
    seconds += await secondsOf(async () => {
      await writer.load(documents.map(({ key }) => key));
      await writer.write({ documents, from, to: positionOf(first + documents.length) });
    });
  }
  await writer.finish();
  await writer.close();
  return DOCUMENTS / seconds;
}

/** Returns documents a second. */
async function changeLive(
  readModel: ReadModel,
  batches: number,
  choose: (batch: number, i: number) => { readonly number: number; readonly status: string },
): Promise<number> {
  const writer = await readModel.openWriter(runs, { generation: 1, bulk: false, fence: 1 });
  let from = await writer.checkpoint();
  let seconds = 0;
  for (let batch = 0; batch < batches; batch += 1) {
    const to = positionOf(Number(from) + LIVE_BATCH);
    const documents = Array.from({ length: LIVE_BATCH }, (_, i) => {
      const { number, status } = choose(batch, i);
      return { key: keyOf(number), position: to, document: runOf(number, status) };
    });
    seconds += await secondsOf(async () => {
      await writer.load(documents.map(({ key }) => key));
      await writer.write({ documents, from, to });
    });
    from = to;
  }
  await writer.close();
  return (batches * LIVE_BATCH) / seconds;
}

async function read(readModel: ReadModel): Promise<Figures> {
  const sort = [{ field: 'requested', direction: 'descending' }] as const;
  const middle = Math.floor(DOCUMENTS / 2);
  const after = { values: [requestedAt(middle)], key: keyOf(middle) };
  const page = { filters: [], sort, limit: 50 };
  const running = [{ field: 'status', op: 'eq', value: 'running' }] as const;
  const key = (i: number): string => keyOf((i * 7_919) % DOCUMENTS);
  return {
    'get us': (await averageMs(2_000, (i) => readModel.get(runs, key(i)))) * 1_000,
    'page ms': await averageMs(50, () => readModel.find(runs, page)),
    'page by cursor ms': await averageMs(50, () => readModel.find(runs, { ...page, after })),
    'page by offset ms': await averageMs(20, () =>
      readModel.find(runs, { ...page, offset: middle }),
    ),
    'count ms': await averageMs(20, () => readModel.count(runs, running)),
  };
}

/** The average milliseconds of a round, after one to warm up. */
async function averageMs(
  rounds: number,
  work: (round: number) => Promise<unknown>,
): Promise<number> {
  await work(0);
  const seconds = await secondsOf(async () => {
    for (let round = 0; round < rounds; round += 1) await work(round);
  });
  return (seconds * 1000) / rounds;
}

const keyOf = (number: number): string =>
  createHash('sha1').update(String(number)).digest('hex').slice(0, 26);
const positionOf = (number: number): string => String(number).padStart(20, '0');
const requestedAt = (number: number): number => 1_767_225_600_000 + number * 1_000;

function runOf(number: number, status: string): JsonObject {
  return {
    task: `task-${String(number % 5_000)}`,
    agent: `agent-${String(number % 300)}`,
    status,
    priority: number % 10,
    requested: requestedAt(number),
    attempts: 1,
    result: { text: 'x'.repeat(200), numbers: [1, 2, 3] },
  };
}
