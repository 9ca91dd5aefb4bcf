import { existsSync } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';
import { nameBasedId } from '../../domain/ids.ts';
import { logFile } from '../../stores/sqlite/event-log/schema.ts';
import { withBenchFolder } from '../bench-folder.ts';
import { read, startHttpService, type HttpService } from '../http/http-service.ts';
import { anonymousMiBOf, residentMiBOf } from '../process-figures.ts';
import { percentile } from '../statistics.ts';
import { lessThan, type Figures, type Benchmark } from '../benchmark.ts';
import { EVENTS_PER_RUN, writeRunLog } from './run-log.ts';

const READERS = 4;
/** Milliseconds between a reader's requests. */
const READ_PAUSE = 5;
/** Milliseconds of reading before the rebuild. */
const BASELINE_MS = 6_000;
/** Most milliseconds of the rebuild that are measured; then it is canceled. */
const DURING = 80_000;
/** Milliseconds between samples of progress and memory. */
const SAMPLE_INTERVAL = 250;

/** Reads over HTTP before and during a rebuild of the view of runs, at full speed. */
export const rebuildReads: Benchmark = {
  targets: [
    lessThan('p95/before', 1.5),
    lessThan('failed', 1, 'reads never stop'),
    lessThan('memory/first tenth', 1.5, 'flat memory'),
  ],
  count: ({ events }) => events,
  measure: ({ events, store: kept }) =>
    withBenchFolder(
      'reads',
      async (directory) => {
        const runs = Math.ceil(events / EVENTS_PER_RUN);
        if (!existsSync(logFile(directory))) await writeRunLog(directory, runs);
        const service = await startHttpService(directory, { SVC_ROLES: 'api,projector' });
        try {
          return await measure(service, runs);
        } finally {
          await service.process.stop();
        }
      },
      kept,
    ),
};

async function measure(service: HttpService, runs: number): Promise<Figures> {
  const { pid } = service.process;
  while ((await totalOf(service)) < runs) await pause(SAMPLE_INTERVAL);
  const { version: first } = await viewOf(service);
  const warmUp = new Readers(service, runs);
  await pause(BASELINE_MS / 3);
  await warmUp.end();
  const quiet = new Readers(service, runs);
  await pause(BASELINE_MS);
  const before = await quiet.end();
  const memoryBefore = Math.round(anonymousMiBOf(pid));
  const readers = new Readers(service, runs);
  const start = performance.now();
  await read(service, '/projections/runs/rebuild', { switch: 'auto' });
  const samples: number[] = [];
  let [progress, handled, resident] = [0, 0, 0];
  let view = await viewOf(service);
  while (view.version === first && performance.now() - start < DURING) {
    progress = view.rebuild?.progress ?? progress;
    handled = view.rebuild?.handled ?? handled;
    samples.push(Math.round(anonymousMiBOf(pid)));
    resident = Math.max(resident, Math.round(residentMiBOf(pid)));
    await pause(SAMPLE_INTERVAL);
    view = await viewOf(service);
  }
  const seconds = (performance.now() - start) / 1000;
  const during = await readers.end();
  if (view.version === first) await read(service, '/projections/runs/cancel', {});
  else [progress, handled] = [1, runs * EVENTS_PER_RUN];
  const tenths = Array.from({ length: 10 }, (_, tenth) => {
    return samples[Math.floor(((tenth + 1) * samples.length) / 10) - 1] ?? memoryBefore;
  });
  const [p95Before, p95] = [before, during].map(({ took }) => percentile(took, 0.95));
  return {
    'p95 ms before': p95Before ?? 0,
    'p95 ms': p95 ?? 0,
    'p95/before': (p95 ?? 0) / (p95Before ?? 1),
    'p99 ms': percentile(during.took, 0.99),
    reads: during.took.length,
    failed: before.failed + during.failed,
    'events/s': handled / seconds,
    'made %': progress * 100,
    'memory MiB before': memoryBefore,
    'memory MiB': Math.max(...tenths),
    'memory/first tenth': Math.max(...tenths) / (tenths[0] ?? 1),
    'resident MiB': resident,
  };
}

/** Reads lists, single runs and counts until it is ended. */
class Readers {
  readonly #service: HttpService;
  readonly #runs: number;
  readonly #took: number[] = [];
  readonly #ended: Promise<unknown>;
  #failed = 0;
  #isEnding = false;

  constructor(service: HttpService, runs: number) {
    this.#service = service;
    this.#runs = runs;
    this.#ended = Promise.all(Array.from({ length: READERS }, (_, reader) => this.#run(reader)));
  }

  async end(): Promise<{ readonly took: readonly number[]; readonly failed: number }> {
    this.#isEnding = true;
    await this.#ended;
    return { took: this.#took, failed: this.#failed };
  }

  async #run(reader: number): Promise<void> {
    for (let turn = reader; !this.#isEnding; turn += 1) {
      const run = nameBasedId('bench', String((turn * 7_919) % this.#runs));
      const paths = ['/runs?limit=20', `/runs/${run}`, '/runs?limit=1&state=succeeded'];
      const start = performance.now();
      try {
        const { total } = await readJson(this.#service, paths[turn % paths.length] ?? '');
        if (total !== undefined && total !== this.#runs) this.#failed += 1;
      } catch {
        this.#failed += 1;
      }
      this.#took.push(performance.now() - start);
      await pause(READ_PAUSE);
    }
  }
}

async function readJson(
  service: HttpService,
  path: string,
): Promise<Readonly<Record<string, unknown>>> {
  return JSON.parse(await read(service, path)) as Readonly<Record<string, unknown>>;
}

async function totalOf(service: HttpService): Promise<number> {
  const { total } = await readJson(service, '/runs?limit=1').catch(() => ({ total: 0 }));
  return Number(total);
}

interface ShownView {
  readonly name: string;
  readonly version: number;
  readonly rebuild: { readonly progress: number; readonly handled: number } | null;
}

async function viewOf(service: HttpService): Promise<ShownView> {
  const { projections } = await readJson(service, '/projections');
  const found = (projections as readonly ShownView[]).find(({ name }) => name === 'runs');
  if (found === undefined) throw new Error('there is no view of runs');
  return found;
}
