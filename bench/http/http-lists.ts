import { setTimeout as pause } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import { listedStore } from './http-lists-folder.ts';
import { deepLists, everyList, statisticsOf, type List } from './http-lists-paths.ts';
import { startHttpService, type HttpService } from './http-service.ts';
import { percentile } from '../statistics.ts';

/** Requests of each combination, after one that does not count. */
const ROUNDS = 5;
/** And of one of which any took longer than it may: so its p95 is not just the slowest moment of the machine. */
const ROUNDS_OF_SLOW = 20;
const SLOW = 50;
const SLOW_STATISTICS = 20;
/** A list that takes longer than this, in milliseconds, is asked for once. */
const HOPELESS = 2_000;
/** Page that is gone to by cursor, of so many items each. */
const DEEP = 1_000;
const PAGE = 50;
/** Milliseconds between two of the requests that are not for lists. */
const BESIDE = 20;

/** A list, and how long it took: milliseconds, of all its rounds. */
export interface ListTimes extends List {
  readonly p50: number;
  readonly p95: number;
}

/** Lists at scale. All in milliseconds, p95; of several lists that of the slowest. */
export interface HttpListsBenchmark {
  readonly covered: number;
  readonly worst: number;
  /** The slowest page behind page 1,000. */
  readonly deep: number;
  /** That of the first page of the same lists. */
  readonly first: number;
  readonly statistics: number;
  /** Of a task that is read while lists are. */
  readonly beside: number;
  /** Of a short list that is read while others are. */
  readonly listBeside: number;
  readonly lists: readonly ListTimes[];
}

/**
 * @param runs how many; there are a tenth as many tasks
 * @param kept a folder for the store that stays, and is used again
 */
export async function benchHttpLists(runs: number, kept?: string): Promise<HttpListsBenchmark> {
  const { directory, ids } = await listedStore(runs, kept);
  // Without a worker and a scheduler: what waits or is late here is to stay so.
  const service = await startHttpService(directory, { SVC_ROLES: 'api,projector' });
  try {
    await allOf(service);
    const besides = [
      new Beside(service, `/tasks/${ids.task}`),
      new Beside(service, `/runs?limit=5&task_id=${ids.task}`),
    ];
    const lists: ListTimes[] = [];
    for (const each of everyList(ids))
      lists.push({ ...each, ...(await timesOf(service, each.path)) });
    const [beside = [], listBeside = []] = await Promise.all(besides.map((each) => each.end()));
    const deep: number[] = [];
    const first: number[] = [];
    for (const path of deepLists(ids, PAGE)) {
      first.push((await timesOf(service, path)).p95);
      deep.push((await timesOf(service, await deepPageOf(service, path))).p95);
    }
    const statistics: number[] = [];
    for (const path of statisticsOf(ids)) {
      statistics.push((await timesOf(service, path, SLOW_STATISTICS)).p95);
    }
    const worstOf = (some: readonly ListTimes[]): number => Math.max(...some.map(({ p95 }) => p95));
    return {
      covered: worstOf(lists.filter(({ covered }) => covered)),
      worst: worstOf(lists),
      deep: Math.max(...deep),
      first: Math.max(...first),
      statistics: Math.max(...statistics),
      beside: percentile(beside, 0.95),
      listBeside: percentile(listBeside, 0.95),
      lists,
    };
  } finally {
    await service.process.stop();
  }
}

/** Until every view, in the shape of this code, has all that was written. */
async function allOf({ client }: HttpService): Promise<void> {
  for (;;) {
    const { projections } = (await client.projections.list()).data;
    const isMade = projections.every(
      ({ version, caught_up, rebuild }) => version > 0 && caught_up && rebuild === null,
    );
    if (isMade) return;
    await pause(200);
  }
}

/** @returns p50 and p95 in milliseconds */
async function timesOf(
  service: HttpService,
  path: string,
  slow = SLOW,
): Promise<{ readonly p50: number; readonly p95: number }> {
  const warm = await timeOf(service, path);
  if (warm > HOPELESS) return { p50: warm, p95: warm };
  const times: number[] = [];
  while (times.length < (Math.max(...times) > slow ? ROUNDS_OF_SLOW : ROUNDS)) {
    times.push(await timeOf(service, path));
  }
  return { p50: percentile(times, 0.5), p95: percentile(times, 0.95) };
}

async function timeOf(service: HttpService, path: string): Promise<number> {
  const begun = performance.now();
  await read(service, path);
  return performance.now() - begun;
}

async function read({ process, headers }: HttpService, path: string): Promise<string> {
  const answer = await fetch(`http://127.0.0.1:${process.port}${path}`, { headers });
  const text = await answer.text();
  if (!answer.ok) throw new Error(`${path} was answered with ${answer.status}: ${text}`);
  return text;
}

/** The page behind page 1,000, or behind the last but one where there are fewer. */
async function deepPageOf(service: HttpService, path: string): Promise<string> {
  let deep = path;
  for (let page = 1; page <= DEEP; page += 1) {
    const { next_cursor } = JSON.parse(await read(service, deep)) as { next_cursor: string | null };
    if (next_cursor === null) break;
    deep = `${path}&cursor=${next_cursor}`;
  }
  return deep;
}

/** Reads something again and again, beside whatever else is asked of the service. */
class Beside {
  readonly #times: number[] = [];
  readonly #ended: Promise<void>;
  #ends = false;

  constructor(service: HttpService, path: string) {
    this.#ended = this.#run(service, path);
  }

  /** @returns milliseconds of each */
  async end(): Promise<readonly number[]> {
    this.#ends = true;
    await this.#ended;
    return this.#times;
  }

  async #run(service: HttpService, path: string): Promise<void> {
    while (!this.#ends) {
      this.#times.push(await timeOf(service, path));
      await pause(BESIDE);
    }
  }
}

if (process.argv[1] !== undefined && import.meta.url === pathToFileURL(process.argv[1]).href) {
  const [, , runs = '100000', kept] = process.argv;
  const { lists, ...figures } = await benchHttpLists(Number(runs), kept);
  const column = (value: number): string => value.toFixed(1).padStart(9);
  for (const { path, covered, p50, p95 } of lists.toSorted((a, b) => b.p95 - a.p95)) {
    const words = `${column(p50)}${column(p95)} ${covered ? 'covered' : '       '} ${path}`;
    process.stdout.write(`${words}\n`);
  }
  process.stdout.write(`${JSON.stringify(figures, null, 2)}\n`);
}
