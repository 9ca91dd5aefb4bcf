import { expect } from 'chai';
import { useBrowser } from './webui-browser.ts';
import { useService } from './webui-service.ts';

describe('the log of a run in the web page', function () {
  this.timeout(120_000);
  const service = useService();
  const browsing = useBrowser(() => service().process.address);

  /** Runs a new task. @returns the run's id */
  async function run(pipeline: readonly object[]): Promise<string> {
    const { client, credentials } = service();
    const made = await client.post('/tasks', {
      ...{ title: 'Says a lot', description: '-', schedule_kind: 'event' },
      ...{ created_by: credentials.agent_id, payload: { pipeline } },
    });
    expect(made.status, made.text).to.equal(201);
    const ran = await client.post(`/tasks/${made.textAt('id')}/run_now`);
    return ran.textAt('details.run_id');
  }

  it('grows while the run goes on', async () => {
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

  it("shows a worker's lines and progress as soon as it sends them", async () => {
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
});
