import { expect } from 'chai';
import { useBrowser } from './webui-browser.ts';
import { useService } from './webui-service.ts';

describe('after an outage, the web page', function () {
  this.timeout(300_000);
  const service = useService();
  const browsing = useBrowser(() => service().process.address);
  let task: string;
  let run: string;

  before(async () => {
    const { client, credentials } = service();
    const made = await client.post('/tasks', {
      title: 'Outlives an outage',
      description: '-',
      schedule_kind: 'event',
      schedule_expr: 'never.published',
      created_by: credentials.agent_id,
      payload: { pipeline: [] },
    });
    task = made.textAt('id');
    const ran = await client.post(`/tasks/${task}/run_now?wait=20`, {});
    run = ran.textAt('details.run_id');
    await client.post(`/tasks/${task}/pause`, {});
  });

  /** Answers requests as a service that is starting, until the returned function is called. */
  async function refuse(paths: RegExp): Promise<() => Promise<void>> {
    const starting = { status: 503, json: { error: 'unavailable', message: 'it is starting' } };
    await browsing().page.route(paths, (route) => route.fulfill(starting));
    return () => browsing().page.unroute(paths);
  }

  /** Expects that a view which could not be read is shown later, without a click. */
  async function expectRecovery(view: string, paths: RegExp, text: string): Promise<void> {
    const { page } = browsing();
    const end = await refuse(paths);
    await browsing().logIn(service().credentials, view);
    await page.getByRole('alert').filter({ hasText: 'it is starting' }).first().waitFor();
    await page.getByText('This page keeps trying.').first().waitFor();
    await browsing().expectAccessible();
    await end();
    await page.getByText(text).first().waitFor();
    await page
      .getByRole('alert')
      .filter({ hasText: 'it is starting' })
      .waitFor({ state: 'detached' });
  }

  it('shows a run', () => expectRecovery(`runs/${run}`, /\/runs\/[^/]+$/, 'Outlives an outage'));

  it('shows the history of a task', () =>
    expectRecovery(`tasks/${task}?tab=history`, /\/history\?/, 'TaskPaused'));

  it('shows the revisions of a task', () =>
    expectRecovery(
      `tasks/${task}?tab=definition`,
      /\/tasks\/[^/]+\/(history|revisions)/,
      'Revisions',
    ));

  it('shows the audit, and follows it live', async () => {
    await expectRecovery('audit', /\/audit\?/, 'TaskPaused');
    const { page } = browsing();
    await page.locator('.live[data-how=live]').waitFor();
    const end = await refuse(/\/audit[?/]/);
    const refused = page.waitForResponse(/\/audit\?/);
    await page.getByLabel('Stream').fill(`run-${run}`);
    await refused;
    await page.locator('.live[data-how=lost]').waitFor();
    await end();
    await page.getByRole('cell', { name: 'RunRequested' }).first().waitFor();
    await page.locator('.live[data-how=live]').waitFor();
    expect(await page.getByText('TaskPaused').count()).to.equal(0);
  });
});
