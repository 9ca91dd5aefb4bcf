import { setTimeout as pause } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import { toIso } from '../domain/clock.ts';
import { makeBenchFolder } from './bench-folder.ts';
import { writeListed, type ListedIds } from './http-lists-store.ts';
import { startHttpService, type HttpService } from './http-service.ts';
import { percentile } from './statistics.ts';

/** Requests of each combination, after one that does not count. */
const ROUNDS = 5;
/** A list that takes longer than this, in milliseconds, is asked for once. */
const HOPELESS = 2_000;
/** Page that is gone to by cursor, of so many items each. */
const DEEP = 1_000;
const PAGE = 50;
/** Milliseconds between two of the requests that are not for lists. */
const BESIDE = 20;

/** A list, and how long it took: milliseconds, of all its rounds. */
export interface ListTimes {
  readonly path: string;
  /** Its total is counted on an index, or is known without counting. */
  readonly covered: boolean;
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
  /** Of other requests, while lists are read. */
  readonly beside: number;
  readonly lists: readonly ListTimes[];
}

/** Of one size, for all works and repeats of this process; it goes with the other folders. */
const stores = new Map<number, { readonly directory: string; readonly ids: ListedIds }>();

/** @param runs how many; there are a tenth as many tasks */
export async function benchHttpLists(runs: number): Promise<HttpListsBenchmark> {
  const { directory, ids } = stores.get(runs) ?? (await makeStore(runs));
  // Without a worker and a scheduler: what waits or is late here is to stay so.
  const service = await startHttpService(directory, { SVC_ROLES: 'api,projector' });
  try {
    await allOf(service, runs);
    const beside = new Beside(service, ids.task);
    const lists: ListTimes[] = [];
    for (const each of [...taskLists(ids), ...runLists(ids)]) {
      lists.push({ ...each, p95: await timesOf(service, each.path) });
    }
    const deep: number[] = [];
    const first: number[] = [];
    for (const path of deepLists(ids)) {
      first.push(await timesOf(service, path));
      deep.push(await timesOf(service, await deepPageOf(service, path)));
    }
    const statistics: number[] = [];
    for (const path of statisticsOf(ids)) statistics.push(await timesOf(service, path));
    const worstOf = (some: readonly ListTimes[]): number => Math.max(...some.map(({ p95 }) => p95));
    return {
      covered: worstOf(lists.filter(({ covered }) => covered)),
      worst: worstOf(lists),
      deep: Math.max(...deep),
      first: Math.max(...first),
      statistics: Math.max(...statistics),
      beside: percentile(await beside.end(), 0.95),
      lists,
    };
  } finally {
    await service.process.stop();
  }
}

async function makeStore(runs: number) {
  const directory = await makeBenchFolder('lists');
  const ids = await writeListed(directory, runs);
  const made = { directory, ids };
  stores.set(runs, made);
  return made;
}

/** Until the views have all that was written. */
async function allOf({ client }: HttpService, runs: number): Promise<void> {
  for (;;) {
    const page = await client.runs.list({ limit: 1 }).catch(() => null);
    const skipped = await client.runs.list({ limit: 1, state: 'skipped' }).catch(() => null);
    const found = (page?.data.total ?? 0) + (skipped?.data.total ?? 0);
    if (found >= runs) return;
    await pause(200);
  }
}

type List = Omit<ListTimes, 'p95'>;

/** Every filter of `GET /tasks`, and every combination of them. */
function taskLists({ agent }: ListedIds): readonly List[] {
  const filters: readonly (readonly string[])[] = [
    ['', 'status=active', 'status=paused'],
    ['', `created_by=${agent}`],
    ['', 'schedule_kind=cron', 'schedule_kind=event', 'schedule_kind=once'],
    ['', 'tag=common', 'tag=rare'],
    ['', 'search=REPORT', 'search=needle', 'search=nowhere'],
  ];
  return combined(filters).map((parts) => ({
    path: pathOf('/tasks', parts),
    covered: parts.every((part) => /^(?:status|created_by|schedule_kind)/.test(part)),
  }));
}

/** Every filter of `GET /runs`, and every combination of them that does not contradict itself. */
function runLists({ busyTask, task, since, until }: ListedIds): readonly List[] {
  const at = (share: number): string => toIso(Math.floor(since + (until - since) * share));
  const filters: readonly (readonly string[])[] = [
    ['', `task_id=${busyTask}`, `task_id=${task}`],
    ['', 'success=true', 'success=false'],
    ['', 'state=succeeded', 'state=failed', 'state=queued', 'state=skipped'],
    ['', 'trigger=schedule', 'trigger=backfill'],
    [
      '',
      `start_time=${at(0.1)}`,
      `end_time=${at(0.9)}`,
      `start_time=${at(0.5)}&end_time=${at(0.51)}`,
    ],
  ];
  return combined(filters)
    .filter((parts) => {
      const state = parts.find((part) => part.startsWith('state='));
      const success = parts.find((part) => part.startsWith('success='));
      if (state === undefined || success === undefined) return true;
      return state === (success === 'success=true' ? 'state=succeeded' : 'state=failed');
    })
    .map((parts) => ({
      path: pathOf('/runs', parts),
      covered: parts.every((part) => /^(?:task_id|success|state|trigger)/.test(part)),
    }));
}

const deepLists = ({ agent }: ListedIds): readonly string[] => [
  `/runs?limit=${PAGE}`,
  `/runs?limit=${PAGE}&state=succeeded`,
  `/runs?limit=${PAGE}&trigger=schedule`,
  `/tasks?limit=${PAGE}`,
  `/tasks?limit=${PAGE}&status=active`,
  `/tasks?limit=${PAGE}&created_by=${agent}`,
];

const statisticsOf = ({ busyTask }: ListedIds): readonly string[] => [
  '/stats/summary',
  '/stats/summary?days=365',
  `/task/${busyTask}/stats`,
  `/task/${busyTask}/stats?days=365`,
];

function combined(filters: readonly (readonly string[])[]): readonly (readonly string[])[] {
  return filters.reduce<readonly (readonly string[])[]>(
    (made, values) =>
      made.flatMap((parts) => values.map((value) => (value === '' ? parts : [...parts, value]))),
    [[]],
  );
}

function pathOf(path: string, parts: readonly string[]): string {
  return parts.length === 0 ? path : `${path}?${parts.join('&')}`;
}

/** @returns p95 in milliseconds */
async function timesOf(service: HttpService, path: string): Promise<number> {
  const warm = await timeOf(service, path);
  if (warm > HOPELESS) return warm;
  const times: number[] = [];
  for (let round = 0; round < ROUNDS; round += 1) times.push(await timeOf(service, path));
  return percentile(times, 0.95);
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

/** Reads a task again and again, beside whatever else is asked of the service. */
class Beside {
  readonly #times: number[] = [];
  readonly #ended: Promise<void>;
  #ends = false;

  constructor(service: HttpService, task: string) {
    this.#ended = this.#run(service, `/tasks/${task}`);
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
  const { lists, ...figures } = await benchHttpLists(Number(process.argv[2] ?? 100_000));
  for (const { path, covered, p95 } of lists.toSorted((one, other) => other.p95 - one.p95)) {
    process.stdout.write(
      `${p95.toFixed(1).padStart(9)} ${covered ? 'covered' : '       '} ${path}\n`,
    );
  }
  process.stdout.write(`${JSON.stringify(figures, null, 2)}\n`);
}
