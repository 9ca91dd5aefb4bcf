import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import type { Page } from 'playwright-core';
import { createClient, type Client } from '../../api/client/client.ts';
import { launchBrowser } from './browser.ts';
import { projectRoot } from '../../test/support/project-root.ts';
import { ApiClient } from '../../test/support/api-client.ts';
import { fillWithEverything, type Everything } from '../../test/support/little-of-everything.ts';
import { credentialsIn, signIn, type Credentials } from '../../test/support/service-process.ts';
import { BenchService, withBenchStore } from '../bench-service.ts';
import { logIn } from './log-in.ts';
import { fillStore, type Filled } from './webui-store.ts';

/**
 * Takes the pictures of the web page for the documentation, at three widths and some with dark colours, from its own
 * store with a few days of data: `npx tsx bench/webui/webui-pictures.ts [view …]`, after `npm run build`.
 */
const folder = join(projectRoot, 'docs/images');

/** The sizes of the window, in pixels. */
interface Size {
  readonly width: number;
  readonly height: number;
}

/** The size of the dark pictures. */
const DARK: Size = { width: 1280, height: 720 };
const SIZES = [{ width: 1440, height: 720 }, DARK, { width: 390, height: 700 }] as const;

/** A view, and the actions there before the picture. */
interface PicturedView {
  readonly name: string;
  readonly hash: string;
  /** Taken in dark too. */
  readonly isMain?: boolean;
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
    const client = new ApiClient(address, null);
    const signedIn = client.as(await signIn(client, credentials));
    const everything = await fillWithEverything(signedIn, credentials.agent_id);
    const views = viewsOf(filled, retried, everything).filter(
      ({ name }) => wanted.length === 0 || wanted.includes(name),
    );
    await takePictures(address, credentials, views);
    client.close();
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

function viewsOf({ tasks }: Filled, retried: string, of: Everything): readonly PicturedView[] {
  const orders = tasks.get('Take over orders') ?? '';
  const recommendations = tasks.get('Rebuild the recommendations') ?? '';
  return [
    { name: 'overview', hash: 'overview', isMain: true },
    { name: 'tasks', hash: 'tasks', isMain: true },
    { name: 'task', hash: `tasks/${recommendations}`, isMain: true },
    {
      name: 'task-calendar',
      hash: `tasks/${recommendations}?tab=calendar`,
      // The day without the service.
      prepare: (page) => page.locator('.day:has(.counts .wait)').first().click(),
    },
    { name: 'task-definition', hash: `tasks/${orders}?tab=definition` },
    { name: 'task-history', hash: `tasks/${orders}?tab=history` },
    {
      name: 'task-form',
      hash: 'tasks/new',
      async prepare(page) {
        await page.getByLabel('Title').fill('Morning report');
        await page.getByRole('textbox', { name: 'Schedule' }).fill('0 9 * * MON-FRI#7');
      },
    },
    { name: 'runs', hash: 'runs?state=failed', isMain: true },
    { name: 'run', hash: `runs/${retried}`, isMain: true },
    { name: 'events', hash: 'events' },
    { name: 'event', hash: `events/${of.event}` },
    { name: 'insights', hash: 'insights' },
    { name: 'approvals', hash: 'approvals' },
    { name: 'approval', hash: `approvals/${of.approval}` },
    { name: 'workers', hash: 'workers' },
    { name: 'audit', hash: 'audit?type=CommandRefused' },
    { name: 'agents', hash: 'agents' },
    { name: 'agent-keys', hash: 'agents/keys' },
    { name: 'agents-resent', hash: 'agents/resent' },
    { name: 'agent', hash: `agents/${of.agent}` },
    { name: 'agent-form', hash: `agents/${of.agent}/edit` },
    { name: 'key-form', hash: `agents/${of.agent}/keys/new` },
    { name: 'secrets', hash: 'secrets' },
    { name: 'secret-form', hash: `secrets/${of.secret}` },
    { name: 'namespaces', hash: 'namespaces' },
    { name: 'namespace', hash: `namespaces/${of.namespace}` },
    { name: 'namespace-form', hash: `namespaces/${of.namespace}/edit` },
    { name: 'quota-form', hash: `namespaces/${of.namespace}/quotas` },
    { name: 'system', hash: 'system' },
    { name: 'read-models', hash: 'system/read-models' },
    { name: 'streams', hash: 'system/streams' },
    { name: 'stream', hash: `system/streams/task-${orders}` },
  ];
}

async function takePictures(
  address: string,
  credentials: Credentials,
  views: readonly PicturedView[],
): Promise<void> {
  const browser = await launchBrowser();
  try {
    const page = await browser.newPage({
      viewport: SIZES[0],
      colorScheme: 'light',
      reducedMotion: 'reduce',
      timezoneId: 'Europe/Berlin',
      locale: 'en-GB',
    });
    const take = (name: string, { width }: Size, more = '') =>
      page.screenshot({ path: join(folder, `${name}-${width}${more}.png`) });
    await page.goto(`${address}/ext/webui/`);
    await page.getByRole('heading', { name: 'Log in' }).waitFor();
    for (const size of views.length > 1 ? SIZES : []) {
      await page.setViewportSize(size);
      await take('login', size);
    }
    await logIn(page, address, credentials);
    for (const { name, hash, isMain = false, prepare } of views) {
      await page.setViewportSize(SIZES[0]);
      await page.evaluate(`location.hash = ${JSON.stringify(`#/${hash}`)}`);
      await pause(2_000);
      await prepare?.(page);
      await page.mouse.move(0, 0);
      await pause(prepare === undefined ? 0 : 1_000);
      for (const size of SIZES) {
        await page.setViewportSize(size);
        // The same state as after a click on the entry.
        await page.evaluate(
          `document.querySelector('.rail [aria-current]')?.scrollIntoView({ block: 'nearest' })`,
        );
        await pause(300);
        await take(name, size);
        if (!isMain || size !== DARK) continue;
        await page.emulateMedia({ colorScheme: 'dark' });
        await take(name, size, '-dark');
        await page.emulateMedia({ colorScheme: 'light' });
      }
    }
  } finally {
    await browser.close();
  }
}

await main(process.argv.slice(2));
