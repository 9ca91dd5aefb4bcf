import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { errorGroupOf } from '../../../domain/runs/error-group.ts';
import { fillWithEverything, type Everything } from '../../support/little-of-everything.ts';
import { projectRoot } from '../../support/project-root.ts';
import { useBrowser } from './webui-browser.ts';
import {
  dialogCases,
  dialogTitles,
  fillForDialogs,
  isTitle,
  type DialogCase,
} from './webui-dialogs.ts';
import { useService } from './webui-service.ts';

/** Widths of the window: a desktop, a phone, and a desktop at 200 % zoom, where axe runs. Pixels. */
const WIDTHS = [1280, 390, 640] as const;

/** An address, and a text or selector on its view. */
type Shown = readonly [address: string, text: string | RegExp];

/** The view of each route: an address, and a text that is there once it is drawn. */
const views: Readonly<Record<string, (of: Everything) => Shown>> = {
  overview: () => ['overview', '1 task failing'],
  tasks: () => ['tasks', 'Print the labels'],
  'tasks/new': () => ['tasks/new', 'New task'],
  'tasks/:id': ({ task }) => [`tasks/${task}`, 'no paper in the printer'],
  'tasks/:id/edit': ({ task }) => [`tasks/${task}/edit`, /^Save/],
  runs: () => ['runs', 'no paper in the printer'],
  'runs/:id': ({ failed }) => [`runs/${failed}?step=print`, 'no paper in the printer'],
  insights: () => ['insights', 'no paper in the printer'],
  approvals: () => ['approvals', 'Pay 42 suppliers today?'],
  'approvals/:id': ({ approval }) => [`approvals/${approval}`, 'approvals:write'],
  workers: () => ['workers', 'post-office'],
  audit: () => ['audit', 'TaskPaused'],
  agents: () => ['agents', 'dashboards'],
  'agents/new': () => ['agents/new', 'New agent'],
  'agents/keys': () => ['agents/keys', 'wall-screen'],
  'agents/resent': () => ['agents/resent', 'None.'],
  'agents/:id': ({ agent }) => [`agents/${agent}`, 'wall-screen'],
  'agents/:id/edit': ({ agent }) => [`agents/${agent}/edit`, 'Change dashboards'],
  'agents/:id/keys/new': ({ agent }) => [`agents/${agent}/keys/new`, /New API key/],
  events: () => ['events', 'orders.created'],
  'events/:id': ({ event }) => [`events/${event}`, 'Tasks triggered'],
  secrets: () => ['secrets', 'PRINTER_TOKEN'],
  'secrets/new': () => ['secrets/new', 'New secret'],
  'secrets/:name': ({ secret }) => [`secrets/${secret}`, 'Replace PRINTER_TOKEN'],
  namespaces: () => ['namespaces', 'branch-office'],
  'namespaces/new': () => ['namespaces/new', 'New namespace'],
  'namespaces/:name': ({ namespace }) => [`namespaces/${namespace}`, 'Namespace branch-office'],
  'namespaces/:name/edit': ({ namespace }) => [`namespaces/${namespace}/edit`, /^Save/],
  'namespaces/:name/quotas': ({ namespace }) => [`namespaces/${namespace}/quotas`, /quotas/i],
  system: () => ['system', /read models/i],
  'system/read-models': () => ['system/read-models', 'runs'],
  'system/streams': () => ['system/streams', 'Streams'],
  'system/streams/:id': ({ task }) => [`system/streams/task-${task}`, 'TaskCreated'],
};

/** Further states of views: tabs, and the run of a step that waits. */
const tabs: readonly ((of: Everything) => Shown)[] = [
  ({ task }) => [`tasks/${task}?tab=calendar`, 'Calendar'],
  ({ task }) => [`tasks/${task}?tab=definition`, 'Definition'],
  ({ task }) => [`tasks/${task}?tab=history`, 'History'],
  ({ waiting }) => [`runs/${waiting}`, 'Pay 42 suppliers today?'],
  ({ task }) => [`insights?task=${task}`, 'All tasks'],
  () => [`insights?error=${errorGroupOf('no paper in the printer').id}`, 'All errors'],
  () => ['events/01990000-0000-7000-8000-000000000000', /not found/i],
  () => ['no/such/view', /not found/i],
];

/** The panels of the keyboard: their keys and titles. */
const panels = [
  ['Control+k', 'Search'],
  ['?', 'Keyboard shortcuts'],
] as const;

/** The smallest elements that extend beyond the right edge of the window, if the page can be scrolled sideways. */
const outside = `[...document.querySelectorAll('body *')]
  .filter((each) => document.documentElement.scrollWidth > innerWidth
    && each.getBoundingClientRect().right > innerWidth + 0.5
    && ![...each.children].some((child) => child.getBoundingClientRect().right > innerWidth + 0.5))
  .map((each) => each.outerHTML.slice(0, 200))
  .concat(document.documentElement.scrollWidth > innerWidth ? ['width ' + document.documentElement.scrollWidth] : [])`;

