import { createHash } from 'node:crypto';
import { fileURLToPath } from 'node:url';
import { BEGINNING } from '../../domain/event-store.ts';
import type { JsonObject } from '../../domain/json.ts';
import { silent } from '../../observability/telemetry.ts';
import type { Projection, ReadModel } from '../../projections/read-model.ts';
import { openSqliteReadModel } from '../../stores/sqlite/read-model/read-model.ts';
import { makeBenchFolder, removeBenchFolder } from '../bench-folder.ts';

/** What the embedded read model does, measured on this machine. */
export interface ViewFigures {
  readonly documents: number;
  /** Documents written a second while filling, indexes not included. */
  readonly bulkPerSecond: number;
  /** Of `finish()`: indexes and sync. */
  readonly finishMilliseconds: number;
  /** Documents changed a second at 500 to a batch among the latest 3,000, with five indexes. */
  readonly livePerSecond: number;
  /** New documents a second at 500 to a batch, with five indexes. */
  readonly livePerSecondNew: number;
  readonly getMicroseconds: number;
  /** A page of 50 from an index, at the start, by cursor from the middle, and by offset from the middle. */
  readonly pageMilliseconds: number;
  readonly cursorMilliseconds: number;
  readonly offsetMilliseconds: number;
  /** All, and those of one value on an index. */
  readonly countAllMilliseconds: number;
  readonly countMilliseconds: number;
}

const BULK_BATCH = 1_300;
const LIVE_BATCH = 500;

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

/**
 * Fills a view in bulk, then changes and reads it.
 * @param documents how many; default 333,000, what a million events of runs make
 */
export async function benchViews(documents = 333_000): Promise<ViewFigures> {
  const directory = await makeBenchFolder('views');
  const readModel = await openSqliteReadModel({ directory, telemetry: silent });
  try {
    const filled = await fill(readModel, documents);
    await readModel.switchTo(runs, 1);
    const live = await changeLatest(readModel, documents);
    const fresh = await addNew(readModel, documents);
    return {
      documents,
      ...filled,
      livePerSecond: live,
      livePerSecondNew: fresh,
      ...(await read(readModel, documents)),
    };
  } finally {
    await readModel.close();
    await removeBenchFolder(directory);
  }
}

async function fill(readModel: ReadModel, documents: number) {
  const writer = await readModel.openWriter(runs, { generation: 1, bulk: true, fence: 1 });
  let writing = 0;
  for (let first = 0; first < documents; first += BULK_BATCH) {
    const batch = Array.from({ length: Math.min(BULK_BATCH, documents - first) }, (_, i) => ({
      key: keyOf(first + i),
      position: at(first + i + 1),
      document: runOf(first + i, 'succeeded'),
    }));
    const from = first === 0 ? BEGINNING : at(first);
    const began = performance.now();
    await writer.load(batch.map(({ key }) => key));
    await writer.write({ documents: batch, from, to: at(first + batch.length) });
    writing += performance.now() - began;
  }
  const began = performance.now();
  await writer.finish();
  const finishMilliseconds = performance.now() - began;
  await writer.close();
  return { bulkPerSecond: (documents / writing) * 1_000, finishMilliseconds };
}

async function changeLatest(readModel: ReadModel, documents: number): Promise<number> {
  const statuses = ['queued', 'running', 'succeeded', 'failed'];
  return liveBatches(readModel, 100, (batch, i) => {
    const number = documents - 1 - ((batch * 977 + i * 5) % Math.min(3_000, documents));
    return { number, status: statuses[(batch + i) % 4] ?? 'queued' };
  });
}

async function addNew(readModel: ReadModel, documents: number): Promise<number> {
  return liveBatches(readModel, 40, (batch, i) => ({
    number: documents + batch * LIVE_BATCH + i,
    status: 'queued',
  }));
}

async function liveBatches(
  readModel: ReadModel,
  batches: number,
  choose: (batch: number, i: number) => { readonly number: number; readonly status: string },
): Promise<number> {
  const writer = await readModel.openWriter(runs, { generation: 1, bulk: false, fence: 1 });
  let from = await writer.checkpoint();
  let writing = 0;
  for (let batch = 0; batch < batches; batch += 1) {
    const to = at(Number(from) + LIVE_BATCH);
    const changes = Array.from({ length: LIVE_BATCH }, (_, i) => {
      const { number, status } = choose(batch, i);
      return { key: keyOf(number), position: to, document: runOf(number, status) };
    });
    const began = performance.now();
    await writer.load(changes.map(({ key }) => key));
    await writer.write({ documents: changes, from, to });
    writing += performance.now() - began;
    from = to;
  }
  await writer.close();
  return ((batches * LIVE_BATCH) / writing) * 1_000;
}

async function read(readModel: ReadModel, documents: number) {
  const sort = [{ field: 'requested', direction: 'descending' }] as const;
  const middle = Math.floor(documents / 2);
  const after = { values: [requestedOf(middle)], key: keyOf(middle) };
  const filters = [{ field: 'status', op: 'eq', value: 'running' }] as const;
  return {
    getMicroseconds:
      (await timed(2_000, (i) => readModel.get(runs, keyOf((i * 7_919) % documents)))) * 1_000,
    pageMilliseconds: await timed(50, () => readModel.find(runs, { filters: [], sort, limit: 50 })),
    cursorMilliseconds: await timed(50, () =>
      readModel.find(runs, { filters: [], sort, limit: 50, after }),
    ),
    offsetMilliseconds: await timed(20, () =>
      readModel.find(runs, { filters: [], sort, limit: 50, offset: middle }),
    ),
    countAllMilliseconds: await timed(10, () => readModel.count(runs, [])),
    countMilliseconds: await timed(20, () => readModel.count(runs, filters)),
  };
}

/** Milliseconds of one, on average, after a first that does not count. */
async function timed(rounds: number, action: (round: number) => Promise<unknown>): Promise<number> {
  await action(0);
  const began = performance.now();
  for (let round = 0; round < rounds; round += 1) await action(round);
  return (performance.now() - began) / rounds;
}

function keyOf(number: number): string {
  return createHash('sha1').update(String(number)).digest('hex').slice(0, 26);
}

function at(number: number): string {
  return String(number).padStart(20, '0');
}

function requestedOf(number: number): number {
  return 1_767_225_600_000 + number * 1_000;
}

function runOf(number: number, status: string): JsonObject {
  return {
    task: `task-${String(number % 5_000)}`,
    agent: `agent-${String(number % 300)}`,
    status,
    priority: number % 10,
    requested: requestedOf(number),
    attempts: 1,
    result: { text: 'x'.repeat(200), numbers: [1, 2, 3] },
  };
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const figures = await benchViews();
  for (const [name, value] of Object.entries(figures)) {
    console.log(
      `${name.padEnd(24)}${value < 100 ? value.toFixed(2) : Math.round(value).toString()}`,
    );
  }
}
