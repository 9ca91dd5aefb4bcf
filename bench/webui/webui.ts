import { setTimeout as pause } from 'node:timers/promises';
import type { CDPSession, Page } from 'playwright-core';
import { runsProjection } from '../../projections/views/runs.ts';
import { credentialsIn, type Credentials } from '../../test/support/service-process.ts';
import { BenchService, withBenchStore } from '../bench-service.ts';
import { lessThan, type Figures, type Benchmark } from '../benchmark.ts';
import { launchBrowser } from './browser.ts';
import { firstLoadMs } from './first-load.ts';
import { untilCaughtUp } from './large-store.ts';
import { fillStore, type Filled } from './webui-store.ts';

const TASKS = 10_000;
const RUNS = 100_000;
/** Milliseconds without requests after which a view is complete. */
const QUIET = 400;

/** Each view of the web page in a real browser, on a store of many tasks and runs. */
export const webPage: Benchmark = {
  targets: [
    lessThan('script ms, most', 200, 'no view is slow'),
    lessThan('first paint ms', 1_000, 'on a local start'),
    lessThan('first load ms, 3G', 2_500, 'of the overview, by 1.6 Mbit/s and 300 ms'),
    lessThan('KB', 150, 'over the wire'),
    lessThan('errors', 1, 'in the console'),
  ],
  count: () => RUNS,
  measure: () =>
    withBenchStore(async (bench) => {
      // The first start of the service makes the first agent.
      await (await BenchService.start(bench.directory)).stop();
      const credentials = credentialsIn(bench.directory);
      const size = { tasks: TASKS, runs: RUNS, days: 30, owner: credentials.agent_id };
      const filled = await fillStore(bench.store, size);
      const service = await BenchService.start(bench.directory);
      await bench.untilDocuments(runsProjection, filled.runs);
      const address = `http://127.0.0.1:${service.port}`;
      await untilCaughtUp(address);
      const figures = await measurePage(address, credentials, filled);
      await service.stop();
      return figures;
    }),
};

async function measurePage(
  address: string,
  credentials: Credentials,
  { tasks }: Filled,
): Promise<Figures> {
  const browser = await launchBrowser();
  try {
    const page = await browser.newPage();
    const meter = await PageMeter.open(page, address);
    await page.goto(`${address}/ext/webui/`);
    await meter.untilQuiet();
    const firstPaint = await page.evaluate<number>(
      "performance.getEntriesByName('first-contentful-paint')[0].startTime",
    );
    const kilobytes = meter.bytes / 1000;
    const scripts: [view: string, ms: number][] = [];
    const view = async (name: string, open: () => Promise<unknown>): Promise<void> => {
      scripts.push([`${name} ms`, await meter.scriptMs(open)]);
    };
    await view('overview', async () => {
      await page.getByLabel('Agent ID').fill(credentials.agent_id);
      await page.getByLabel('Secret').fill(credentials.agent_secret);
      await page.getByRole('button', { name: 'Log in' }).click();
    });
    const frequent = tasks.get('Check that the shop answers') ?? '';
    const failing = tasks.get('Rebuild the recommendations') ?? '';
    for (const [name, hash] of [
      ['tasks', 'tasks'],
      ['tasks, searched', 'tasks?search=branch%2099'],
      ['task, often', `tasks/${frequent}`],
      ['task, by hours', `tasks/${failing}`],
      ['task, changed', `tasks/${failing}/edit`],
      ['runs', 'runs'],
      ['runs, failed', 'runs?state=failed'],
      ['streams', 'system/streams'],
      ['stream', `system/streams/fires-${frequent}`],
      ['audit', 'audit'],
      ['read models', 'system/read-models'],
      ['agents', 'agents'],
    ] as const) {
      const go = `location.hash = ${JSON.stringify(`#/${hash}`)}`;
      await view(name, () => page.evaluate(go));
    }
    await page.evaluate("location.hash = '#/runs'");
    await meter.untilQuiet();
    const firstRun = page.getByRole('region', { name: 'Runs' }).getByRole('link').first();
    await view('run', () => firstRun.click());
    return {
      'script ms, most': Math.max(...scripts.map(([, ms]) => ms)),
      'first paint ms': firstPaint,
      'first load ms, 3G': await firstLoadMs(browser, address, credentials),
      KB: kilobytes,
      errors: meter.errors.length,
      ...Object.fromEntries(scripts),
    };
  } finally {
    await browser.close();
  }
}

/** Counts a page's bytes, errors, requests and script time. */
class PageMeter {
  bytes = 0;
  /** Errors in the console, exceptions, and requests to other hosts. */
  readonly errors: string[] = [];
  readonly #session: CDPSession;
  #underWay = 0;
  #lastAt = performance.now();

  private constructor(page: Page, session: CDPSession, address: string) {
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

  static async open(page: Page, address: string): Promise<PageMeter> {
    const session = await page.context().newCDPSession(page);
    await session.send('Performance.enable');
    await session.send('Network.enable');
    return new PageMeter(page, session, address);
  }

  /** Live streams do not end, so they do not count. */
  #count(url: string, by: number): void {
    if (url.includes('/live')) return;
    this.#underWay += by;
    this.#lastAt = performance.now();
  }

  /** Resolves when no request has been under way for a while. */
  async untilQuiet(): Promise<void> {
    this.#lastAt = performance.now();
    while (this.#underWay > 0 || performance.now() - this.#lastAt < QUIET) await pause(20);
  }

  /** Milliseconds of script until a view is complete. */
  async scriptMs(open: () => Promise<unknown>): Promise<number> {
    const before = await this.#scriptSeconds();
    await open();
    await this.untilQuiet();
    return ((await this.#scriptSeconds()) - before) * 1000;
  }

  async #scriptSeconds(): Promise<number> {
    const { metrics } = await this.#session.send('Performance.getMetrics');
    return metrics.find(({ name }) => name === 'ScriptDuration')?.value ?? Number.NaN;
  }
}
