import { setTimeout as pause } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import type { Browser, CDPSession, Page } from 'playwright-core';
import { credentialsIn, type Credentials } from '../../test/support/service-process.ts';
import { BenchService, withBenchStore, type BenchStore } from '../bench-service.ts';
import { anonymousMiBOf } from '../process-figures.ts';
import { launchBrowser } from './browser.ts';
import { logIn } from './log-in.ts';
import { requestRuns } from './steady-runs.ts';
import { fillStore } from './webui-store.ts';

/**
 * Watches the memory of two open views and of the service while runs arrive:
 * `npx tsx bench/webui/webui-hour.ts [--minutes 60] [--rate 10]`, after `npm run build`. Prints a row every five minutes.
 */
const { values } = parseArgs({
  options: {
    minutes: { type: 'string', default: '60' },
    /** Runs a second. */
    rate: { type: 'string', default: '10' },
  },
});
const MINUTE = 60_000;
const STEP = 5 * MINUTE;

const watchMemory = async (bench: BenchStore): Promise<void> => {
  await (await BenchService.start(bench.directory)).stop();
  const credentials = credentialsIn(bench.directory);
  const owner = credentials.agent_id;
  await fillStore(bench.store, { tasks: 60, runs: 5_000, days: 5, owner });
  const service = await BenchService.start(bench.directory);
  const stopping = new AbortController();
  const runs = requestRuns(bench, Number(values.rate), stopping.signal);
  const browser = await launchBrowser();
  try {
    const address = `http://127.0.0.1:${service.port}`;
    const views = await Promise.all(
      ['runs', 'overview'].map((view) => WatchedView.open(browser, address, credentials, view)),
    );
    const end = Date.now() + Number(values.minutes) * MINUTE;
    for (let at = Date.now(); at <= end; at += STEP) {
      await pause(Math.max(0, at - Date.now()));
      const shown = await Promise.all(views.map((view) => view.figures()));
      const memory = anonymousMiBOf(service.pid).toFixed(0);
      console.log(`${new Date().toISOString()} service ${memory} MiB; ${shown.join('; ')}`);
    }
  } finally {
    stopping.abort();
    console.log(`${await runs} runs`);
    await browser.close();
    await service.stop();
  }
};

/** A view in a window of its own. */
class WatchedView {
  readonly #name: string;
  readonly #session: CDPSession;

  private constructor(name: string, session: CDPSession) {
    this.#name = name;
    this.#session = session;
  }

  static async open(
    browser: Browser,
    address: string,
    credentials: Credentials,
    name: string,
  ): Promise<WatchedView> {
    const context = await browser.newContext({ viewport: { width: 1280, height: 720 } });
    const page: Page = await context.newPage();
    await logIn(page, address, credentials);
    await page.evaluate(`location.hash = '#/${name}'`);
    const session = await context.newCDPSession(page);
    await session.send('HeapProfiler.enable');
    await session.send('Performance.enable');
    return new WatchedView(name, session);
  }

  /** After a full garbage collection. */
  async figures(): Promise<string> {
    await this.#session.send('HeapProfiler.collectGarbage');
    const { usedSize } = await this.#session.send('Runtime.getHeapUsage');
    const { nodes, documents, jsEventListeners } =
      await this.#session.send('Memory.getDOMCounters');
    const heap = (usedSize / 2 ** 20).toFixed(2);
    return `${this.#name} ${heap} MiB, ${nodes} nodes, ${documents} documents, ${jsEventListeners} listeners`;
  }
}

await withBenchStore(watchMemory);
