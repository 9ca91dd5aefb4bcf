import { expect } from 'chai';
import type { Credentials } from '../../support/service-process.ts';
import { eventually } from '../../support/signals.ts';
import { useBrowser } from './webui-browser.ts';
import { useService } from './webui-service.ts';

describe('the web page offers', function () {
  this.timeout(300_000);
  const service = useService();
  const browsing = useBrowser(() => service().process.address);

  /** A new agent with these scopes. */
  async function agent(name: string, scopes: readonly string[]): Promise<Credentials> {
    const path = `/agents/${(await service().client.post('/agents', { name, scopes })).textAt('id')}`;
    const { json } = await service().client.post(`${path}/credentials`, {});
    const { agent_id, agent_secret } = json as unknown as Credentials;
    return { agent_id, agent_secret };
  }

  /** A new task of an agent. @returns its id */
  async function task(title: string, created_by: string, fields: object = {}): Promise<string> {
    const made = await service().client.post('/tasks', {
      title,
      description: 'offered',
      schedule_kind: 'cron',
      schedule_expr: '0 5 1 1 *',
      created_by,
      payload: { pipeline: [{ uses: 'fail', with: { message: 'no paper' } }] },
      max_retries: 0,
      ...fields,
    });
    expect(made.status, made.text).to.equal(201);
    return made.textAt('id');
  }

  it("changes only of the agent's own tasks and their runs", async () => {
    const { page, complaints } = browsing();
    const owner = await agent('owner', ['tasks:read', 'tasks:write', 'runs:read']);
    const own = await task('An own one', owner.agent_id);
    const other = await task('Of another', service().credentials.agent_id);
    const runs = [];
    for (const id of [own, other]) {
      const ran = await service().client.post(`/tasks/${id}/run_now?wait=20`);
      runs.push(ran.textAt('details.run_id'));
    }
    const offered = (): Promise<readonly string[]> =>
      page.locator('.view-head .actions').locator('button, a').allTextContents();
    // Ids may be typed in capitals.
    const typed = { ...owner, agent_id: owner.agent_id.toUpperCase() };
    await browsing().logIn(typed, `tasks/${own}`);
    await page.getByRole('heading', { level: 1, name: 'An own one' }).waitFor();
    expect(await offered()).to.deep.equal([
      ...['Run now', 'Pause', 'Snooze', 'Cancel', 'Backfill …', 'Change'],
    ]);
    await browsing().goTo(`tasks/${other}`);
    await page.getByRole('heading', { level: 1, name: 'Of another' }).waitFor();
    expect(await offered()).to.deep.equal([]);
    await browsing().goTo('tasks');
    const tick = (title: string) => page.getByRole('checkbox', { name: `Select ${title}` });
    await tick('An own one').check();
    expect(await tick('Of another').isDisabled()).to.equal(true);
    await browsing().goTo(`runs/${runs[0]}`);
    await page.getByRole('link', { name: 'An own one' }).waitFor();
    const retries = ['Retry from the failed step', 'Retry from the start', 'Retry …'];
    expect(await offered()).to.deep.equal([...retries, 'Copy as …']);
    await browsing().goTo(`runs/${runs[1]}`);
    await page.getByRole('link', { name: 'Of another' }).waitFor();
    expect(await offered()).to.deep.equal(['Copy as …']);
    // After a change of owner, the task and its runs belong to the new owner.
    const handedOver = { created_by: service().credentials.agent_id };
    const put = await service().client.put(`/tasks/${own}`, handedOver);
    expect(put.status, put.text).to.equal(200);
    const position = put.header('X-Event-Position');
    await eventually(
      async () => (await service().client.get(`/tasks/${own}?after=${position}`)).status === 200,
    );
    await browsing().goTo(`runs/${runs[0]}`);
    await page.getByRole('link', { name: 'An own one' }).waitFor();
    expect(await offered()).to.deep.equal(['Copy as …']);
    await browsing().goTo('runs');
    await page.getByRole('button', { name: 'Retry failed runs …' }).click();
    await page.getByRole('dialog').getByText('runs of your tasks').waitFor();
    expect(complaints).to.deep.equal([]);
  });

  it('no retry of a run whose task is canceled, but says why', async () => {
    const { page, complaints } = browsing();
    const id = await task('Given up', service().credentials.agent_id);
    const ran = await service().client.post(`/tasks/${id}/run_now?wait=20`);
    const address = `runs/${ran.textAt('details.run_id')}`;
    await browsing().logIn(service().credentials, address);
    await page.getByRole('button', { name: 'Retry from the start' }).waitFor();
    await service().client.post(`/tasks/${id}/cancel`);
    await browsing().goTo('runs');
    await page.getByRole('button', { name: 'Retry failed runs …' }).waitFor();
    await browsing().goTo(address);
    await page.getByText('no retry: the task is canceled').waitFor();
    expect(await page.getByRole('button', { name: /^Retry/ }).count()).to.equal(0);
    await browsing().expectAccessible();
    expect(complaints).to.deep.equal([]);
  });

  it("the previous day in the task's time zone for a backfill", async () => {
    const { page, complaints } = browsing();
    // A zone in which the date differs from UTC's and is not about to change.
    const east = new Date().getUTCHours() >= 11;
    const timezone = east ? 'Pacific/Kiritimati' : 'Etc/GMT+12';
    const there = Date.now() + (east ? 14 : -12) * 3_600_000;
    const day = new Date(there - 86_400_000).toISOString().slice(0, 10);
    const id = await task('Far away', service().credentials.agent_id, { timezone });
    await browsing().logIn(service().credentials, `tasks/${id}`);
    await page.getByRole('button', { name: 'Backfill …' }).click();
    const from = page.getByRole('dialog').getByLabel('From', { exact: true });
    expect(await from.inputValue()).to.match(new RegExp(`^${day}T00:00`));
    expect(complaints).to.deep.equal([]);
  });

  it('no links to views that the agent may not see', async () => {
    const { page, complaints } = browsing();
    const writer = await agent('writer', ['tasks:read', 'tasks:write']);
    const own = await task('Seen without runs', writer.agent_id);
    await browsing().logIn(writer, `tasks/${own}`);
    await page.getByRole('button', { name: 'Run now' }).click();
    await page.getByText('Seen without runs: run requested').waitFor();
    expect(page.url()).to.match(new RegExp(`#/tasks/${own}$`));
    const reader = await agent('reader', ['runs:read']);
    const ran = await service().client.post(`/tasks/${own}/run_now?wait=20`);
    await browsing().open();
    await browsing().logIn(reader, `runs/${ran.textAt('details.run_id')}`);
    await page.getByRole('heading', { level: 1, name: `Run of task ${own.slice(-6)}` }).waitFor();
    expect(await page.locator('a[href^="#/tasks"]').count()).to.equal(0);
    expect(complaints).to.deep.equal([]);
  });

  it('no view at an unknown address, and says so', async () => {
    const { page, complaints } = browsing();
    await browsing().logIn(service().credentials, 'tusks/new');
    await page.getByRole('heading', { level: 1, name: 'Page not found' }).waitFor();
    await page.getByText('#/tusks/new').waitFor();
    expect(await page.title()).to.match(/^Page not found/);
    expect(await page.locator('nav [aria-current]').count()).to.equal(0);
    await browsing().expectAccessible();
    await browsing().goTo('tasks/');
    await page.getByRole('heading', { level: 1, name: 'Tasks' }).waitFor();
    expect(complaints).to.deep.equal([]);
  });

  it('the rest of the overview if a part of it fails', async () => {
    const { page } = browsing();
    // Not due during the test: its run would be a second link to it.
    const soon = new Date(Date.now() + 1_800_000).toISOString();
    const due = { schedule_kind: 'once', schedule_expr: soon };
    await task('Due and failed', service().credentials.agent_id, due);
    const refusals = ['stats/summary?*', 'projections', 'ext/webui/api/titles?*'];
    for (const each of refusals) {
      await page.route(`**/${each}`, (route) =>
        route.fulfill({ status: 500, json: { error: 'internal_error', message: `no ${each}` } }),
      );
    }
    await browsing().logIn(service().credentials);
    await page.getByRole('link', { name: 'Due and failed' }).waitFor();
    await page.getByRole('alert').filter({ hasText: 'no stats/summary' }).waitFor();
    await page.getByRole('alert').filter({ hasText: 'no projections' }).waitFor();
    await page.getByRole('cell', { name: 'no paper' }).first().waitFor();
    await page.locator('.live[data-how=live]').waitFor();
    await browsing().expectAccessible();
    await page.unroute('**/stats/summary?*');
    await page.getByRole('img', { name: 'Runs of the last 24 hours by hour' }).waitFor();
  });

  it("the fires of a backfill in the task's time zone", async () => {
    const { page, complaints } = browsing();
    const fields = { schedule_expr: '30 9 * * *', timezone: 'Asia/Kathmandu' };
    const id = await task('By another clock', service().credentials.agent_id, fields);
    await browsing().logIn(service().credentials, `tasks/${id}`);
    await page.getByRole('button', { name: 'Backfill …' }).click();
    const dialog = page.getByRole('dialog');
    const from = dialog.getByLabel('From', { exact: true });
    await dialog
      .locator('.field', { has: page.getByLabel('From', { exact: true }) })
      .getByText('Asia/Kathmandu')
      .waitFor();
    await from.fill('2026-03-01T00:00:00');
    await dialog.getByLabel('To', { exact: true }).fill('2026-03-01T23:59:59');
    await dialog.getByRole('button', { name: 'Preview' }).click();
    await dialog.getByText('2026-03-01 09:30:00 GMT+05:45').waitFor();
    expect(complaints).to.deep.equal([]);
  });

  it('a task live to an agent that may not see runs, with the name of its owner', async () => {
    const { page, complaints } = browsing();
    const owner = await agent('the bakery', ['tasks:read', 'tasks:write']);
    const id = await task('Bakes bread', owner.agent_id);
    await browsing().logIn(owner, `tasks/${id}`);
    await page.getByRole('heading', { level: 1, name: 'Bakes bread' }).waitFor();
    await page.locator('.view-head .live[data-how=live]').waitFor();
    await page.locator('.account').getByText('the bakery', { exact: true }).waitFor();
    await page.getByRole('definition').getByText('the bakery', { exact: true }).waitFor();
    await page.reload();
    await page.locator('.account').getByText('the bakery', { exact: true }).waitFor();
    await browsing().goTo('tasks');
    await page.getByRole('cell', { name: 'the bakery', exact: true }).waitFor();
    expect(complaints).to.deep.equal([]);
  });
});
