import { setTimeout as pause } from 'node:timers/promises';
import { withHttpService, read, type HttpService } from '../http/http-service.ts';
import { percentile } from '../statistics.ts';
import { lessThan, type Figures, type Benchmark } from '../benchmark.ts';

const READERS = 2;
/** Milliseconds between a reader's requests. */
const READ_PAUSE = 5;
const RUNS = 4;
/** Items of each run, more than it can finish. */
const ITEMS = 5_000;
/** The number of rows. The expression compares each with every other, in a few hundred thousand steps. */
const ROWS = 330;
/** Milliseconds between checks whether all runs have started. */
const CHECK_INTERVAL_MS = 500;

/**
 * Measures reads over HTTP, first on an idle service and then while runs evaluate an expensive expression for each of
 * many items.
 */
export const costlyExpressions: Benchmark = {
  targets: [lessThan('p95/quiet', 2, 'expressions do not delay the API')],
  count: () => RUNS,
  measure: ({ seconds }) => withHttpService((service) => measure(service, seconds * 1000)),
};

async function measure(service: HttpService, duration: number): Promise<Figures> {
  const task = await createTask(service);
  await readsFor(service, task, duration / 2);
  const quiet = await readsFor(service, task, duration);
  const runs: string[] = [];
  for (let run = 0; run < RUNS; run += 1) {
    const answer = JSON.parse(await read(service, `/tasks/${task}/run_now`, {})) as {
      readonly details: { readonly run_id: string };
    };
    runs.push(answer.details.run_id);
  }
  for (const run of runs)
    while ((await itemsOf(service, [run])) === 0) await pause(CHECK_INTERVAL_MS);
  const before = await itemsOf(service, runs);
  const start = performance.now();
  const loaded = await readsFor(service, task, duration);
  const seconds = (performance.now() - start) / 1000;
  const items = (await itemsOf(service, runs)) - before;
  for (const run of runs) await read(service, `/runs/${run}/cancel`, {});
  const [p95Quiet, p95] = [percentile(quiet, 0.95), percentile(loaded, 0.95)];
  return {
    'p95 ms quiet': p95Quiet,
    'p95 ms': p95,
    'p95/quiet': p95 / p95Quiet,
    'p99 ms': percentile(loaded, 0.99),
    'items/s': items / seconds,
    reads: loaded.length,
  };
}

async function createTask(service: HttpService): Promise<string> {
  const rows = Array.from({ length: ROWS }, (_, row) => row + 1);
  const text = 'length(params.rows[?length($.params.rows[?@ > `0`]) > `0`])';
  const step = {
    id: 'each',
    uses: 'echo',
    for_each: Array.from({ length: ITEMS }, (_, item) => item),
    with: { rows: `\${${text}}`, item: '${item}' },
  };
  const answer = await read(service, '/tasks', {
    title: 'Compare all rows',
    description: 'compares each row with each, for each item',
    schedule_kind: 'event',
    schedule_expr: 'nothing',
    payload: { params: { rows }, pipeline: [step] },
    created_by: service.agentId,
  });
  return (JSON.parse(answer) as { readonly id: string }).id;
}

/** Items that the runs have recorded so far. */
async function itemsOf(service: HttpService, runs: readonly string[]): Promise<number> {
  let items = 0;
  for (const run of runs) {
    const answer = JSON.parse(await read(service, `/runs/${run}`)) as {
      readonly steps: readonly unknown[];
    };
    items += answer.steps.length;
  }
  return items;
}

/** The durations in milliseconds of reads of a single task and of a list. */
async function readsFor(
  service: HttpService,
  task: string,
  duration: number,
): Promise<readonly number[]> {
  const took: number[] = [];
  const end = performance.now() + duration;
  const reader = async (): Promise<void> => {
    for (let turn = 0; performance.now() < end; turn += 1) {
      const begun = performance.now();
      await read(service, turn % 2 === 0 ? `/tasks/${task}` : '/runs?limit=5');
      took.push(performance.now() - begun);
      await pause(READ_PAUSE);
    }
  };
  await Promise.all(Array.from({ length: READERS }, reader));
  return took;
}
