import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import type { CDPSession, Page } from 'playwright-core';
import type { HealthReport } from '../../api/schemas/answer-schemas-health.ts';
import { runsProjection } from '../../projections/views/runs.ts';
import type { Credentials } from '../../test/support/service-process.ts';
import { launchBrowser } from './browser.ts';
import { BenchService, BenchStore } from '../bench-service.ts';
import { fillStore, type Filled } from './webui-store.ts';

/** What one view of the web page costs. */
export interface ViewCost {
  readonly view: string;
  /** Of script, from going there until all is shown. Milliseconds. */
  readonly script: number;
  /** Of the page's thread in all: script, style, layout, paint. Milliseconds. */
  readonly work: number;
  /** Until all is shown. Milliseconds. */
  readonly shown: number;
  /** Longest time in which the page did nothing else. Milliseconds. */
  readonly longestTask: number;
}

/** How the web page does on a large store. */
export interface WebPageBenchmark {
  readonly tasks: number;
  readonly runs: number;
  /** From asking for the page until something of it is painted. Milliseconds. */
  readonly firstPaint: number;
  /** Of the page and all its files, as they came. */
  readonly kilobytes: number;
  /** Errors in the console, exceptions, and requests to anywhere else. */
  readonly errors: readonly string[];
  readonly views: readonly ViewCost[];
}

/** Nothing may be under way for so long. Milliseconds. */
const QUIET = 400;

/**
 * Each view of the web page in a real browser, on a store of many tasks and runs.
 *
 * @param options.tasks default 10,000
 * @param options.runs default 100,000
 */
export async function benchWebPage(
  options: { readonly tasks?: number; readonly runs?: number } = {},
): Promise<WebPageBenchmark> {
  const { tasks = 10_000, runs = 100_000 } = options;
  const bench = await BenchStore.open();
  try {
    const credentials = await firstAdmin(bench.directory);
    const owner = credentials.agent_id;
    const filled = await fillStore(bench.store, { tasks, runs, days: 30, owner });
    const service = await BenchService.start(bench.directory);
    const { readModel } = bench.stores;
    while ((await readModel.liveGeneration(runsProjection)) === null) await pause(50);
    while ((await readModel.count(runsProjection, [])) < filled.runs) await pause(100);
    const address = `http://127.0.0.1:${service.port}`;
    await untilCaughtUp(address);
    const measured = await measurePage(address, credentials, filled);
    await service.stop();
    return { tasks, runs: filled.runs, ...measured };
  } finally {
    await bench.remove();
  }
}

/** The agent that a service makes on an empty store. */
async function firstAdmin(directory: string): Promise<Credentials> {
  const service = await BenchService.start(directory);
  await service.stop();
  const text = readFileSync(join(directory, 'admin-credentials.json'), 'utf8');
  return JSON.parse(text) as Credentials;
}

/** The other views are made as well, and what was due meanwhile has run. */
async function untilCaughtUp(address: string): Promise<void> {
  for (;;) {
    const answer = await fetch(`${address}/health`);
    const { checks } = (await answer.json()) as HealthReport;
    const projections = checks.find(({ name }) => name === 'projections');
    const workers = checks.find(({ name }) => name === 'workers') as { readonly waiting?: number };
    if (projections?.message === 'caught up' && workers.waiting === 0) return;
    await pause(200);
  }
}

/** Each view of a service that is there. @param filled what its store was filled with */
export async function measurePage(
  address: string,
  credentials: Credentials,
  { tasks }: Pick<Filled, 'tasks'>,
) {
  const browser = await launchBrowser();
  try {
    const page = await browser.newPage();
    const meter = await Meter.on(page, address);
    await page.goto(`${address}/ext/webui/`);
    await meter.quiet();
    const firstPaint = await page.evaluate<number>(
      "performance.getEntriesByName('first-contentful-paint')[0].startTime",
    );
    const kilobytes = meter.bytes / 1000;
    const often = tasks.get('Check that the shop answers') ?? '';
    const failing = tasks.get('Rebuild the recommendations') ?? '';
    const views: ViewCost[] = [];
    views.push(
      await meter.view('overview', async () => {
        await page.getByLabel("Agent ID").fill(credentials.agent_id);
        await page.getByLabel('Secret').fill(credentials.agent_secret);
        await page.getByRole('button', { name: 'Log in' }).click();
      }),
    );
    const ways: readonly (readonly [string, string])[] = [
      ['tasks', 'tasks'],
      ['tasks, searched', 'tasks?search=branch%2099'],
      ['task, often', `tasks/${often}`],
      ['task, by hours', `tasks/${failing}`],
      ['task, changed', `tasks/${failing}/edit`],
      ['runs', 'runs'],
      ['runs, failed', 'runs?state=failed'],
      ['streams', 'streams'],
      ['stream', `streams/fires-${often}`],
      ['audit', 'audit'],
      ['projections', 'projections'],
      ['agents', 'agents'],
    ];
    for (const [name, hash] of ways) {
      const go = `location.hash = ${JSON.stringify(`#/${hash}`)}`;
      views.push(await meter.view(name, () => page.evaluate(go)));
    }
    await page.evaluate("location.hash = '#/runs'");
    await meter.quiet();
    const toRun = page.getByRole('region', { name: 'Runs' }).getByRole('link').first();
    views.push(await meter.view('run', () => toRun.click()));
    return { firstPaint, kilobytes, views, errors: meter.errors };
  } finally {
    await browser.close();
  }
}

