import { existsSync } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';
import { nameBasedId } from '../../domain/ids.ts';
import { logFile } from '../../stores/sqlite/event-log/schema.ts';
import { makeBenchFolder, removeBenchFolder } from '../bench-folder.ts';
import { startHttpService, type HttpService } from '../http/http-service.ts';
import { ownMiBOf, residentMiBOf } from '../process-figures.ts';
import { EVENTS_OF_A_RUN } from './rebuild-rates.ts';
import { makeLog } from './rebuild.ts';

/** Who reads, each the next thing so many milliseconds after the answer. */
const READERS = 4;
const BETWEEN = 5;
/** How long is read before the rebuild. Milliseconds. */
const BEFORE = 6_000;
/** How long is looked at most while it is rebuilt; then the rebuild is thrown away. Milliseconds. */
const DURING = 80_000;
/** How often the rebuild and the memory are looked at. Milliseconds. */
const LOOK = 250;

/** Reads over HTTP before and during a rebuild of the view that they read, at full speed. */
export interface RebuildReadsBenchmark {
  /** Milliseconds of each. */
  readonly before: readonly number[];
  readonly during: readonly number[];
  /** Not answered, or not with every run. */
  readonly failed: number;
  /** Events a second of the rebuild: from the order until reads go to it, or as long as was looked. */
  readonly rate: number;
  /** 0..1: how far it was when it was looked at last. */
  readonly progress: number;
  /** MiB of the process alone: before, and through the rebuild a sample at each tenth of it. */
  readonly memory: { readonly before: number; readonly during: readonly number[] };
  /** MiB at most during the rebuild, with the pages of files that are mapped: indexes are made of a mapped file. */
  readonly resident: number;
}

/**
 * Whether reads go on while the view of runs is made anew, at full speed, from a log of `events` events.
 *
 * @param options.events default 1,000,000
 * @param options.directory a folder with such a log, or empty: what is made there stays, and the service appends to the
 *   log what it does at each start. Default: one that is removed
 */
export async function benchRebuildReads(
  options: { readonly events?: number; readonly directory?: string } = {},
): Promise<RebuildReadsBenchmark> {
  const { events = 1_000_000 } = options;
  const runs = Math.ceil(events / EVENTS_OF_A_RUN);
  const directory = options.directory ?? (await makeBenchFolder('reads'));
  try {
    if (!existsSync(logFile(directory))) await makeLog(directory, runs);
    const service = await startHttpService(directory, { SVC_ROLES: 'api,projector' });
    try {
      return await measure(service, runs);
    } finally {
      await service.process.stop();
    }
  } finally {
    if (options.directory === undefined) await removeBenchFolder(directory);
  }
}

async function measure(service: HttpService, runs: number): Promise<RebuildReadsBenchmark> {
  while ((await totalOf(service)) < runs) await pause(LOOK);
  const { version: first } = await viewOf(service);
  const warm = new Reads(service, runs);
  await pause(BEFORE / 3);
  await warm.end();
  const quiet = new Reads(service, runs);
  await pause(BEFORE);
  const before = await quiet.end();
  const memoryBefore = Math.round(ownMiBOf(service.process.pid));
  const reads = new Reads(service, runs);
  const since = performance.now();
  await read(service, '/projections/runs/rebuild', { switch: 'auto' });
  const samples: number[] = [];
  let progress = 0;
  let handled = 0;
  let resident = 0;
  let view = await viewOf(service);
  while (view.version === first && performance.now() - since < DURING) {
    progress = view.rebuild?.progress ?? progress;
    handled = view.rebuild?.handled ?? handled;
    samples.push(Math.round(ownMiBOf(service.process.pid)));
    resident = Math.max(resident, Math.round(residentMiBOf(service.process.pid)));
    await pause(LOOK);
    view = await viewOf(service);
  }
  const seconds = (performance.now() - since) / 1000;
  const during = await reads.end();
  if (view.version === first) await read(service, '/projections/runs/cancel', {});
  else [progress, handled] = [1, runs * EVENTS_OF_A_RUN];
  const tenths = Array.from({ length: 10 }, (_, tenth) => {
    return samples[Math.floor(((tenth + 1) * samples.length) / 10) - 1] ?? memoryBefore;
  });
  return {
    before: before.took,
    during: during.took,
    failed: before.failed + during.failed,
    rate: handled / seconds,
    progress,
    memory: { before: memoryBefore, during: tenths },
    resident,
  };
}

/** Lists, single runs and counts, one after the other by each reader, until it is ended. */
class Reads {
  readonly #service: HttpService;
  readonly #runs: number;
  readonly #took: number[] = [];
  readonly #ended: Promise<unknown>;
  #failed = 0;
  #ends = false;

  constructor(service: HttpService, runs: number) {
    this.#service = service;
    this.#runs = runs;
    this.#ended = Promise.all(Array.from({ length: READERS }, (_, reader) => this.#run(reader)));
  }

  async end(): Promise<{ readonly took: readonly number[]; readonly failed: number }> {
    this.#ends = true;
    await this.#ended;
    return { took: this.#took, failed: this.#failed };
  }

  async #run(reader: number): Promise<void> {
    for (let turn = reader; !this.#ends; turn += 1) {
      const run = nameBasedId('bench', String((turn * 7_919) % this.#runs));
      const paths = ['/runs?limit=20', `/runs/${run}`, '/runs?limit=1&state=succeeded'];
      const since = performance.now();
      try {
        const path = paths[turn % paths.length] ?? '';
        const { total } = await read(this.#service, path);
        if (total !== undefined && total !== this.#runs) this.#failed += 1;
      } catch {
        // Counted: not one may fail.
        this.#failed += 1;
      }
      this.#took.push(performance.now() - since);
      await pause(BETWEEN);
    }
  }
}

async function totalOf(service: HttpService): Promise<number> {
  const { total } = await read(service, '/runs?limit=1').catch(() => ({ total: 0 }));
  return Number(total);
}

interface ShownView {
  readonly name: string;
  readonly version: number;
  readonly rebuild: { readonly progress: number; readonly handled: number } | null;
}

async function viewOf(service: HttpService): Promise<ShownView> {
  const { projections } = await read(service, '/projections');
  const found = (projections as readonly ShownView[]).find(({ name }) => name === 'runs');
  if (found === undefined) throw new Error('there is no view of runs');
  return found;
}

/** @param body what is posted; default: it is a GET */
async function read(
  { process, headers }: HttpService,
  path: string,
  body?: object,
): Promise<Readonly<Record<string, unknown>>> {
  const asked = { ...headers, 'content-type': 'application/json' };
  const post = { method: 'POST', body: JSON.stringify(body), headers: asked };
  const url = `http://127.0.0.1:${process.port}${path}`;
  const answer = await fetch(url, body === undefined ? { headers } : post);
  const text = await answer.text();
  if (!answer.ok) throw new Error(`${path} was answered with ${answer.status}: ${text}`);
  return JSON.parse(text) as Readonly<Record<string, unknown>>;
}
