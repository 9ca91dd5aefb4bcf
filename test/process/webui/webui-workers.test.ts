import { expect } from 'chai';
import type { ApiClient } from '../../support/api-client.ts';
import { signIn, type Credentials } from '../../support/service-process.ts';
import { useBrowser } from './webui-browser.ts';
import { useService } from './webui-service.ts';

describe('workers in the web page', function () {
  this.timeout(300_000);
  // Neither the job nor its step ends before the test.
  const service = useService({ SVC_JOB_LEASE_SECONDS: '600' });
  const browsing = useBrowser(() => service().process.address);

  /** A new agent with these scopes. */
  async function agent(name: string, scopes: readonly string[]): Promise<Credentials> {
    const path = `/agents/${(await service().client.post('/agents', { name, scopes })).textAt('id')}`;
    const { json } = await service().client.post(`${path}/credentials`, {});
    const { agent_id, agent_secret } = json as unknown as Credentials;
    return { agent_id, agent_secret };
  }

  /** Registers a worker that offers one tool. @returns its path */
  async function register(client: ApiClient, name: string, tool: string): Promise<string> {
    const tools = [{ name: tool, description: 'Sends letters', schema: {} }];
    const made = await client.post('/workers', { name, tools, slots: 3, labels: { region: 'eu' } });
    expect(made.status, made.text).to.equal(201);
    return `/workers/${made.textAt('worker_id')}`;
  }

  /** Requests a run of a new task with one step that uses a tool. @returns the run's id */
  async function use(tool: string): Promise<string> {
    const { client, credentials } = service();
    const made = await client.post('/tasks', {
      title: `Uses ${tool}`,
      description: '-',
      schedule_kind: 'event',
      created_by: credentials.agent_id,
      payload: { pipeline: [{ id: 'send', uses: tool, timeout_seconds: 900 }] },
    });
    expect(made.status, made.text).to.equal(201);
    return (await client.post(`/tasks/${made.textAt('id')}/run_now`)).textAt('details.run_id');
  }

  it('are listed with their tools, jobs and age, and drained', async () => {
    const { page, complaints } = browsing();
    const worker = await register(service().client, 'post-office', 'letters.send');
    const run = await use('letters.send');
    const taken = await service().client.post(`${worker}/jobs?wait=20`);
    expect(taken.at('jobs')).to.have.length(1);
    await browsing().logIn(service().credentials, 'workers');
    const row = page.getByRole('row', { name: /post-office/ });
    await row.getByText('letters.send').waitFor();
    for (const text of ['Sends letters', 'region: eu', '1 of 3'])
      await row.getByText(text).waitFor();
    await row.getByText(/lease ends in/).waitFor();
    await browsing().expectAccessible();
    await row.getByRole('button', { name: 'Drain post-office' }).click();
    await browsing().answer('Drain', 'it moves');
    await page.getByText('No such worker.').waitFor();
    await page.getByLabel('State').selectOption('drained');
    await row.getByText('drained').waitFor();
    await row.getByText(/^ended/).waitFor();
    expect(page.url()).to.match(/#\/workers\?state=drained$/);
    expect(await row.getByRole('button').count()).to.equal(0);
    await row.getByRole('link', { name: run.slice(0, 8) }).click();
    const wait = page
      .getByRole('region', { name: 'Waiting for' })
      .getByRole('row', { name: /send/ });
    await wait.getByText('a worker’s result of letters.send').waitFor();
    expect(complaints).to.deep.equal([]);
  });

  it('are marked as lost after they have been silent for a while', async () => {
    const { page, complaints } = browsing();
    await register(service().client, 'out-of-reach', 'lost.tool');
    await browsing().logIn(service().credentials, 'workers');
    const row = page.getByRole('row', { name: /out-of-reach/ });
    await row.getByText('active').waitFor();
    // Longer than an idle worker waits for jobs.
    await page.clock.setFixedTime(Date.now() + 120_000);
    await row.getByText('lost', { exact: true }).waitFor();
    await browsing().expectAccessible();
    expect(complaints).to.deep.equal([]);
  });

  it('are those of the agent, or all of them for an operator', async () => {
    const { page, complaints } = browsing();
    const worker = await agent('a worker', ['jobs:work']);
    const client = service().process.client();
    await register(service().process.client(await signIn(client, worker)), 'theirs', 'their.tool');
    await register(service().client, 'mine', 'my.tool');
    await browsing().logIn(worker, 'workers');
    await page.getByRole('button', { name: 'Drain theirs' }).waitFor();
    await page.getByText('1 worker', { exact: true }).waitFor();
    const operator = await agent('an operator', ['ops']);
    await browsing().open();
    await browsing().logIn(operator, 'workers');
    await page.getByRole('button', { name: 'Drain theirs' }).waitFor();
    await page.getByRole('button', { name: 'Drain mine' }).waitFor();
    expect(complaints).to.deep.equal([]);
  });
});