/** Watches what a page does. */
class Meter {
  bytes = 0;
  readonly errors: string[] = [];
  readonly #page: Page;
  readonly #session: CDPSession;
  #underWay = 0;
  #lastAt = performance.now();

  private constructor(page: Page, session: CDPSession, address: string) {
    this.#page = page;
    this.#session = session;
    page.on('console', (message) => {
      if (message.type() === 'error') this.errors.push(message.text());
    });
    page.on('pageerror', (error) => this.errors.push(String(error)));
    page.on('request', (request) => {
      const url = request.url();
      if (!url.startsWith(address) && !url.startsWith('data:')) this.errors.push(url);
      this.#count(url, 1);
    });
    page.on('requestfinished', (request) => this.#count(request.url(), -1));
    page.on('requestfailed', (request) => this.#count(request.url(), -1));
    session.on('Network.loadingFinished', ({ encodedDataLength }) => {
      this.bytes += encodedDataLength;
    });
  }

  static async on(page: Page, address: string): Promise<Meter> {
    const session = await page.context().newCDPSession(page);
    await session.send('Performance.enable');
    await session.send('Network.enable');
    await page.addInitScript(
      'window.longTasks = []; new PerformanceObserver((list) => window.longTasks.push(...list.getEntries().map((each) => each.duration))).observe({ type: "longtask" });',
    );
    return new Meter(page, session, address);
  }

  /** Live streams do not end. */
  #count(url: string, by: number): void {
    if (url.includes('/live')) return;
    this.#underWay += by;
    this.#lastAt = performance.now();
  }

  /** Resolves when nothing has been asked for, and nothing was under way, for a while. */
  async quiet(): Promise<void> {
    this.#lastAt = performance.now();
    while (this.#underWay > 0 || performance.now() - this.#lastAt < QUIET) await pause(20);
  }

  /** What going somewhere costs. */
  async view(view: string, go: () => Promise<unknown>): Promise<ViewCost> {
    await this.#page.evaluate('window.longTasks.length = 0');
    const before = await this.#figures();
    const began = performance.now();
    await go();
    await this.quiet();
    const shown = this.#lastAt - began;
    const after = await this.#figures();
    const longestTask = await this.#page.evaluate<number>('Math.max(0, ...window.longTasks)');
    const script = (after.script - before.script) * 1000;
    return { view, script, work: (after.work - before.work) * 1000, shown, longestTask };
  }

  async #figures(): Promise<{ readonly script: number; readonly work: number }> {
    const { metrics } = await this.#session.send('Performance.getMetrics');
    const of = (name: string): number => metrics.find((each) => each.name === name)?.value ?? NaN;
    return { script: of('ScriptDuration'), work: of('TaskDuration') };
  }
}

/** As a table for people. */
export function formatWebPage(measured: WebPageBenchmark): string {
  const whole = (value: number): string => value.toFixed(0).padStart(8);
  const head = `${'view'.padEnd(18)}  script     work  shown ms  longest`;
  const { firstPaint, kilobytes, errors, tasks, runs } = measured;
  return [
    `${tasks} tasks, ${runs} runs: first paint ${firstPaint.toFixed(0)} ms, ${kilobytes.toFixed(0)} KB, ${errors.length} errors`,
    head,
    ...measured.views.map(
      ({ view, script, work, shown, longestTask }) =>
        `${view.padEnd(16)}${whole(script)} ${whole(work)}  ${whole(shown)} ${whole(longestTask)}`,
    ),
    ...errors,
  ].join('\n');
}

if (process.argv[1] !== undefined && import.meta.url === pathToFileURL(process.argv[1]).href) {
  const [tasks = 10_000, runs = 100_000] = process.argv.slice(2).map(Number);
  process.stdout.write(`${formatWebPage(await benchWebPage({ tasks, runs }))}\n`);
}
