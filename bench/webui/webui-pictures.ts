import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import type { Page } from 'playwright-core';
import { createClient, type Client } from '../../api/client/client.ts';
import { launchBrowser } from './browser.ts';
import { projectRoot } from '../../test/support/project-root.ts';
import { credentialsIn, type Credentials } from '../../test/support/service-process.ts';
import { BenchService, withBenchStore } from '../bench-service.ts';
import { fillStore, type Filled } from './webui-store.ts';

/**
 * Takes the pictures of the web page for the documentation, in light and dark, on its own store of a few days:
 * `npx tsx bench/webui/webui-pictures.ts [view …]`, after `npm run build`.
 */
const folder = join(projectRoot, 'docs/images');
const SIZE = { width: 1240, height: 820 };
const PHONE = { width: 390, height: 820 };

/** A view and what is done there before the picture. */
interface PicturedView {
  readonly name: string;
  readonly hash: string;
  readonly size?: typeof SIZE;
  readonly prepare?: (page: Page) => Promise<void>;
}

async function main(wanted: readonly string[]): Promise<void> {
  mkdirSync(folder, { recursive: true });
  await withBenchStore(async (bench) => {
    await (await BenchService.start(bench.directory)).stop();
    const credentials = credentialsIn(bench.directory);
    const owner = credentials.agent_id;
    const filled = await fillStore(bench.store, { tasks: 60, runs: 5_000, days: 5, owner });
    const service = await BenchService.start(bench.directory);
    const address = `http://127.0.0.1:${service.port}`;
    const retried = await simulateUsers(address, credentials, filled);
    const views = viewsOf(filled, retried).filter(
      ({ name }) => wanted.length === 0 || wanted.includes(name),
    );
    for (const scheme of ['light', 'dark'] as const) {
      await takePictures(address, credentials, views, scheme);
    }
    await service.stop();
  });
}

/** Manual runs, a pause, rejected requests, a rebuild. Returns the id of a run with a retry. */
async function simulateUsers(
  address: string,
  { agent_id, agent_secret }: Credentials,
  filled: Filled,
): Promise<string> {
  const signedIn = (agentId: string, agentSecret: string): Client =>
    createClient({ baseUrl: address, credentials: { agentId, agentSecret } });
  const admin = signedIn(agent_id, agent_secret);
  const idOf = (title: string): string => filled.tasks.get(title) ?? '';
  while ((await admin.tasks.list({ limit: 1 })).data.total < 60) await pause(100);
  for (const [name, scopes] of [
    ['reports', ['tasks:read', 'tasks:write', 'runs:read']],
    ['warehouse', ['events:publish', 'tasks:read']],
  ] as const) {
    const { data: agent } = await admin.agents.create({ name, scopes: [...scopes] });
    const { data: given } = await admin.agents.setCredentials(agent.id);
    const client = signedIn(agent.id, given.agent_secret);
    await client.tasks.pause(idOf('Morning report')).catch(() => undefined);
    await client.tasks.cancel(idOf('Back up the database')).catch(() => undefined);
  }
  await admin.tasks.pause(idOf('Close the month'), { reason: 'the new ledger is being tested' });
  await admin.tasks.update(
    idOf('Take over orders'),
    { priority: 3 },
    { reason: 'before the invoices' },
  );
  const order = { switch: 'manual' } as const;
  await admin.request({ method: 'POST', path: '/projections/runs/rebuild', body: order });
  for (const title of ['Index the catalogue', 'Take over orders', 'Rebuild the recommendations']) {
    await admin.tasks.runNow(idOf(title));
  }
  const task_id = idOf('Take over orders');
  const { items } = (await admin.runs.list({ task_id, state: 'succeeded', limit: 200 })).data;
  return items.find(({ attempt }) => attempt > 1)?.id ?? '';
}

function viewsOf({ tasks }: Filled, retried: string): readonly PicturedView[] {
  const orders = tasks.get('Take over orders') ?? '';
  const recommendations = tasks.get('Rebuild the recommendations') ?? '';
  return [
    { name: 'overview', hash: 'overview' },
    { name: 'tasks', hash: 'tasks' },
    {
      name: 'task',
      hash: `tasks/${recommendations}`,
      // The day without the service.
      prepare: (page) => page.locator('.day:has(.counts .wait)').first().click(),
    },
    {
      name: 'task-form',
      hash: 'tasks/new',
      async prepare(page) {
        await page.getByLabel('Title').fill('Morning report');
        await page.getByRole('textbox', { name: 'Schedule' }).fill('0 9 * * MON-FRI#7');
      },
    },
    { name: 'runs', hash: 'runs?state=failed' },
    { name: 'run', hash: `runs/${retried}` },
    { name: 'stream', hash: `streams/task-${orders}` },
    { name: 'audit', hash: 'audit?type=CommandRefused' },
    { name: 'projections', hash: 'projections' },
    { name: 'agents', hash: 'agents' },
    { name: 'phone', hash: `tasks/${recommendations}`, size: PHONE },
  ];
}

async function takePictures(
  address: string,
  credentials: Credentials,
  views: readonly PicturedView[],
  colorScheme: 'light' | 'dark',
): Promise<void> {
  const browser = await launchBrowser();
  try {
    const page = await browser.newPage({
      ...{ viewport: SIZE, colorScheme, reducedMotion: 'reduce' },
      ...{ timezoneId: 'Europe/Berlin', locale: 'en-GB' },
    });
    const take = (name: string) =>
      page.screenshot({ path: join(folder, `${name}-${colorScheme}.png`) });
    await page.goto(`${address}/ext/webui/`);
    await page.getByRole('heading', { name: 'Log in' }).waitFor();
    if (views.length > 1) await take('login');
    await page.getByLabel('Agent ID').fill(credentials.agent_id);
    await page.getByLabel('Secret').fill(credentials.agent_secret);
    await page.getByRole('button', { name: 'Log in' }).click();
    await page.getByRole('navigation').getByRole('link').first().waitFor();
    for (const { name, hash, size = SIZE, prepare } of views) {
      await page.setViewportSize(size);
      await page.evaluate(`location.hash = ${JSON.stringify(`#/${hash}`)}`);
      await pause(2_500);
      await prepare?.(page);
      await pause(1_500);
      await page.mouse.move(0, 0);
      await take(name);
    }
  } finally {
    await browser.close();
  }
}

await main(process.argv.slice(2));
