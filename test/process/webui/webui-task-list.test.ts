import { expect } from 'chai';
import { eventually } from '../../support/signals.ts';
import { useBrowser } from './webui-browser.ts';
import { useService } from './webui-service.ts';

describe('the list of tasks of the web page', function () {
  this.timeout(300_000);
  const service = useService();
  const browsing = useBrowser(() => service().process.address);

  /** @returns its id */
  async function makeTask(title: string, fields: object = {}): Promise<string> {
    const made = await service().client.post('/tasks', {
      title,
      description: 'Listed',
      created_by: service().credentials.agent_id,
      schedule_kind: 'cron',
      schedule_expr: '0 5 1 1 *',
      payload: { pipeline: [] },
      ...fields,
    });
    expect(made.status, made.text).to.equal(201);
    return made.textAt('id');
  }
  const run = async (id: string): Promise<void> => {
    await service().client.post(`/tasks/${id}/run_now?wait=20`);
  };
  const statusOf = async (id: string): Promise<unknown> =>
    (await service().client.get(`/tasks/${id}`)).at('status');

  it('shows in each row how the last runs ended, how long they take, and any problem', async () => {
    const { page, complaints } = browsing();
    const failing = await makeTask('Without paper', {
      payload: { pipeline: [{ uses: 'fail', with: { message: 'no paper' } }] },
      max_retries: 0,
    });
    const fine = await makeTask('With paper');
    for (const id of [failing, failing, fine]) await run(id);
    const requests: string[] = [];
    page.on('request', (request) => {
      if (request.url().includes('/tasks/outcomes?')) requests.push(request.url());
    });
    await browsing().logIn(service().credentials, 'tasks');
    const row = page.getByRole('row', { name: /Without paper/ });
    await row.getByRole('group', { name: 'Last 2 runs, 2 failed' }).waitFor();
    await row.getByText('failing, 2 in a row').waitFor();
    await row.getByRole('cell', { name: 'admin', exact: true }).waitFor();
    await row.getByRole('cell', { name: /^[\d.]+ m?s$/ }).waitFor();
    await row.getByText('at 05:00, on day 1').or(row.getByText(/05:00/)).first().waitFor();
    await row.getByText(/^in \d+ (days?|h|min|s)$/).waitFor();
    await page
      .getByRole('row', { name: /With paper/ })
      .getByText('ok')
      .waitFor();
    // One request for all rows.
    expect(requests[0]).to.include(failing).and.to.include(fine);
    await browsing().expectAccessible();
    await row.getByRole('link', { name: 'failed' }).first().click();
    await page.getByRole('heading', { level: 1, name: 'Run of Without paper' }).waitFor();
    expect(complaints).to.deep.equal([]);
  });

  it('is sorted by its headings and filtered by chips, which can be saved as a view', async () => {
    const { page, complaints } = browsing();
    await makeTask('Zebra', { tags: ['animals'] });
    await makeTask('Ant', { tags: ['animals'] });
    await browsing().logIn(service().credentials, 'tasks?tag=animals');
    await page.getByText('2 tasks', { exact: true }).waitFor();
    const names = page.locator('td a.name');
    expect(await names.allTextContents()).to.deep.equal(['Ant', 'Zebra']);
    await makeTask('Bear', { tags: ['animals'] });
    await page.getByRole('button', { name: 'Sort by name' }).click();
    // The list may be read by itself before its order changes.
    await eventually(async () => (await names.allTextContents()).join() === 'Ant,Bear,Zebra');
    expect(page.url()).to.include('sort=title');
    await page.getByRole('button', { name: 'Mine' }).click();
    await page.getByRole('button', { name: 'owned by admin, remove' }).waitFor();
    await page.getByRole('button', { name: 'Save this view' }).click();
    await page.getByRole('dialog').getByLabel('Name').fill('My animals');
    await browsing().answer('Save');
    await browsing().expectAccessible();
    for (const chip of [/^tagged/, /^owned/, /^sorted/]) {
      await page.getByRole('button', { name: chip }).and(page.locator('.chip')).click();
    }
    await page.locator('.chip').first().waitFor({ state: 'detached' });
    await page.reload();
    await page.getByRole('link', { name: 'My animals' }).click();
    await page.getByText('3 tasks', { exact: true }).waitFor();
    expect(await names.allTextContents()).to.deep.equal(['Ant', 'Bear', 'Zebra']);
    await page.getByRole('button', { name: 'Forget the view My animals' }).click();
    await page.getByRole('link', { name: 'My animals' }).waitFor({ state: 'detached' });
    expect(complaints).to.deep.equal([]);
  });

  it('is sorted by health, p95 and owner over all its pages', async () => {
    const { page, complaints } = browsing();
    const tags = ['many'];
    const pipelineOf = (uses: string, arguments_: object) => ({
      tags,
      max_retries: 0,
      payload: { pipeline: [{ uses, with: arguments_ }] },
    });
    const made = await service().client.post('/agents', { name: 'Aaron', scopes: ['tasks:write'] });
    await makeTask('Of Aaron', { tags, created_by: made.textAt('id') });
    await run(await makeTask('Broken long ago', pipelineOf('fail', { message: 'no ink' })));
    await run(await makeTask('Slow', pipelineOf('sleep', { seconds: 3 })));
    await Promise.all(Array.from({ length: 25 }, (_, n) => makeTask(`Idle ${n}`, { tags })));
    await browsing().logIn(service().credentials, 'tasks?tag=many');
    await page.getByText('28 tasks, page 1').waitFor();
    const first = page.locator('tbody tr').first();
    const sort = (name: string) => page.getByRole('button', { name: `Sort by ${name}` }).click();
    // All three are on the second page of the newest tasks.
    expect(await page.getByRole('link', { name: /^(Broken|Slow|Of Aaron)/ }).count()).to.equal(0);
    await sort('health');
    await first.getByText('Broken long ago').waitFor();
    await first.getByText('failing').waitFor();
    expect(page.url()).to.include('sort=health');
    await page.getByRole('button', { name: 'sorted by health, worst first, remove' }).waitFor();
    await sort('p95');
    await first.getByText('Slow').waitFor();
    await sort('owner');
    await first.getByText('Of Aaron').waitFor();
    await page.getByRole('button', { name: 'Next', exact: true }).click();
    await page.getByText('28 tasks, page 2').waitFor();
    await page.reload();
    await page.getByRole('link', { name: 'Broken long ago' }).waitFor();
    await browsing().expectAccessible();
    expect(complaints).to.deep.equal([]);
  });

  it('sends commands only to ticked tasks, after showing their number', async () => {
    const { page, complaints } = browsing();
    const tag = { tags: ['bulk'] };
    const [one, two, three] = [
      await makeTask('Bulk one', tag),
      await makeTask('Bulk two', tag),
      await makeTask('Bulk three', tag),
    ];
    await browsing().logIn(service().credentials, 'tasks?tag=bulk');
    const command = async (name: string): Promise<void> => {
      await page.getByRole('button', { name: `${name} …`, exact: true }).click();
    };
    const dialog = page.getByRole('dialog');
    await page.getByRole('checkbox', { name: 'Select Bulk one' }).check();
    await page.getByRole('checkbox', { name: 'Select Bulk two' }).check();
    await page.getByText('2 tasks selected').waitFor();
    await command('Pause');
    const asked = dialog.getByRole('button', { name: 'Pause', exact: true });
    expect(await asked.isDisabled()).to.equal(true);
    await dialog.getByLabel('Why').fill('a holiday');
    await dialog.getByLabel('Why').press('Enter');
    await dialog.getByText('Bulk one').waitFor();
    expect(await statusOf(one)).to.equal('active');
    await browsing().expectAccessible();
    await browsing().answer('Pause 2 tasks');
    await page.getByText('by admin').nth(1).waitFor();
    expect(await Promise.all([one, two, three].map(statusOf))).to.deep.equal([
      ...['paused', 'paused', 'active'],
    ]);
    await page.getByText('a holiday').first().waitFor();
    await page.getByRole('checkbox', { name: 'Select all tasks of this page' }).check();
    await command('Resume');
    await dialog.getByRole('button', { name: 'Preview' }).click();
    await dialog.getByText('1 selected task is not paused and stays as it is.').waitFor();
    await browsing().answer('Resume 2 tasks');
    await page.getByRole('checkbox', { name: 'Select Bulk three' }).check();
    await command('Tag');
    await dialog.getByLabel('Add tags').fill('late, bulk');
    await dialog.getByRole('button', { name: 'Preview' }).click();
    await browsing().answer('Tag 1 task');
    await page
      .getByRole('row', { name: /Bulk three/ })
      .getByText('late')
      .waitFor();
    // A task that leaves the list is no longer selected.
    await page.getByRole('checkbox', { name: 'Select all tasks of this page' }).check();
    await page.getByText('3 tasks selected').waitFor();
    await page.getByLabel('Search in titles').fill('Bulk one');
    await page.getByText('1 task selected').waitFor();
    await command('Run');
    await dialog.getByRole('button', { name: 'Preview' }).click();
    await browsing().answer('Run 1 task');
    await page.getByRole('group', { name: /^Last 1 runs?/ }).waitFor();
    await page.getByRole('checkbox', { name: 'Select Bulk one' }).check();
    await command('Cancel');
    await dialog.getByRole('button', { name: 'Preview' }).click();
    await browsing().answer('Cancel 1 task', 'no longer needed');
    await page.getByRole('cell', { name: 'canceled' }).waitFor();
    expect(await Promise.all([one, two, three].map(statusOf))).to.deep.equal([
      ...['canceled', 'active', 'active'],
    ]);
    expect(complaints).to.deep.equal([]);
  });

  it('sends a command that some tasks refused again only to those tasks', async () => {
    const { page } = browsing();
    const tag = { tags: ['partly'] };
    const ids = [await makeTask('Partly one', tag), await makeTask('Partly two', tag)];
    const refusing = await makeTask('Partly three', tag);
    await browsing().logIn(service().credentials, 'tasks?tag=partly');
    const commands = (): string[] => sent.map((path) => path.split('/').at(-2) ?? '').toSorted();
    const sent: string[] = [];
    page.on('request', (request) => {
      const { pathname } = new URL(request.url());
      if (pathname.endsWith('/run_now')) sent.push(pathname);
    });
    const refuse = { status: 409, json: { error: 'conflict', message: 'it is being moved' } };
    await page.route(`**/tasks/${refusing}/run_now`, (route) => route.fulfill(refuse));
    const dialog = page.getByRole('dialog');
    const run = async (count: string): Promise<void> => {
      const button = page.getByRole('button', { name: 'Run …', exact: true });
      // After a dialog it does nothing until the list was read again.
      await button.and(page.locator('[aria-busy=false]')).click();
      await dialog.getByRole('button', { name: 'Preview' }).click();
      await dialog.getByRole('button', { name: `Run ${count}` }).click();
    };
    await page.getByRole('checkbox', { name: 'Select all tasks of this page' }).check();
    await run('3 tasks');
    await dialog.getByText('2 of 3 tasks done. Partly three: it is being moved').waitFor();
    expect(commands()).to.deep.equal([...ids, refusing].toSorted());
    expect(await dialog.getByRole('button', { name: 'Run', exact: true }).isDisabled()).to.equal(
      true,
    );
    await browsing().expectAccessible();
    sent.length = 0;
    await dialog.getByRole('button', { name: 'Preview' }).click();
    const again = dialog.getByRole('button', { name: 'Run 1 task' });
    await again.waitFor();
    expect(await dialog.getByText('Partly one').count()).to.equal(0);
    await again.click();
    await dialog.getByText('0 of 1 task done. Partly three: it is being moved').waitFor();
    expect(commands()).to.deep.equal([refusing]);
    // Only the tasks that refused stay selected.
    await dialog.getByRole('button', { name: 'Cancel', exact: true }).click();
    await page.getByText('1 task selected').waitFor();
    await page.unroute(`**/tasks/${refusing}/run_now`);
    sent.length = 0;
    await run('1 task');
    await dialog.waitFor({ state: 'detached' });
    expect(commands()).to.deep.equal([refusing]);
    await page.getByText('1 task selected').waitFor({ state: 'detached' });
  });
});
