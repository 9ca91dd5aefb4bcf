import { resolve } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import type { Page } from 'playwright-core';
import { makeBenchFolder } from '../bench-folder.ts';
import { launchBrowser } from './browser.ts';
import { framesOf } from './frames.ts';
import { withFilledService, type FilledService } from './large-store.ts';
import { countRequests, interact, interactionsOf, openView, viewsOf } from './large-views.ts';
import { logIn } from './log-in.ts';
import { requestRuns } from './steady-runs.ts';

/**
 * Measures the web page on a large store, which takes minutes to fill: `npx tsx bench/webui/webui-large.ts [--folder <a
 * kept folder>] [--only views,interactions,frames]`, after `npm run build`. Prints tables.
 */
const { values } = parseArgs({
  options: {
    /** A kept folder; its store is used again. */
    folder: { type: 'string' },
    tasks: { type: 'string', default: '10000' },
    runs: { type: 'string', default: '1000000' },
    only: { type: 'string', default: 'views,interactions,frames' },
    /** Runs a second while frames are counted, and for how many seconds. */
    rate: { type: 'string', default: '200' },
    seconds: { type: 'string', default: '60' },
  },
});

/** Milliseconds between two measurements, so that a view can finish its later reads. */
const REST = 700;
const ROUNDS = 3;

async function measure(filled: FilledService): Promise<void> {
  const browser = await launchBrowser();
  try {
    const page = await browser.newPage({ viewport: { width: 1280, height: 720 } });
    await countRequests(page);
    await logIn(page, filled.address, filled.credentials);
    await pause(3000);
    if (values.only.includes('views')) await measureViews(page, filled);
    if (values.only.includes('interactions')) await measureInteractions(page, filled);
    if (values.only.includes('frames')) await measureFrames(page, filled);
  } finally {
    await browser.close();
  }
}

async function measureViews(page: Page, { tasks }: FilledService): Promise<void> {
  console.log('| view | first content | complete |\n| --- | --: | --: |');
  for (const [name, to] of viewsOf(tasks)) {
    const all: { readonly first: number; readonly whole: number }[] = [];
    for (let round = 0; round < ROUNDS; round += 1) {
      await openView(page, to === 'secrets' ? 'agents' : 'secrets');
      await pause(REST);
      all.push(await openView(page, to));
      await pause(REST);
    }
    console.log(
      `| ${name} | ${each(all.map((one) => one.first))} | ${each(all.map((one) => one.whole))} |`,
    );
  }
}

async function measureInteractions(page: Page, { tasks }: FilledService): Promise<void> {
  console.log('\n| interaction | ms |\n| --- | --: |');
  for (const interaction of interactionsOf(tasks)) {
    const all: number[] = [];
    for (let round = 0; round < ROUNDS; round += 1) {
      await openView(page, 'secrets');
      await openView(page, interaction.view);
      await pause(2 * REST);
      all.push(await interact(page, interaction));
      await page.keyboard.press('Escape');
    }
    console.log(`| ${interaction.name} | ${each(all)} |`);
  }
}

async function measureFrames(page: Page, { bench }: FilledService): Promise<void> {
  const [rate, seconds] = [Number(values.rate), Number(values.seconds)];
  console.log(
    '\n| view | frames a second | over 20 ms | over 33.4 ms | longest |\n| --- | --: | --: | --: | --: |',
  );
  for (const view of ['runs', 'overview']) {
    await openView(page, view);
    await pause(2000);
    console.log(`| ${view}, no runs | ${await framesOf(page, 10)} |`);
    const stopping = new AbortController();
    const runs = requestRuns(bench, rate, stopping.signal);
    try {
      await pause(3000);
      console.log(`| ${view}, ${rate} runs a second | ${await framesOf(page, seconds)} |`);
    } finally {
      stopping.abort();
      console.log(`(${await runs} runs)`);
    }
    await pause(3000);
  }
}

const each = (all: readonly number[]): string => all.map((ms) => ms.toFixed(0)).join(' / ');

const folder =
  values.folder === undefined ? await makeBenchFolder('webui') : resolve(values.folder);
await withFilledService(
  folder,
  { tasks: Number(values.tasks), runs: Number(values.runs) },
  measure,
);
