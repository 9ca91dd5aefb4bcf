import { expect } from 'chai';
import { useBrowser } from './webui-browser.ts';
import { useService } from './webui-service.ts';

describe('the log of a run in the web page', function () {
  this.timeout(300_000);
  const service = useService();
  const browsing = useBrowser(() => service().process.address);

  /** Runs a new task, and waits for its end if that comes soon. @returns the run's id */
  async function run(pipeline: readonly object[], wait = 0): Promise<string> {
    const { client, credentials } = service();
    const made = await client.post('/tasks', {
      title: 'Says a lot',
      description: '-',
      schedule_kind: 'event',
      created_by: credentials.agent_id,
      payload: { pipeline },
    });
    expect(made.status, made.text).to.equal(201);
    const ran = await client.post(`/tasks/${made.textAt('id')}/run_now?wait=${wait}`);
    return ran.textAt('details.run_id');
  }

  it('grows while the run is in progress', async () => {
    const { page, complaints } = browsing();
    const { client, credentials } = service();
    const next = { uses: 'wait.event', with: { topic: 'log.next' } };
    const say = (message: string) => ({ uses: 'log', with: { message } });
    const id = await run([say('first line'), next, say('second line'), next]);
    await browsing().logIn(credentials, `runs/${id}`);
    const log = page.getByRole('log', { name: 'Log' });
    await log.getByText('first line').waitFor();
    await page.locator('.live[data-how=live]').waitFor();
    expect(await log.getByText('second line').count()).to.equal(0);
    const event = { topic: 'log.next', payload: {}, source_agent_id: credentials.agent_id };
    expect((await client.post('/events', event)).status).to.equal(202);
    await log.getByText('second line').waitFor();
    await page.locator('.view-head .state', { hasText: 'waiting' }).waitFor();
    await browsing().expectAccessible();
    expect(complaints).to.deep.equal([]);
  });

  it("shows a worker's lines and progress as soon as they are sent", async () => {
    const { page, complaints } = browsing();
    const { client, credentials } = service();
    const tools = [{ name: 'films.cut', description: 'Cuts films', schema: {} }];
    const made = await client.post('/workers', { name: 'cutter', tools, slots: 1 });
    const id = await run([{ id: 'cut', uses: 'films.cut' }]);
    await browsing().logIn(credentials, `runs/${id}`);
    const wait = page.getByRole('region', { name: 'Waiting for' });
    await wait.getByText('a worker’s result of films.cut').waitFor();
    await page.locator('.live[data-how=live]').waitFor();
    const taken = await client.post(`/workers/${made.textAt('worker_id')}/jobs?wait=20`);
    const [job] = taken.at('jobs') as [{ readonly job_id: string; readonly lease: string }];
    const kept = await client.post(`/jobs/${job.job_id}/heartbeat`, {
      lease: job.lease,
      progress: 0.25,
      log: [{ level: 'info', message: 'a quarter is cut' }],
    });
    expect(kept.status, kept.text).to.equal(200);
    await page.getByRole('log', { name: 'Log' }).getByText('a quarter is cut').waitFor();
    const progress = wait.getByRole('progressbar', { name: 'Progress of cut' });
    await progress.and(page.locator('[value="0.25"]')).waitFor();
    expect(await page.locator('.view-head .state').textContent()).to.equal('waiting');
    await browsing().expectAccessible();
    expect(complaints).to.deep.equal([]);
  });

  it('shows the lines of all parts of a parallel group', async () => {
    const { page, complaints } = browsing();
    const say = (id: string) => ({ id, uses: 'log', with: { message: `said by ${id}` } });
    const id = await run([say('alone'), { id: 'both', parallel: [say('left'), say('right')] }]);
    await browsing().logIn(service().credentials, `runs/${id}?step=both`);
    const log = page.getByRole('log', { name: 'Log' });
    await log.getByText('said by left').waitFor();
    await log.getByText('said by right').waitFor();
    await log.locator('code', { hasText: 'right' }).waitFor();
    expect(await log.getByText('said by alone').count()).to.equal(0);
    expect(complaints).to.deep.equal([]);
  });

  it('assigns a line to the attempt that its step records, although clocks differ', async () => {
    const { page, complaints } = browsing();
    const id = await run([{ id: 'say', uses: 'log', with: { message: 'from the first' } }], 20);
    await page.route(`**/runs/${id}`, async (route) => {
      const response = await route.fetch();
      const shown = (await response.json()) as {
        readonly attempts: readonly { readonly started_at: string }[];
        readonly steps: readonly { readonly started_at: string }[];
      };
      // The clock of the worker of the first attempt was ahead.
      const attempts = shown.attempts.flatMap((first) => [
        first,
        { ...first, attempt: 2, started_at: shown.steps[0]?.started_at ?? first.started_at },
      ]);
      await route.fulfill({ response, json: { ...shown, attempts } });
    });
    await browsing().logIn(service().credentials, `runs/${id}`);
    const line = page.getByRole('log').getByRole('listitem').filter({ hasText: 'from the first' });
    await line.getByText('attempt 1').waitFor();
    expect(complaints).to.deep.equal([]);
  });
});
