import { readFileSync } from 'node:fs';
import { expect } from 'chai';
import type { Locator } from 'playwright-core';
import { StepServer } from '../step-server.ts';
import { useBrowser } from './webui-browser.ts';
import { useService } from './webui-service.ts';
import { slowAfter } from './webui-slow-step.ts';

describe('a run in two panes, in the web page', function () {
  this.timeout(300_000);
  const service = useService({ SVC_HTTP_ALLOW_PRIVATE: 'true' });
  const browsing = useBrowser(() => service().process.address);
  let server: StepServer;
  before(async () => {
    server = await StepServer.start();
  });
  after(() => server.close());

  /** Creates an event task that nobody triggers. @returns its id */
  async function task(pipeline: readonly object[], fields: object = {}): Promise<string> {
    const made = await service().client.post('/tasks', {
      title: 'Ship an order',
      description: '-',
      schedule_kind: 'event',
      max_retries: 0,
      schedule_expr: 'never.published',
      created_by: service().credentials.agent_id,
      payload: { pipeline },
      ...fields,
    });
    expect(made.status, made.text).to.equal(201);
    return made.textAt('id');
  }
  /** Runs a task, and waits for its end if that comes soon. @returns the run's id */
  async function run(id: string, wait = 20, body: object = {}): Promise<string> {
    const ran = await service().client.post(`/tasks/${id}/run_now?wait=${wait}`, body);
    return ran.textAt('details.run_id');
  }
  const row = (step: string): Locator =>
    browsing()
      .page.getByRole('list', { name: 'Attempts and steps over time' })
      .getByRole('listitem')
      .filter({ has: browsing().page.getByTitle(step, { exact: true }) });
  const state = (step: string, word: string): Promise<void> =>
    row(step).locator('.word', { hasText: word }).waitFor();
  const inPane = (name: string): Locator => browsing().page.getByRole('region', { name });
  const ends = (how: string): Promise<void> =>
    browsing().page.locator('.view-head .state', { hasText: how }).waitFor();

  it('marks reused results of a retry, and links to the run that they are from', async () => {
    const { page, complaints } = browsing();
    const id = await task([
      { id: 'load', uses: 'echo', with: { rows: [1, 2] } },
      { id: 'print', uses: 'fail', with: { message: 'no paper', retryable: false } },
    ]);
    const failed = await run(id);
    await browsing().logIn(service().credentials, `runs/${failed}`);
    // The failed step is chosen at first.
    await inPane('Error of print').getByText('no paper').waitFor();
    await page.getByRole('button', { name: 'Retry from the failed step' }).click();
    await page.getByText(`retried run ${failed}`).waitFor();
    await ends('failed');
    await state('load', 'reused');
    await state('print', 'failed');
    expect(await row('load').locator('.bar').count()).to.equal(0);
    expect(await row('print').locator('.bar').count()).to.equal(1);
    await row('load').getByRole('link').click();
    await inPane('Result of load').getByText('"rows"').waitFor();
    await page.locator('dt', { hasText: 'Reused from' }).waitFor();
    await browsing().expectAccessible();
    await page.getByRole('link', { name: '← Previous run' }).click();
    await page.getByRole('link', { name: 'Next run →' }).waitFor();
    expect(new URL(page.url()).hash).to.contain(`#/runs/${failed}`);
    expect(complaints).to.deep.equal([]);
  });

  it('shows running and pending steps, with parallel ones in their group', async () => {
    const { page, complaints } = browsing();
    const id = await task([
      { id: 'load', uses: 'echo' },
      {
        id: 'both',
        parallel: [
          {
            id: 'left',
            uses: 'http.request',
            with: { url: server.heldUrl },
            // Longer than the test.
            timeout_seconds: 600,
          },
          { id: 'right', uses: 'wait.event', with: { topic: 'go.right' } },
        ],
      },
      { id: 'send', uses: 'echo' },
    ]);
    const open = await run(id, 0);
    await server.held.wait();
    await browsing().logIn(service().credentials, `runs/${open}`);
    await state('left', 'running');
    await state('right', 'waiting');
    await state('both', 'running');
    await state('send', 'pending');
    const names = await page.locator('.waterfall .label').allTextContents();
    expect(names).to.deep.equal(['Run', 'load', 'both', 'left', 'right', 'send']);
    const level = (step: string) => row(step).getAttribute('class');
    expect(await Promise.all(['both', 'left', 'send'].map(level))).to.deep.equal([
      ...['level-1', 'level-2', 'level-1'],
    ]);
    expect(await row('left').locator('.bar.busy').count()).to.equal(1);
    server.release();
    await row('left').locator('.bar.good').waitFor();
    await state('both', 'waiting');
    await page.getByRole('button', { name: 'Cancel the run' }).click();
    await browsing().answer('Cancel the run', 'the order is void');
    await state('send', 'did not end');
    await ends('canceled');
    expect(complaints).to.deep.equal([]);
  });

  it('opens at the step and the view in its address, with the input and output of the step', async () => {
    const { page, complaints } = browsing();
    const fields = {
      payload: {
        params: { shop: 'north' },
        pipeline: [
          { id: 'load', uses: 'echo', with: { of: '${params.shop}' } },
          { id: 'count', uses: 'echo', with: { found: '${steps.load.of}' } },
        ],
      },
    };
    const done = await run(await task([], fields), 20, { params: { shop: 'south' } });
    await browsing().logIn(service().credentials, `runs/${done}?step=count&view=graph`);
    await inPane('Input of count').getByText('"found": "south"').waitFor();
    await page.getByText('verified by its hash').waitFor();
    await inPane('Result of count').getByText('"found": "south"').waitFor();
    const graph = page.getByRole('region', { name: 'Graph of steps' });
    await graph.getByRole('link', { name: 'load' }).click();
    await inPane('Input of load').getByText('"of": "south"').waitFor();
    expect(new URL(page.url()).hash).to.equal(`#/runs/${done}?step=load&view=graph`);
    await browsing().expectAccessible();
    await page.getByRole('link', { name: 'Waterfall' }).click();
    await row('count').getByRole('link').press('Enter');
    await page.reload();
    await inPane('Input of count').waitFor();
    await row('Run').getByRole('link').click();
    await inPane('Params').getByText('"shop": "south"').waitFor();
    expect(complaints).to.deep.equal([]);
  });

  it('shows the input of a step that reads a large payload of the triggering event', async () => {
    const { page } = browsing();
    const fields = { schedule_expr: 'orders.paid' };
    const pipeline = [{ id: 'load', uses: 'echo', with: { of: '${event.payload.order}' } }];
    // Their runs share the payload.
    await task(pipeline, fields);
    await task(pipeline, fields);
    const { client, credentials } = service();
    const payload = { order: 'zx-81', rows: 'x'.repeat(50_000) };
    const event = { topic: 'orders.paid', payload, source_agent_id: credentials.agent_id };
    expect((await client.post('/events', event)).status).to.equal(202);
    await browsing().logIn(credentials, 'runs?trigger=event');
    await page
      .getByRole('row', { name: /succeeded/ })
      .getByRole('link')
      .first()
      .click();
    await row('load').getByRole('link').click();
    await inPane('Input of load').getByText('"of": "zx-81"').waitFor();
    await page.getByText('verified by its hash').waitFor();
  });

  it('filters its log by step, attempt and text, and saves it', async () => {
    const { page, complaints } = browsing();
    const say = (id: string, message: string) => ({ id, uses: 'log', with: { message } });
    const pipeline = [
      say('first', 'paper is loaded'),
      { id: 'print', uses: 'http.request', with: { url: 'http://127.0.0.1:9/' } },
    ];
    const id = await task(pipeline, { max_retries: 1, retry_delay_seconds: 1 });
    const twice = await run(id);
    await ends1(twice);
    await browsing().logIn(service().credentials, `runs/${twice}?step=`);
    const log = page.getByRole('log', { name: 'Log' });
    await log.getByText('paper is loaded').waitFor();
    await page.getByLabel('Attempt', { exact: true }).selectOption('2');
    await log.getByText('No line matches.').waitFor();
    await page.getByLabel('Attempt', { exact: true }).selectOption('1');
    await page.getByLabel('Search the log').fill('nothing such');
    await log.getByText('No line matches.').waitFor();
    await page.getByLabel('Search the log').fill('PAPER');
    await log.getByText('paper is loaded').waitFor();
    const saving = page.waitForEvent('download');
    await page.getByRole('button', { name: 'Download the log' }).click();
    const saved = readFileSync(await (await saving).path(), 'utf8');
    expect(saved).to.match(/^\S+Z info attempt=1 first: paper is loaded\n$/);
    await page.waitForURL(/[?&]find=PAPER/);
    await page.reload();
    await log.getByText('paper is loaded').waitFor();
    expect(await page.getByLabel('Search the log').inputValue()).to.equal('PAPER');
    expect(await page.getByLabel('Attempt', { exact: true }).inputValue()).to.equal('1');
    await row('print').getByRole('link').click();
    await log.getByText('No lines.').waitFor();
    await inPane('Attempts of print').getByRole('row').nth(2).waitFor();
    await row('first').getByRole('link').click();
    await log.getByText('paper is loaded').waitFor();
    expect(complaints).to.deep.equal([]);
  });

  /** Waits until a run has ended. */
  async function ends1(id: string): Promise<void> {
    await browsing().logIn(service().credentials, `runs/${id}`);
    await ends('failed');
  }

  it('says that a queued run waits for the hold, and who ordered it, when and why', async () => {
    const { page, complaints } = browsing();
    const id = await task([{ id: 'load', uses: 'echo' }]);
    const { client, credentials } = service();
    await client.post('/operations/hold', { reason: 'the disk is full' });
    const queued = await run(id, 0, { params: {} });
    await browsing().logIn(credentials, `runs/${queued}`);
    const why = page.locator('section', { hasText: 'Why it is blocked' });
    await why.getByText('The service is on hold').waitFor();
    await why.getByText('the disk is full').waitFor();
    await why.getByText('Ordered by').waitFor();
    await why.locator('time').first().waitFor();
    await browsing().expectAccessible();
    await client.post('/operations/release', {});
    await ends('succeeded');
    expect(await why.count()).to.equal(0);
    expect(complaints).to.deep.equal([]);
  });

  it('says that a queued run without an obstacle will start as soon as a worker takes it', async () => {
    const { page, complaints } = browsing();
    const id = await task([{ id: 'load', uses: 'echo' }]);
    const { client, credentials } = service();
    await client.post('/operations/hold', { reason: 'so that it stays in the queue' });
    const queued = await run(id, 0, { params: {} });
    await page.route('**/explain*', async (route) => {
      const response = await route.fetch();
      const explained = (await response.json()) as object;
      return route.fulfill({ response, json: { ...explained, waits_for: [] } });
    });
    await browsing().logIn(credentials, `runs/${queued}`);
    const why = page.locator('section', { hasText: 'Why it has not started' });
    await why.getByText('It will start as soon as a worker takes it.').waitFor();
    await browsing().expectAccessible();
    await page.unroute('**/explain*');
    await page.locator('section', { hasText: 'Why it is blocked' }).waitFor();
    await client.post('/operations/release', {});
    await ends('succeeded');
    await why.waitFor({ state: 'detached' });
    expect(complaints).to.deep.equal([]);
  });

  it('names the run that holds the key for which it waits', async () => {
    const { page } = browsing();
    const fields = { concurrency_key: 'printer', concurrency_limit: 1 };
    const id = await task([{ uses: 'wait.event', with: { topic: 'go.key' } }], fields);
    const holder = await run(id, 0);
    const waiter = await run(id, 0);
    await browsing().logIn(service().credentials, `runs/${waiter}`);
    const why = page.locator('section', { hasText: 'Why it is blocked' });
    await why.getByText('the concurrency key printer: 1 of 1 in use').waitFor();
    await why.getByRole('link', { name: holder.slice(0, 8) }).waitFor();
    await service().client.post(`/tasks/${id}/cancel`);
  });

  it('is retried from a chosen step with other params', async () => {
    const { page, complaints } = browsing();
    const pipeline = [
      { id: 'load', uses: 'echo', with: { of: '${params.shop}' } },
      { id: 'count', uses: 'echo', with: { found: '${params.shop}' } },
      { id: 'print', uses: 'fail', with: { message: 'no paper', retryable: false } },
    ];
    const id = await task([], { payload: { params: { shop: 'north', copies: 1 }, pipeline } });
    const failed = await run(id);
    await browsing().logIn(service().credentials, `runs/${failed}?step=count`);
    await page.getByRole('button', { name: 'Retry from this step …' }).click();
    const dialog = page.getByRole('dialog');
    expect(await dialog.getByLabel('From').inputValue()).to.equal('step count');
    await dialog.getByLabel('Params (JSON)').fill('{"shop": ');
    await dialog.getByRole('button', { name: 'Retry', exact: true }).click();
    await dialog.getByText('Params:').waitFor();
    await dialog.getByLabel('Params (JSON)').fill('{"shop": "south", "copies": 1}');
    await browsing().expectAccessible();
    await browsing().answer('Retry', 'another shop');
    await page.getByText(`retried run ${failed}`).waitFor();
    await page.locator('q', { hasText: 'another shop' }).waitFor();
    await state('load', 'reused');
    await row('count').getByRole('link').click();
    await inPane('Input of count').getByText('"found": "south"').waitFor();
    expect(complaints).to.deep.equal([]);
  });

  it('is copied as curl and svc commands with its params, and run again with others', async () => {
    const { page, complaints } = browsing();
    await page.context().grantPermissions(['clipboard-read', 'clipboard-write']);
    const id = await task([{ id: 'load', uses: 'echo' }]);
    const done = await run(id, 20, { params: { shop: "the baker's" } });
    await browsing().logIn(service().credentials, `runs/${done}`);
    await page.getByRole('button', { name: 'Copy as …' }).click();
    const again = page.getByRole('region', { name: 'Run the task again: curl' });
    await again.getByText(`/tasks/${id}/run_now`).waitFor();
    await page.getByRole('button', { name: 'Copy as svc: Run the task again' }).click();
    await page.getByText('Copied.').waitFor();
    const copied = await page.evaluate<string>('navigator.clipboard.readText()');
    expect(copied).to.equal(`svc tasks run ${id} --params '{"shop":"the baker'\\''s"}'`);
    await browsing().expectAccessible();
    await page.getByRole('button', { name: 'Run again …' }).click();
    await page.getByRole('dialog').getByLabel('Params (JSON)').fill('{"shop": "the butcher\'s"}');
    await browsing().answer('Run', 'more meat');
    await inPane('Params').getByText("the butcher's").waitFor();
    await page.locator('q', { hasText: 'more meat' }).waitFor();
    expect(complaints).to.deep.equal([]);
  });

  it('flags a step that took much longer than usual', async () => {
    const { page } = browsing();
    const pipeline = [{ id: 'nap', uses: 'sleep', with: { seconds: '${params.seconds}' } }];
    const id = await task([], { payload: { params: { seconds: 0.01 }, pipeline } });
    const usual: string[] = [];
    for (let n = 0; n < 5; n += 1) usual.push(await run(id));
    const seconds = await slowAfter(service().client, usual);
    const slow = await run(id, 20, { params: { seconds } });
    await browsing().logIn(service().credentials, `runs/${slow}?step=nap`);
    await state('nap', 'slow');
    await page.locator('dt', { hasText: 'Usually' }).waitFor();
    await page.locator('.pane .state', { hasText: 'slow' }).waitFor();
  });
});
