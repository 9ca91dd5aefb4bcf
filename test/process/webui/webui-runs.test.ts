import { expect } from 'chai';
import type { Locator } from 'playwright-core';
import { eventually } from '../../support/signals.ts';
import { useBrowser } from './webui-browser.ts';
import { useService } from './webui-service.ts';

/** More than the time between two reads of a list. Milliseconds. */
const BEAT = 6000;

describe('the list of runs in the web page', function () {
  this.timeout(300_000);
  const service = useService();
  const browsing = useBrowser(() => service().process.address);

  /** Creates an event task. @returns its id */
  async function task(
    title: string,
    pipeline: readonly object[],
    topic = 'never.published',
    fields: object = {},
  ) {
    const made = await service().client.post('/tasks', {
      title,
      description: '-',
      schedule_kind: 'event',
      schedule_expr: topic,
      created_by: service().credentials.agent_id,
      payload: { pipeline },
      max_retries: 0,
      ...fields,
    });
    expect(made.status, made.text).to.equal(201);
    return made.textAt('id');
  }
  /** Runs a task, and waits for its end if that comes soon. @returns the run's id */
  async function run(id: string, params: object = {}, wait = 20): Promise<string> {
    const ran = await service().client.post(`/tasks/${id}/run_now?wait=${wait}`, { params });
    return ran.textAt('details.run_id');
  }
  const failing = (message: string) => [
    { id: 'stop', uses: 'fail', with: { message, retryable: false } },
  ];
  const listed = (id: string): Locator =>
    browsing().page.getByRole('link', { name: id.slice(0, 8), exact: true });
  const search = async (by: string, text: string): Promise<void> => {
    const { page } = browsing();
    await page.getByLabel('Search in', { exact: true }).selectOption({ label: by });
    await page.getByLabel('Search for', { exact: true }).fill(text);
  };

  it('is searched by id, error, input, event and task, and keeps the search in its address', async () => {
    const { page, complaints } = browsing();
    const printing = await task('Prints labels', failing('no paper in tray 7'));
    const printed = await run(printing);
    const counting = await task('Counts stock', [{ uses: 'echo' }], 'stock.changed');
    const counted = await run(counting, { shelf: 'Näslund-9' });
    const { credentials, client } = service();
    const event = {
      topic: 'stock.changed',
      payload: { n: 1 },
      source_agent_id: credentials.agent_id,
    };
    const published = await client.post('/events', event);
    await browsing().logIn(credentials, 'runs');
    await listed(printed).waitFor();
    await search('run id', printed.slice(0, 8).toUpperCase());
    await listed(counted).waitFor({ state: 'detached' });
    await listed(printed).waitFor();
    await search('run id', 'x');
    await page.getByText('Enter at least 4 characters of a run id: 0-9, a-f and -.').waitFor();
    await search('error', 'PAPER IN TRAY');
    await listed(printed).waitFor();
    expect(new URL(page.url()).hash).to.equal('#/runs?by=error&q=PAPER+IN+TRAY');
    await page.reload();
    await listed(printed).waitFor();
    expect(await page.getByLabel('Search for', { exact: true }).inputValue()).to.equal(
      'PAPER IN TRAY',
    );
    await browsing().expectAccessible();
    await search('input', 'näslund-9');
    await listed(counted).waitFor();
    await search('event id', published.textAt('details.event_id'));
    await page.getByRole('row', { name: /Counts stock.*event/ }).waitFor();
    await listed(counted).waitFor({ state: 'detached' });
    await search('task', 'prints');
    await listed(printed).waitFor();
    await page.locator('.view-head').getByRole('link', { name: 'Prints labels' }).waitFor();
    await task('Prints invoices', [{ uses: 'echo' }]);
    await search('task', 'PRINTS ');
    await page.getByRole('link', { name: 'Prints invoices' }).waitFor();
    await page.getByRole('link', { name: 'Prints labels' }).click();
    await listed(printed).waitFor();
    expect(complaints).to.deep.equal([]);
  });

  it('has quick ranges and a custom span', async () => {
    const { page, complaints } = browsing();
    const id = await run(await task('Ran just now', [{ uses: 'echo' }]));
    await browsing().logIn(service().credentials, 'runs');
    await listed(id).waitFor();
    const asked = page.waitForRequest((request) => /\/runs\?.*start_time=/.test(request.url()));
    await page.getByLabel('Started', { exact: true }).selectOption({ label: 'last hour' });
    const from = new URL((await asked).url()).searchParams.get('start_time') ?? '';
    expect(Date.now() - Date.parse(from)).to.be.within(3_500_000, 3_700_000);
    await listed(id).waitFor();
    await page.waitForURL(/#\/runs\?range=hour$/);
    await page.getByLabel('Started', { exact: true }).selectOption({ label: 'from … to …' });
    await page.getByLabel('Started before').fill('2026-01-01T00:00:00');
    await page.getByText('No run matches.').waitFor();
    await browsing().expectAccessible();
    expect(complaints).to.deep.equal([]);
  });

  it('lists the runs with an error, names the error, and sends commands only to those runs', async () => {
    const { page, complaints } = browsing();
    const { client } = service();
    const ids = await task('Orders', failing('order ${params.n} is unknown'));
    const [one, two] = [await run(ids, { n: 1 }), await run(ids, { n: 2 })];
    const other = await run(await task('Labels', failing('no glue')));
    const pipeline = [{ uses: 'fail', with: { message: '${params.message}' } }];
    const patient = await task('Patient', pipeline, 'never.published', {
      max_retries: 1,
      backoff_strategy: 'fixed',
      retry_delay_seconds: 3600,
    });
    const waiting = await run(patient, { message: 'order 3 is unknown' }, 0);
    const unconcerned = await run(patient, { message: 'no string' }, 0);
    const stateOf = async (id: string): Promise<unknown> =>
      (await client.get(`/runs/${id}`)).at('state');
    await eventually(async () => (await stateOf(waiting)) === 'retrying');
    await eventually(async () => (await stateOf(unconcerned)) === 'retrying');
    await browsing().logIn(service().credentials);
    const group = page.getByRole('row', { name: /order <n> is unknown/ });
    await group.getByRole('link', { name: '2', exact: true }).click();
    const chip = page.getByRole('button', { name: 'error “order <n> is unknown”, remove' });
    await chip.waitFor();
    await listed(one).waitFor();
    await listed(two).waitFor();
    expect(await listed(other).count()).to.equal(0);
    expect(page.url()).to.match(/error_group=[0-9a-f]{16}/);
    await page.reload();
    await chip.waitFor();
    await browsing().expectAccessible();
    await page.getByRole('button', { name: 'Retry failed runs …' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByText(/only error “order <n> is unknown”/).waitFor();
    await dialog.getByLabel('At most').press('Enter');
    await dialog.getByText('2 would be retried').waitFor();
    await browsing().answer('Retry 2 runs', 'they are known now');
    await page.getByText('2 runs are retried').waitFor();
    expect((await client.get(`/runs/${other}`)).at('retried_by')).to.equal(null);
    await page.getByLabel('State', { exact: true }).selectOption('');
    await listed(waiting).waitFor();
    await page.getByRole('button', { name: 'Cancel unfinished runs …' }).click();
    await dialog.getByLabel('At most').press('Enter');
    await dialog.getByText(/1 would be canceled/).waitFor();
    await browsing().answer('Cancel 1 run', 'no longer needed');
    await eventually(async () => (await stateOf(waiting)) === 'canceled');
    expect(await stateOf(unconcerned)).to.equal('retrying');
    await chip.click();
    await listed(other).waitFor();
    expect(page.url()).not.to.include('error_group');
    expect(complaints).to.deep.equal([]);
  });

  it('shows new runs by itself', async () => {
    const { page, complaints } = browsing();
    const id = await task('Comes later', [{ uses: 'echo' }]);
    await page.clock.install();
    await browsing().logIn(service().credentials, `runs?task_id=${id}`);
    await page.getByText('No run matches.').waitFor();
    const later = await run(id);
    await page.clock.runFor(BEAT);
    await listed(later).waitFor();
    expect(complaints).to.deep.equal([]);
  });

  it('retries and cancels the ticked runs, after showing their number', async () => {
    const { page, complaints } = browsing();
    const id = await task('Breaks', failing('no ink'));
    const [one, two, three] = [await run(id), await run(id), await run(id)];
    await browsing().logIn(service().credentials, `runs?task_id=${id}`);
    await page.getByLabel(`Tick run ${one.slice(0, 8)}`).check();
    await page.getByLabel(`Tick run ${three.slice(0, 8)}`).press('Space');
    await browsing().expectAccessible();
    await page.getByRole('button', { name: 'Retry 2 ticked runs …' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByText('Retry 2 ticked runs.').waitFor();
    await dialog.getByLabel('At most').press('Enter');
    await dialog.getByText('2 would be retried').waitFor();
    await browsing().answer('Retry 2 runs', 'there is ink');
    await page.getByText('5 runs', { exact: true }).waitFor();
    const { client } = service();
    expect((await client.get(`/runs/${two}`)).at('retried_by')).to.equal(null);
    expect((await client.get(`/runs/${three}`)).at('retried_by')).to.be.a('string');
    const failed = `/runs?task_id=${id}&state=failed`;
    await eventually(async () => (await client.get(failed)).at('total') === 5);
    await page.getByLabel('Tick all runs of this page').check();
    await page.getByRole('button', { name: 'Cancel 5 ticked runs …' }).click();
    await dialog.getByLabel('At most').press('Enter');
    await dialog.getByText('0 would be canceled; left out: 5 ended').waitFor();
    expect(await dialog.getByRole('button', { name: 'Cancel runs' }).isDisabled()).to.equal(true);
    await dialog.getByRole('button', { name: 'Back' }).click();
    expect(complaints).to.deep.equal([]);
  });

  it('offers commands for all matching runs only while a search by task has found one task', async () => {
    const { page, complaints } = browsing();
    const one = await task('Weighs parcels', failing('no scales'));
    const failed = await run(one);
    await task('Weighs letters', failing('no scales'));
    await browsing().logIn(service().credentials, 'runs');
    const retry = page.getByRole('button', { name: 'Retry failed runs …' });
    const cancel = page.getByRole('button', { name: 'Cancel unfinished runs …' });
    const expectNone = async (): Promise<void> => {
      expect(await retry.count()).to.equal(0);
      expect(await cancel.count()).to.equal(0);
    };
    await retry.waitFor();
    await cancel.waitFor();
    await search('task', 'weighs nothing');
    await page.getByText('No task has that in its title.').waitFor();
    await expectNone();
    await search('task', 'weighs');
    await page.getByText('Choose a task to see its runs.').waitFor();
    await expectNone();
    await search('run id', 'x');
    await page.getByText('Enter at least 4 characters of a run id').waitFor();
    await page.getByText('No run matches.').waitFor();
    await expectNone();
    await search('task', 'weighs p');
    await listed(failed).waitFor();
    await retry.click();
    const dialog = page.getByRole('dialog');
    await dialog.getByText('Retry runs of Weighs parcels').waitFor();
    await dialog.getByLabel('At most').press('Enter');
    await dialog.getByText('1 would be retried').waitFor();
    await dialog.getByRole('button', { name: 'Cancel', exact: true }).click();
    expect(complaints).to.deep.equal([]);
  });

  it('offers no commands for all matching runs until the list for the present filters was read', async () => {
    const { page } = browsing();
    const id = await task('Seals letters', failing('no wax'));
    const failed = await run(id);
    const retry = page.getByRole('button', { name: 'Retry failed runs …' });
    const refuse = { status: 503, json: { error: 'unavailable', message: 'starting' } };
    const refused = '**/tasks?*search=seals*';
    await page.route(refused, (route) => route.fulfill(refuse));
    await browsing().logIn(service().credentials, 'runs');
    await listed(failed).waitFor();
    await retry.waitFor();
    const asked = page.waitForResponse(refused);
    await search('task', 'seals');
    // The runs of all tasks are still shown.
    await asked;
    await retry.waitFor({ state: 'detached' });
    await page.getByLabel(`Tick run ${failed.slice(0, 8)}`).check();
    await page.getByRole('button', { name: 'Retry 1 ticked run …' }).waitFor();
    await page.unroute(refused);
    await page.getByText(/^of Seals letters/).waitFor();
    await page.getByLabel(`Tick run ${failed.slice(0, 8)}`).uncheck();
    await retry.waitFor();
  });

  it('cancels all unfinished runs that match its filters, and no others', async () => {
    const { page, complaints } = browsing();
    const waits = [{ uses: 'wait.event', with: { topic: 'go.never' } }];
    const id = await task('Waits long', waits);
    const [north, south] = [
      await run(id, { shop: 'in the north' }, 0),
      await run(id, { shop: 'in the south' }, 0),
    ];
    const { client } = service();
    expect((await client.post('/namespaces', { name: 'branch' })).status).to.equal(201);
    await browsing().logIn(service().credentials, `runs?task_id=${id}`);
    await page
      .getByRole('row', { name: /waiting/ })
      .nth(1)
      .waitFor();
    await search('input', 'the north');
    await listed(south).waitFor({ state: 'detached' });
    await page.getByRole('button', { name: 'Cancel unfinished runs …' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByText('only input “the north”').waitFor();
    await dialog.getByLabel('At most').press('Enter');
    await dialog.getByText('1 would be canceled').waitFor();
    await browsing().answer('Cancel 1 run', 'not needed');
    await page.getByRole('row', { name: /canceled/ }).waitFor();
    expect((await client.get(`/runs/${north}`)).at('state')).to.equal('canceled');
    await search('input', 'the south');
    await listed(south).waitFor();
    await page.getByLabel('Namespace', { exact: true }).selectOption('branch');
    await listed(south).waitFor({ state: 'detached' });
    await page.getByRole('button', { name: 'Cancel unfinished runs …' }).click();
    await dialog.getByLabel('At most').press('Enter');
    await dialog.getByText('0 would be canceled').waitFor();
    expect((await client.get(`/runs/${south}`)).at('state')).to.equal('waiting');
    await client.post(`/tasks/${id}/cancel`);
    expect(complaints).to.deep.equal([]);
  });
});
