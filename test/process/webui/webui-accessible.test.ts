import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { fillWithEverything, type Everything } from '../../support/little-of-everything.ts';
import { projectRoot } from '../../support/project-root.ts';
import { useBrowser } from './webui-browser.ts';
import { useService } from './webui-service.ts';

/** Widths of the window: a desk, a phone, and the desk at 200 % zoom, at which axe looks. Pixels. */
const WIDTHS = [1280, 390, 640] as const;

/** An address, and what it shows or has. */
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
  workers: () => ['workers', 'post-office'],
  audit: () => ['audit', 'TaskPaused'],
  agents: () => ['agents', 'dashboards'],
  'agents/new': () => ['agents/new', 'New agent'],
  'agents/:id': ({ agent }) => [`agents/${agent}`, 'wall-screen'],
  'agents/:id/edit': ({ agent }) => [`agents/${agent}/edit`, 'Change dashboards'],
  'agents/:id/keys/new': ({ agent }) => [`agents/${agent}/keys/new`, /New API key/],
  events: () => ['events', 'orders.created'],
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
  () => ['insights?tab=errors', 'no paper in the printer'],
  () => ['no/such/view', /not found/i],
];

/** Where a dialog opens, and the button that opens it. */
const dialogs: readonly ((of: Everything) => Shown)[] = [
  ({ task }) => [`tasks/${task}`, 'Pause'],
  ({ task }) => [`tasks/${task}`, 'Snooze'],
  ({ task }) => [`tasks/${task}`, 'Cancel'],
  ({ task }) => [`tasks/${task}`, /^Backfill/],
  () => ['runs', 'Retry failed runs …'],
  () => ['runs', 'Cancel unfinished runs …'],
  () => ['events', 'Publish test event'],
  () => ['approvals', /^Approve: /],
  () => ['approvals', /^Reject: /],
  () => ['workers', 'Drain post-office'],
  ({ agent }) => [`agents/${agent}`, 'New secret …'],
  ({ agent }) => [`agents/${agent}`, 'Disable …'],
  ({ agent }) => [`agents/${agent}`, 'Remove …'],
  ({ agent }) => [`agents/${agent}`, 'Revoke wall-screen'],
  () => ['secrets', 'Delete PRINTER_TOKEN'],
  () => ['secrets', 'Rotate the key …'],
  ({ namespace }) => [`namespaces/${namespace}`, 'Delete …'],
  () => ['system', 'Hold the service …'],
];

/** The smallest elements that stand out at the right of the window, if the page can be scrolled sideways. */
const outside = `[...document.querySelectorAll('body *')]
  .filter((each) => document.documentElement.scrollWidth > innerWidth
    && each.getBoundingClientRect().right > innerWidth + 0.5
    && ![...each.children].some((child) => child.getBoundingClientRect().right > innerWidth + 0.5))
  .map((each) => each.outerHTML.slice(0, 200))
  .concat(document.documentElement.scrollWidth > innerWidth ? ['width ' + document.documentElement.scrollWidth] : [])`;

describe('all views of the web page', function () {
  this.timeout(300_000);
  const service = useService();
  const browsing = useBrowser(() => service().process.address);
  let everything: Everything;

  before(async () => {
    const { client, credentials } = service();
    everything = await fillWithEverything(client, credentials.agent_id);
  });

  beforeEach(() => browsing().logIn(service().credentials));

  /** Opens a view and waits until everything that is read is there. */
  async function open([address, text]: Shown): Promise<void> {
    const { page } = browsing();
    await browsing().goTo(address);
    await page.locator('main').getByText(text).filter({ visible: true }).first().waitFor();
    await page.locator('.loading').first().waitFor({ state: 'detached' });
  }

  /** What stands out of the window at one of the widths. */
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

  /** Does it for each, and says all that failed. */
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

  it('have an entry here', () => {
    const main = readFileSync(join(projectRoot, 'extensions/webui/static/main.js'), 'utf8');
    const [, routes = ''] = /setRoutes\(\[(.*?)\n\]\);/s.exec(main) ?? [];
    const patterns = [...routes.matchAll(/^ {2}\['([^']+)', /gm)].map(([, pattern]) => pattern);
    expect(Object.keys(views)).to.have.members(patterns as string[]);
  });

  it('are accessible and fit at a desk, at 200 % zoom and on a phone', async () => {
    await forEach(shown(), async (each) => {
      await open(each);
      expect(await cutOff()).to.deep.equal([]);
      await browsing().expectAccessible();
    });
    expect(browsing().complaints.filter((each) => !each.includes('404'))).to.deep.equal([]);
  });

  it('have dialogs that are accessible and fit', async () => {
    const { page } = browsing();
    await forEach(
      dialogs.map((of) => of(everything)),
      async ([address, button]) => {
        await browsing().goTo(address);
        await page
          .getByRole('button', { name: button, exact: typeof button === 'string' })
          .first()
          .click({ timeout: 5000 });
        await page.getByRole('dialog').waitFor();
        const found = await cutOff();
        await browsing().expectAccessible();
        await page.keyboard.press('Escape');
        await page.getByRole('dialog').waitFor({ state: 'detached' });
        expect(found).to.deep.equal([]);
      },
    );
    expect(browsing().complaints).to.deep.equal([]);
  });

  it('have a login that is accessible and fits', async () => {
    const { page } = browsing();
    await browsing().open();
    await page.getByRole('heading', { name: 'Log in' }).waitFor();
    expect(await cutOff()).to.deep.equal([]);
    await browsing().expectAccessible();
  });
});
