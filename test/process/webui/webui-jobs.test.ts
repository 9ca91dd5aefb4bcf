import { expect } from 'chai';
import type { Page } from 'playwright-core';
import { eventually } from '../../support/signals.ts';
import { atNoon, useBrowser } from './webui-browser.ts';
import {
  enter,
  expectFocus,
  expectFocusKept,
  overwrite,
  tabTo,
  watchFocus,
} from './webui-keyboard.ts';
import { useService } from './webui-service.ts';

/** Longer than the test. Seconds. */
const ENDLESS = 900;

describe('the main jobs of the web page, with the keyboard only,', function () {
  this.timeout(300_000);
  const service = useService();
  // Registered before `useBrowser`, so that it runs before the page is closed.
  afterEach(async function () {
    if (this.currentTest?.state === 'failed') return;
    await expectFocusKept(browsing().page);
    // The browser writes each rejected request into its console, including the login with a wrong secret.
    const others = browsing().complaints.filter((each) => !/ 401 .*auth\/session/.test(each));
    expect(others).to.deep.equal([]);
  });

  const browsing = useBrowser(() => service().process.address, atNoon());

  beforeEach(() => watchFocus(browsing().page));

  /** Opens a view in a session of the first admin. */
  async function open(view: string): Promise<Page> {
    const { page } = browsing();
    const { process, credentials } = service();
    const begun = await page.request.post(`${process.address}/auth/session`, { data: credentials });
    expect(begun.status()).to.equal(200);
    await page.goto(`${process.address}/ext/webui/#/${view}`);
    await page.getByRole('heading', { level: 1 }).waitFor();
    return page;
  }

  const heading = (name: string | RegExp): Promise<void> =>
    browsing().page.getByRole('heading', { level: 1, name }).waitFor();

  /** @returns its id */
  async function makeTask(title: string, fields: object = {}): Promise<string> {
    const made = await service().client.post('/tasks', {
      title,
      description: '-',
      schedule_kind: 'cron',
      schedule_expr: '0 5 1 1 *',
      created_by: service().credentials.agent_id,
      payload: { pipeline: [] },
      max_retries: 0,
      ...fields,
    });
    expect(made.status, made.text).to.equal(201);
    return made.textAt('id');
  }

  /** Requests a run. @returns its id */
  async function run(task: string, query = ''): Promise<string> {
    return (await service().client.post(`/tasks/${task}/run_now${query}`)).textAt('details.run_id');
  }

  const reads = async (path: string, field: string): Promise<unknown> =>
    (await service().client.get(path)).at(field);

  it('log in, find a failed run from the overview, read its error and log, and retry its step', async () => {
    const pipeline = [
      { id: 'fetch', uses: 'echo', with: { text: 'labels' } },
      { id: 'print', uses: 'fail', with: { message: 'no paper' }, max_retries: 0 },
    ];
    const failed = await run(
      await makeTask('Print the labels', { payload: { pipeline } }),
      '?wait=20',
    );
    const { page } = browsing();
    const { keyboard } = page;
    const { agent_id, agent_secret } = service().credentials;
    await browsing().open();
    await page.getByLabel('Agent ID').waitFor();
    await expectFocus(page, 'Agent ID');
    await keyboard.type(agent_id);
    await tabTo(page, 'Secret');
    await keyboard.type('wrong');
    await keyboard.press('Enter');
    await page.getByRole('alert').filter({ hasText: /./ }).waitFor();
    await expectFocus(page, 'Secret');
    await overwrite(page, agent_secret);
    await enter(page, 'Log in');
    await page.locator('.problems').getByText('Print the labels').waitFor();
    await enter(page, 'Print the labels');
    await heading('Print the labels');
    await page.getByRole('row', { name: /no paper/ }).waitFor();
    await keyboard.press('j');
    await expectFocus(page, failed.slice(0, 8));
    await keyboard.press('Enter');
    await heading('Run of Print the labels');
    await page.getByRole('region', { name: 'Error of print' }).getByText('no paper').waitFor();
    await tabTo(page, 'Error of print');
    await tabTo(page, 'Log');
    await enter(page, /^fetch/, 'Shift+Tab');
    await page.getByRole('region', { name: 'Result of fetch' }).waitFor();
    expect(page.url()).to.match(/step=fetch/);
    await expectFocus(page, /^fetch/);
    await enter(page, /^print/);
    await enter(page, 'Retry from this step …');
    await expectFocus(page, 'From');
    await tabTo(page, /^Why/);
    await keyboard.type('new paper');
    await keyboard.press('Enter');
    await page.waitForURL((url) => url.hash.startsWith('#/runs/') && !url.hash.includes(failed));
    await heading('Run of Print the labels');
    const retried = async () => String(await reads(`/runs/${failed}`, 'retried_by'));
    await eventually(async () => page.url().includes(await retried()));
  });

  it('create a task with the editor, its preview and a dry run; change it, and restore a revision', async () => {
    const page = await open('overview');
    const { keyboard } = page;
    await keyboard.press('Control+K');
    await keyboard.type('new task');
    await keyboard.press('Enter');
    await heading('New task');
    await tabTo(page, 'Title');
    await keyboard.type('Water the plants');
    await tabTo(page, 'Pipeline (JSON)');
    await overwrite(page, '{"pip');
    const offered = page.getByRole('listbox');
    await offered.getByRole('option', { name: /^pipeline/ }).waitFor();
    await keyboard.press('Escape');
    await offered.waitFor({ state: 'detached' });
    await keyboard.type('el');
    await offered.getByRole('option', { name: /^pipeline/ }).waitFor();
    await keyboard.press('Enter');
    await keyboard.type('[{"uses": "ech');
    await offered.getByRole('option', { name: /^echo/ }).waitFor();
    await keyboard.press('Tab');
    await keyboard.type('}]}');
    // The editor does not trap the focus. Without a suggestion, Tab moves on.
    await keyboard.press('Tab');
    await expectFocus(page, 'Tags');
    await tabTo(page, 'Schedule');
    await overwrite(page, '0 6 * * *');
    await page.locator('#next-fires').getByText('at 06:00').waitFor();
    await enter(page, 'Dry run');
    await page.locator('#dry-run').getByText('it can be saved').waitFor();
    await expectFocus(page, 'Dry run');
    await enter(page, 'Create', 'Shift+Tab');
    await heading('Water the plants');
    await enter(page, 'Change');
    await tabTo(page, 'Title');
    await overwrite(page, 'Drown the plants');
    await keyboard.press('Enter');
    await heading('Drown the plants');
    await enter(page, 'Definition');
    await enter(page, 'Compare revision 0');
    const differences = page.getByRole('region', { name: 'Differences' });
    await differences.getByText('"Water the plants"').waitFor();
    await enter(page, 'Restore this revision … 0');
    await expectFocus(page, /^Why/);
    await keyboard.type('they drowned');
    await keyboard.press('Enter');
    await heading('Water the plants');
    await page.getByRole('row', { name: /they drowned/ }).waitFor();
    await expectFocus(page, 'Restore this revision … 0');
  });

  it('pause, resume and postpone a task, and run it with params', async () => {
    const params_schema = { type: 'object', properties: { copies: { type: 'integer' } } };
    const payload = { params: { copies: 1 }, pipeline: [{ uses: 'echo' }] };
    const task = await makeTask('Copy the plan', { params_schema, payload });
    const page = await open(`tasks/${task}`);
    const { keyboard } = page;
    await enter(page, 'Pause');
    await expectFocus(page, /^Why/);
    await keyboard.type('no paper');
    await keyboard.press('Enter');
    await page.getByText(/paused by admin at .*: no paper/).waitFor();
    await expectFocus(page, 'Resume');
    await keyboard.press('Enter');
    await expectFocus(page, 'Missed fires to run');
    await enter(page, 'Resume');
    await page.getByText(/paused by admin/).waitFor({ state: 'detached' });
    await expectFocus(page, 'Pause');
    await enter(page, 'Snooze');
    await expectFocus(page, 'By');
    await keyboard.press('ArrowDown');
    await enter(page, 'Snooze');
    await page
      .getByText(/postponed/)
      .first()
      .waitFor();
    await expectFocus(page, 'Snooze');
    await enter(page, 'Run now', 'Shift+Tab');
    await expectFocus(page, 'copies');
    await overwrite(page, '3');
    await keyboard.press('Enter');
    await heading('Run of Copy the plan');
    const id = /runs\/([0-9a-f-]+)/.exec(page.url())?.[1] ?? '';
    expect(await reads(`/runs/${id}`, 'params')).to.deep.equal({ copies: 3 });
  });

  it('select several tasks and pause them, and cancel several runs', async () => {
    const pipeline = [{ uses: 'sleep', with: { seconds: ENDLESS } }];
    const fields = { tags: ['night'], payload: { pipeline } };
    const tasks = [await makeTask('Night one', fields), await makeTask('Night two', fields)];
    const runs = await Promise.all(tasks.map((task) => run(task)));
    const page = await open('tasks?tag=night');
    const { keyboard } = page;
    await page.getByText('2 tasks', { exact: true }).waitFor();
    await tabTo(page, 'Select all tasks of this page');
    await keyboard.press('Space');
    await page.getByText('2 tasks selected').waitFor();
    await enter(page, 'Pause …', 'Shift+Tab');
    await expectFocus(page, /^Why/);
    await keyboard.type('a holiday');
    await keyboard.press('Enter');
    await enter(page, 'Pause 2 tasks');
    await page.getByText('by admin').nth(1).waitFor();
    for (const task of tasks) expect(await reads(`/tasks/${task}`, 'status')).to.equal('paused');
    // The buttons are gone with the selection.
    await expectFocus(page, /./);
    await keyboard.press('Control+K');
    await keyboard.type('runs');
    await page.locator('#found').getByRole('option', { name: /^Runs/ }).waitFor();
    await keyboard.press('Enter');
    await heading('Runs');
    await tabTo(page, 'State');
    await keyboard.press('w');
    await page.getByText('2 runs', { exact: true }).waitFor();
    await tabTo(page, 'Tick all runs of this page');
    await keyboard.press('Space');
    await enter(page, 'Cancel 2 ticked runs …', 'Shift+Tab');
    await expectFocus(page, 'At most');
    await keyboard.press('Enter');
    await page.getByText('2 would be canceled').waitFor();
    await enter(page, 'Cancel 2 runs');
    await page.getByText('2 runs are canceled').waitFor();
    for (const id of runs) {
      await eventually(async () => (await reads(`/runs/${id}`, 'state')) === 'canceled');
    }
    await expectFocus(page, /./);
  });

  it('publish a test event, open it, and approve what its run asks', async () => {
    const pipeline = [{ id: 'chief', uses: 'approval', with: { message: 'Pack it?' } }];
    const listening = { schedule_kind: 'event', schedule_expr: 'orders.created' };
    await makeTask('Pack parcels', { ...listening, payload: { pipeline } });
    const page = await open('events');
    const { keyboard } = page;
    await enter(page, 'Publish test event');
    await expectFocus(page, 'Topic');
    await keyboard.type('orders.created');
    await tabTo(page, 'Payload (JSON)');
    await overwrite(page, '{"order": 4711}');
    await enter(page, 'Preview');
    await page.getByText('Triggers 1 task:').waitFor();
    await enter(page, 'Publish, and start 1 run');
    await page.getByText('Published: 1 task triggered.').waitFor();
    await expectFocus(page, 'Publish test event');
    await page.getByRole('row', { name: /orders\.created admin/ }).waitFor();
    await keyboard.press('j');
    await keyboard.press('Enter');
    await heading('Event of orders.created');
    await page.getByText('4711').waitFor();
    // Its run may be requested later.
    await page.getByRole('row', { name: /Pack parcels/ }).waitFor();
    await keyboard.press('j');
    await keyboard.press('Enter');
    await heading('Run of Pack parcels');
    await enter(page, 'Pack it?');
    await heading('Pack it?');
    await enter(page, 'Approve: Pack it? (chief)');
    await expectFocus(page, 'Comment');
    await keyboard.type('in time');
    await enter(page, 'Approve');
    await page.locator('.view-head .state', { hasText: 'approved' }).waitFor();
    await expectFocus(page, 'Pack parcels');
  });

  it('create an agent and an API key, and disable the agent', async () => {
    const page = await open('agents');
    const { keyboard } = page;
    await enter(page, 'New agent');
    await heading('New agent');
    await tabTo(page, 'Name');
    await keyboard.type('reporter');
    await tabTo(page, /^tasks:read sees/);
    await keyboard.press('Space');
    await enter(page, 'Add');
    await heading('reporter');
    await enter(page, 'New API key');
    await heading('New API key of reporter');
    await tabTo(page, 'Name');
    await keyboard.type('deployment');
    await keyboard.press('Enter');
    await page.locator('.once').waitFor();
    await expectFocus(page, 'The key deployment.');
    await enter(page, 'I have saved it');
    await heading('reporter');
    await page.getByRole('row', { name: /deployment/ }).waitFor();
    await enter(page, 'Disable …');
    await expectFocus(page, 'Its runs');
    await keyboard.press('ArrowDown');
    await tabTo(page, /^Why/);
    await keyboard.type('it runs wild');
    await keyboard.press('Enter');
    await page.getByText('Its runs are canceled.').waitFor();
    await expectFocus(page, 'Enable …');
  });

  it('replace a secret, rotate the key, hold and release the service, and rebuild a view', async () => {
    await service().client.put('/secrets/API_TOKEN', {
      value: 'first',
      allow_hosts: ['a.example'],
    });
    const page = await open('secrets');
    const { keyboard } = page;
    await page.getByRole('row', { name: /API_TOKEN/ }).waitFor();
    await keyboard.press('j');
    await keyboard.press('Enter');
    await heading('Replace API_TOKEN');
    await tabTo(page, 'Value');
    await keyboard.type('second');
    await enter(page, 'Replace');
    await page.getByRole('row', { name: /API_TOKEN 2/ }).waitFor();
    await enter(page, 'Rotate the key …');
    await expectFocus(page, /^Why/);
    await keyboard.press('Enter');
    await page.getByText('All secrets are now encrypted with the present key.').waitFor();
    await expectFocus(page, 'Rotate the key …');
    await keyboard.press('Control+K');
    await keyboard.type('hold');
    await page.locator('#found').getByRole('option', { name: /^Hold/ }).waitFor();
    await keyboard.press('Enter');
    await expectFocus(page, /^Why/);
    await keyboard.type('a new database');
    await keyboard.press('Enter');
    await enter(page, 'Release …', 'Shift+Tab');
    await expectFocus(page, 'Missed fires to run');
    await enter(page, 'Release');
    await page.locator('.banner').waitFor({ state: 'detached' });
    await expectFocus(page, /./);
    await keyboard.press('Control+K');
    await keyboard.type('system');
    await page
      .locator('#found')
      .getByRole('option', { name: /^System/ })
      .waitFor();
    await keyboard.press('Enter');
    await heading('System');
    await enter(page, 'Read models');
    await heading('Read models');
    await enter(page, 'Rebuild tasks');
    await enter(page, 'Rebuild');
    await page.getByRole('button', { name: 'Switch tasks' }).waitFor();
    await enter(page, 'Switch tasks');
    await expectFocus(page, /^Why/);
    await keyboard.press('Enter');
    await page.getByRole('button', { name: 'Roll back tasks' }).waitFor();
    await expectFocus(page, /tasks$/);
  });

  it('see in a calendar why a task ran, and choose the zone and the colours', async () => {
    const task = await makeTask('Each second', { schedule_expr: '* * * * * *', max_runs: 1 });
    await eventually(
      async () => (await reads(`/runs?task_id=${task}&state=succeeded`, 'total')) === 1,
    );
    const page = await open(`tasks/${task}`);
    const { keyboard } = page;
    await enter(page, 'Calendar');
    await page
      .locator('.day.today')
      .getByText(/succeeded/)
      .waitFor();
    await enter(page, /: 1 succeeded/);
    await page.getByRole('button', { name: /^\d\d:\d\d:\d\d$/ }).waitFor();
    await enter(page, /^\d\d:\d\d:\d\d$/);
    await page.locator('#explanation').getByText('ran.').waitFor();
    await enter(page, 'Year', 'Shift+Tab');
    await page.locator('.day').nth(11).waitFor();
    await expectFocus(page, 'Year');
    await tabTo(page, 'Colours', 'Shift+Tab');
    await keyboard.type('d');
    await page.locator('html[data-theme=dark]').waitFor();
    await tabTo(page, 'Zone of the times', 'Shift+Tab');
    await keyboard.type('utc');
    await page.getByText('Days are in the time zone UTC.').waitFor();
    await expectFocus(page, 'Zone of the times');
  });
});
