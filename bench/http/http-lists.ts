import { setTimeout as pause } from 'node:timers/promises';
import { secondsOf } from '../bench-service.ts';
import { percentile } from '../statistics.ts';
import { lessThan, type Figures, type Benchmark } from '../benchmark.ts';
import { listedStore, type ListedStore } from './http-lists-folder.ts';
import { deepLists, everyList, statisticsOf, type List } from './http-lists-paths.ts';
import { read, startHttpService, type HttpService } from './http-service.ts';

/** Requests of each list, after one to warm up. */
const ROUNDS = 5;
/** Requests if one of those was slow, so that the p95 is not just the slowest moment of the machine. */
const ROUNDS_OF_SLOW = 20;
/** Slow lists and statistics, in milliseconds. */
const SLOW_QUERY_MS = 50;
const SLOW_STATISTICS_MS = 20;
/** A list that takes longer than this, in milliseconds, is requested once. */
const MAX_REPEATED_MS = 2_000;
/** The deep page, by cursor, and its items. */
const DEEP_PAGE = 1_000;
const PAGE_SIZE = 50;
/** Milliseconds between two reads beside the lists. */
const READ_PAUSE = 20;

/** Lists at scale, with their p95 in milliseconds; for several lists, the p95 of the slowest. */
export const httpLists: Benchmark = {
  targets: [
    lessThan('covered p95 ms', 50),
    lessThan('worst p95 ms', 250),
    lessThan('statistics p95 ms', 20),
    lessThan('others p95 ms', 20),
    lessThan('other lists p95 ms', 20),
  ],
  count: ({ listed }) => listed,
  async measure({ listed, store }) {
    const { directory, ids } = await listedStore(listed, store);
    // Without a worker and a scheduler, which would change the lists.
    const service = await startHttpService(directory, { SVC_ROLES: 'api,projector' });
    try {
      return await measure(service, ids);
    } finally {
      await service.process.stop();
    }
  },
};

async function measure(service: HttpService, ids: ListedStore['ids']): Promise<Figures> {
  await untilBuilt(service);
  const besides = [
    new Reader(service, `/tasks/${ids.task}`),
    new Reader(service, `/runs?limit=5&task_id=${ids.task}`),
  ];
  const lists: (List & { readonly p95: number })[] = [];
  for (const list of everyList(ids)) lists.push({ ...list, p95: await p95Of(service, list.path) });
  const [beside = [], listBeside = []] = await Promise.all(besides.map((each) => each.end()));
  const [first, deep, statistics]: [number[], number[], number[]] = [[], [], []];
  for (const path of deepLists(ids, PAGE_SIZE)) {
    first.push(await p95Of(service, path));
    deep.push(await p95Of(service, await deepPageOf(service, path)));
  }
  for (const path of statisticsOf(ids)) {
    statistics.push(await p95Of(service, path, SLOW_STATISTICS_MS));
  }
  const covered = lists.filter((list) => list.covered);
  return {
    'covered p95 ms': Math.max(...covered.map(({ p95 }) => p95)),
    'worst p95 ms': Math.max(...lists.map(({ p95 }) => p95)),
    'page 1 p95 ms': Math.max(...first),
    'page 1,000 p95 ms': Math.max(...deep),
    'statistics p95 ms': Math.max(...statistics),
    'others p95 ms': percentile(beside, 0.95),
    'other lists p95 ms': percentile(listBeside, 0.95),
  };
}

/** Resolves when every view is built and has caught up. */
async function untilBuilt({ client }: HttpService): Promise<void> {
  for (;;) {
    const { projections } = (await client.projections.list()).data;
    const isBuilt = projections.every(
      ({ version, caught_up, rebuild }) => version > 0 && caught_up && rebuild === null,
    );
    if (isBuilt) return;
    await pause(200);
  }
}

/** @param slow in milliseconds */
async function p95Of(service: HttpService, path: string, slow = SLOW_QUERY_MS): Promise<number> {
  const warmUp = await timeOf(service, path);
  if (warmUp > MAX_REPEATED_MS) return warmUp;
  const times: number[] = [];
  while (times.length < (Math.max(...times) > slow ? ROUNDS_OF_SLOW : ROUNDS)) {
    times.push(await timeOf(service, path));
  }
  return percentile(times, 0.95);
}

const timeOf = async (service: HttpService, path: string): Promise<number> =>
  (await secondsOf(() => read(service, path))) * 1000;

/** The page after page 1,000, or the last one if there are fewer. */
async function deepPageOf(service: HttpService, path: string): Promise<string> {
  let deep = path;
  for (let page = 1; page <= DEEP_PAGE; page += 1) {
    const { next_cursor } = JSON.parse(await read(service, deep)) as { next_cursor: string | null };
    if (next_cursor === null) break;
    deep = `${path}&cursor=${next_cursor}`;
  }
  return deep;
}

/** Reads a path repeatedly beside other requests. */
class Reader {
  readonly #times: number[] = [];
  readonly #ended: Promise<void>;
  #isEnding = false;

  constructor(service: HttpService, path: string) {
    this.#ended = this.#run(service, path);
  }

  /** Returns the milliseconds of each read. */
  async end(): Promise<readonly number[]> {
    this.#isEnding = true;
    await this.#ended;
    return this.#times;
  }

  async #run(service: HttpService, path: string): Promise<void> {
    while (!this.#isEnding) {
      this.#times.push(await timeOf(service, path));
      await pause(READ_PAUSE);
    }
  }
}