describe('all views of the web page', function () {
  this.timeout(900_000);
  const service = useService();
  const browsing = useBrowser(() => service().process.address);
  let everything: Everything;

  before(async () => {
    const { client, credentials } = service();
    everything = await fillWithEverything(client, credentials.agent_id);
  });

  beforeEach(() => browsing().logIn(service().credentials));

  /** Opens a view and waits until everything is loaded. */
  async function open([address, text]: Shown): Promise<void> {
    const { page } = browsing();
    await browsing().goTo(address);
    await page.locator('main').getByText(text).filter({ visible: true }).first().waitFor();
    await page.locator('.loading').first().waitFor({ state: 'detached' });
  }

  /** The elements that extend beyond the window at one of the widths. */
  async function cutOff(): Promise<readonly string[]> {
    const { page } = browsing();
    const found: string[] = [];
    for (const width of WIDTHS) {
      await page.setViewportSize({ width, height: 820 });
      const parts = await page.evaluate<readonly string[]>(outside);
      found.push(...parts.map((part) => `${page.url()} at ${width}: ${part}`));
    }
    return found;
  }

  /** Runs a check for each element, and reports all failures. */
  async function forEach<T>(all: readonly T[], check: (each: T) => Promise<void>): Promise<void> {
    const faults: string[] = [];
    for (const each of all) {
      await check(each).catch((fault: unknown) =>
        faults.push(`${JSON.stringify(each)}: ${String(fault)}`),
      );
    }
    expect(faults).to.deep.equal([]);
  }

  const shown = (): readonly Shown[] =>
    [...Object.values(views), ...tabs].map((of) => of(everything));

  it('are all listed in this test', () => {
    const main = readFileSync(join(projectRoot, 'extensions/webui/static/main.js'), 'utf8');
    const [, routes = ''] = /setRoutes\(\[(.*?)\n\]\);/s.exec(main) ?? [];
    const patterns = [...routes.matchAll(/^ {2}\['([^']+)', /gm)].map(([, pattern]) => pattern);
    expect(Object.keys(views)).to.have.members(patterns as string[]);
  });

  it('are accessible and fit on a desktop, at 200 % zoom and on a phone', async () => {
    await forEach(shown(), async (each) => {
      await open(each);
      expect(await cutOff()).to.deep.equal([]);
      await browsing().expectAccessible();
    });
    expect(browsing().complaints.filter((each) => !each.includes('404'))).to.deep.equal([]);
  });

  /** Opens a dialog, checks it and closes it. @returns its title */
  async function checkDialog({ at, tick, within, click, pretend }: DialogCase): Promise<string> {
    const { page } = browsing();
    await pretend?.(page);
    await browsing().goTo('approvals');
    await browsing().goTo(at);
    if (tick !== undefined) await page.getByRole('checkbox', { name: tick }).check();
    for (const name of click) {
      const exact = typeof name === 'string';
      const place = within === undefined ? page : page.locator('section', { hasText: within });
      await place.getByRole('button', { name, exact }).first().click();
    }
    const title = await checkOpen();
    await page.unrouteAll({ behavior: 'wait' });
    return title;
  }

  async function checkOpen(): Promise<string> {
    const { page } = browsing();
    const dialog = page.getByRole('dialog');
    await dialog.waitFor();
    const title = (await dialog.getAttribute('aria-label')) ?? '';
    const found = await cutOff();
    await browsing().expectAccessible();
    await page.keyboard.press('Escape');
    await dialog.waitFor({ state: 'detached' });
    expect(found).to.deep.equal([]);
    return title;
  }

  it('have dialogs that are accessible and fit, each of which is opened here', async () => {
    const { page } = browsing();
    const { client, credentials } = service();
    const things = await fillForDialogs(client, credentials.agent_id, everything);
    const shown: string[] = [];
    await forEach(dialogCases(things), async (each) => {
      shown.push(await checkDialog(each));
    });
    await forEach(panels, async ([key, title]) => {
      await page.keyboard.press(key);
      expect(await checkOpen()).to.equal(title);
    });
    await client.post('/operations/hold', { reason: 'stocktaking' });
    shown.push(await checkDialog({ at: 'system', click: ['Release …'] }));
    await client.post('/operations/release', {});
    const isShown = (source: string): boolean => shown.some((title) => isTitle(source, title));
    expect(dialogTitles().filter((source) => !isShown(source))).to.deep.equal([]);
    expect(browsing().complaints).to.deep.equal([]);
  });

  it('are reached through a login that is accessible and fits', async () => {
    const { page } = browsing();
    await browsing().open();
    await page.getByRole('heading', { name: 'Log in' }).waitFor();
    expect(await cutOff()).to.deep.equal([]);
    await browsing().expectAccessible();
  });
});
