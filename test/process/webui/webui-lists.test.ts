import { expect } from 'chai';
import { useBrowser } from './webui-browser.ts';
import { useService } from './webui-service.ts';

/** More than the time between two reads of a list. Milliseconds. */
const BEAT = 6000;

describe('a list of the web page', function () {
  this.timeout(300_000);
  const service = useService();
  const browsing = useBrowser(() => service().process.address);

  async function makeTask(title: string): Promise<void> {
    const { status, text } = await service().client.post('/tasks', {
      title,
      description: 'Listed',
      created_by: service().credentials.agent_id,
      schedule_kind: 'event',
      schedule_expr: 'never.published',
      payload: { pipeline: [] },
    });
    expect(status, text).to.equal(201);
  }

  /** Opens the list of tasks, and stops the clock once the list is shown. */
  async function openTasks(): Promise<void> {
    const { page } = browsing();
    await page.clock.install();
    await browsing().logIn(service().credentials, 'tasks');
    await page.locator('.live[data-how=live]').waitFor();
  }

  it('updates itself when others add something', async () => {
    const { page, complaints } = browsing();
    await openTasks();
    await makeTask('Added meanwhile');
    await page.clock.runFor(BEAT);
    await page.getByRole('link', { name: 'Added meanwhile' }).waitFor();
    await browsing().expectAccessible();
    expect(complaints).to.deep.equal([]);
  });

  it('does not change while it is paused, and says so', async () => {
    const { page } = browsing();
    await makeTask('Seen before the pause');
    await openTasks();
    await page
      .getByRole('row', { name: /Seen before the pause/ })
      .getByText('none yet')
      .waitFor();
    await page.getByRole('button', { name: 'Pause updates' }).click();
    await page.locator('.live[data-how=paused]').waitFor();
    let reads = 0;
    page.on('request', (request) => {
      if (/\/tasks(\/outcomes)?\?/.test(request.url())) reads += 1;
    });
    await makeTask('Added in the pause');
    await page.clock.runFor(BEAT);
    expect(reads).to.equal(0);
    expect(await page.getByRole('link', { name: 'Added in the pause' }).count()).to.equal(0);
    await page.getByRole('button', { name: 'Resume updates' }).click();
    await page.clock.runFor(BEAT);
    await page.getByRole('link', { name: 'Added in the pause' }).waitFor();
  });

  it('keeps its rows while the service can’t answer, says that it is not live, and recovers', async () => {
    const { page } = browsing();
    await makeTask('There before');
    await openTasks();
    const refuse = { status: 503, json: { error: 'unavailable', message: 'starting' } };
    await page.route('**/tasks?*', (route) => route.fulfill(refuse));
    await page.clock.runFor(BEAT);
    await page.locator('.live[data-how=lost]').waitFor();
    await page.getByRole('link', { name: 'There before' }).waitFor();
    await page.unroute('**/tasks?*');
    await page.clock.runFor(BEAT);
    await page.locator('.live[data-how=live]').waitFor();
  });

  it('recovers by itself if it could not be read at first', async () => {
    const { page } = browsing();
    await page.clock.install();
    const refuse = { status: 503, json: { error: 'unavailable', message: 'starting' } };
    await page.route('**/tasks?*', (route) => route.fulfill(refuse));
    await browsing().logIn(service().credentials, 'tasks');
    await page.getByRole('alert').getByText('starting').waitFor();
    await page.unroute('**/tasks?*');
    await page.clock.runFor(BEAT);
    await page.locator('.live[data-how=live]').waitFor();
  });

  it('is not refreshed while text is selected', async () => {
    const { page } = browsing();
    await makeTask('Selected');
    await openTasks();
    await page.getByRole('link', { name: 'Selected' }).waitFor();
    const select = `getSelection().selectAllChildren([...document.querySelectorAll('td a')]
      .find(({ textContent }) => textContent === 'Selected'))`;
    await page.evaluate(select);
    await makeTask('Added beside a selection');
    await page.clock.runFor(BEAT);
    expect(await page.evaluate<string>('String(getSelection())')).to.equal('Selected');
    expect(await page.getByRole('link', { name: 'Added beside a selection' }).count()).to.equal(0);
    await page.evaluate('getSelection().removeAllRanges()');
    await page.clock.runFor(BEAT);
    await page.getByRole('link', { name: 'Added beside a selection' }).waitFor();
  });

  it('keeps a relative time while it is selected', async () => {
    const { page } = browsing();
    await makeTask('Has a time');
    await openTasks();
    await page.getByRole('link', { name: 'Has a time' }).click();
    await page
      .getByRole('definition')
      .getByText(/^now|\d+ s ago$/)
      .last()
      .waitFor();
    const times = `[...document.querySelectorAll('dd .soft time')]`;
    const select = `getSelection().selectAllChildren(${times}.at(-1)); String(getSelection())`;
    const selected = await page.evaluate<string>(select);
    expect(selected).to.match(/^now$|ago$/);
    // Other changes of the page do not touch it either.
    const { client } = service();
    const id = new URL(page.url()).hash.split('/').at(-1) ?? '';
    const live = page.locator('.live[data-how=live]');
    await live.waitFor();
    expect((await client.post(`/tasks/${id}/run_now?wait=20`)).status).to.equal(200);
    const looked = page.waitForResponse('**/operations');
    await page.clock.runFor(2 * BEAT);
    await (await looked).finished();
    await page.clock.runFor(10);
    expect(await page.evaluate<string>('String(getSelection())')).to.equal(selected);
    await page.evaluate('getSelection().removeAllRanges()');
    await page.clock.runFor(2000);
    expect(await page.evaluate<string>(`${times}.at(-1).textContent`)).not.to.equal(selected);
  });

  it('of streams is read again only on request, because each read is recorded', async () => {
    const { page } = browsing();
    await page.clock.install();
    await browsing().logIn(service().credentials, 'system/streams');
    await page.locator('.live[data-how=refused]').waitFor();
    let reads = 0;
    page.on('request', (request) => {
      if (request.url().includes('/streams?')) reads += 1;
    });
    await page.clock.runFor(BEAT);
    expect(reads).to.equal(0);
    const read = page.waitForResponse('**/streams?*');
    await page.getByRole('button', { name: 'Refresh' }).click();
    await read;
  });

  it('finds tasks and failed runs, and retries one or many of them', async () => {
    const { page, complaints } = browsing();
    await browsing().logIn(service().credentials);
    await browsing().create('Bound to fail', [
      { id: 'stop', uses: 'fail', with: { message: 'no paper', retryable: false } },
    ]);
    await page.getByRole('button', { name: 'Run now' }).click();
    await page.getByRole('button', { name: 'Retry from the start' }).click();
    await page.getByText('Retry of').waitFor();
    await page.getByRole('button', { name: 'Retry from the start' }).waitFor();
    await page.getByRole('navigation').getByRole('link', { name: 'Tasks' }).click();
    await page.getByLabel('Search in titles').fill('bound to');
    await page.getByText('1 task', { exact: true }).waitFor();
    await page.waitForURL(/search=bound\+to/);
    await page.getByRole('link', { name: 'Bound to fail' }).waitFor();
    await browsing().expectAccessible();
    await page.getByRole('navigation').getByRole('link', { name: 'Overview' }).click();
    await page.getByText('live', { exact: true }).waitFor();
    await page
      .getByRole('cell', { name: /no paper/ })
      .first()
      .waitFor();
    await browsing().expectAccessible();
    await page.getByRole('navigation').getByRole('link', { name: 'Runs' }).click();
    await page.getByLabel('State').selectOption('failed');
    await page.getByText('2 runs', { exact: true }).waitFor();
    await page.getByRole('button', { name: 'Retry failed runs …' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByLabel('Error contains').fill('NO PAPER');
    expect(await dialog.getByRole('button', { name: 'Retry runs' }).isDisabled()).to.equal(true);
    await dialog.getByLabel('Error contains').press('Enter');
    await dialog.getByText('1 would be retried').waitFor();
    await browsing().expectAccessible();
    await dialog.getByLabel('Error contains').fill('no ink');
    await dialog.getByLabel('Error contains').press('Enter');
    await dialog.getByText('0 would be retried').waitFor();
    expect(await dialog.getByRole('button', { name: 'Retry runs' }).isDisabled()).to.equal(true);
    await dialog.getByLabel('Error contains').fill('no paper');
    await dialog.getByLabel('Error contains').press('Enter');
    await browsing().answer('Retry 1 run', 'there is paper now');
    await page
      .getByText('3 runs', { exact: true })
      .or(page.getByText('1 run is retried'))
      .first()
      .waitFor();
    await browsing().expectAccessible();
    expect(complaints).to.deep.equal([]);
  });
});
