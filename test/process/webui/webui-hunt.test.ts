import { expect } from 'chai';
import type { Locator } from 'playwright-core';
import { useBrowser } from './webui-browser.ts';
import { useService } from './webui-service.ts';

/** Tasks among which the problems hide. */
const TASKS = 500;

/** How far the browser's clock is ahead, so that what began now has lasted for long. Milliseconds. */
const AHEAD = 400_000;

describe('a hunt for problems, from the overview', function () {
  this.timeout(180_000);
  const service = useService({ SVC_QUOTAS: JSON.stringify({ default: { agents: 3 } }) });
  const browsing = useBrowser(() => service().process.address);
  let clicks = 0;

  async function task(title: string, step: object, fields: object = {}): Promise<string> {
    const made = await service().client.post('/tasks', {
      ...{ title, description: '-', schedule_kind: 'event', schedule_expr: 'never.published' },
      ...{ created_by: service().credentials.agent_id, max_retries: 0 },
      payload: { pipeline: [{ id: 'work', max_retries: 0, ...step }] },
      ...fields,
    });
    expect(made.status, made.text).to.equal(201);
    return made.textAt('id');
  }

  const run = async (id: string, wait = ''): Promise<void> => {
    const ran = await service().client.post(`/tasks/${id}/run_now${wait}`);
    expect(ran.status, ran.text).to.be.below(300);
  };

  before(async () => {
    const { client } = service();
    for (let n = 0; n < TASKS; n += 25) {
      const some = Array.from({ length: 25 }, (_, each) => `Quiet task ${String(n + each)}`);
      await Promise.all(some.map((title) => task(title, { uses: 'echo' })));
    }
    await run(await task('Fails', { uses: 'fail', with: { message: 'no paper' } }), '?wait=30');
    const sleep = { uses: 'sleep', with: { seconds: 900 } };
    const busy = await task('Skips', sleep, { overlap_policy: 'skip' });
    await run(busy);
    await run(busy);
    const one = { concurrency_key: 'printer', concurrency_limit: 1 };
    const stuck = await task('Is stuck', sleep, one);
    await run(stuck);
    await run(stuck);
    const slow = { id: 'slow-part', uses: 'sleep', with: { seconds: 1 } };
    await run(await task('Is slow', slow), '?wait=30');
    const paused = await task('Is paused', { uses: 'echo' });
    expect((await client.post(`/tasks/${paused}/pause`)).status).to.equal(200);
    const tools = [{ name: 'letters.send', description: 'Sends letters', schema: {} }];
    const worker = await client.post('/workers', { name: 'post-office', tools, slots: 1 });
    expect(worker.status, worker.text).to.equal(201);
    const receiver = { name: 'receiver', scopes: [], webhook_url: 'http://127.0.0.1:9/hook' };
    const agent = (await client.post('/agents', receiver)).textAt('id');
    // The hook is refused at once: its address is private.
    const sent = (await client.post(`/agents/${agent}/webhook-test`)).textAt('details.delivery_id');
    const deliveries = `/agents/${agent}/webhooks/deliveries`;
    const attempted = async (times: number): Promise<void> => {
      for (;;) {
        const listed = await client.get(`${deliveries}?after=${await headOf()}`);
        const attempts = listed.at('items.0.attempts') as readonly unknown[];
        if (listed.at('items.0.state') === 'failed' && attempts.length === times) return;
      }
    };
    await attempted(1);
    expect((await client.post(`${deliveries}/${sent}/repeat`)).status).to.equal(202);
    await attempted(2);
    const holder = (
      await client.post('/agents', { name: 'holder', scopes: ['tasks:read'] })
    ).textAt('id');
    const expires_at = new Date(Date.now() + 30_000).toISOString();
    const key = await client.post(`/agents/${holder}/keys`, { name: 'old-key', expires_at });
    expect(key.status, key.text).to.equal(201);
  });

  const headOf = async (): Promise<string> =>
    (await service().client.get('/runs?limit=1')).header('X-Read-Position');

  beforeEach(async () => {
    const { page } = browsing();
    await page.clock.install({ time: Date.now() + AHEAD });
    await browsing().logIn(service().credentials);
    await page.locator('.sentence', { hasText: 'failing' }).waitFor();
    clicks = 0;
  });

  const click = async (what: Locator): Promise<void> => {
    await what.first().click();
    clicks += 1;
  };
  const problem = (name: string | RegExp): Locator =>
    browsing().page.locator('.problems li', { hasText: name });
  const heading = (name: string): Promise<void> =>
    browsing().page.getByRole('heading', { level: 1, name }).waitFor();

  afterEach(() => {
    expect(clicks).to.be.most(3);
  });

  it('finds a failing task among 500', async () => {
    await click(problem('1 task failing').getByRole('link', { name: 'Fails' }));
    await heading('Fails');
  });

  it('finds a stuck queue', async () => {
    await click(problem('stuck in the queue').getByRole('link').nth(1));
    await browsing().page.locator('.view-head .state', { hasText: 'queued' }).waitFor();
  });

  it('finds a schedule that skips', async () => {
    await click(problem('skipping').getByRole('link', { name: '1 skipped run' }));
    await click(
      browsing()
        .page.getByRole('row', { name: /skipped/ })
        .getByRole('link')
        .first(),
    );
    await browsing()
      .page.getByText(/overlap/)
      .first()
      .waitFor();
  });

  it('finds an expired key', async () => {
    await click(problem('expired').getByRole('link', { name: 'old-key' }));
    await heading('holder');
  });

  it('finds a lost worker', async () => {
    await problem('1 worker lost').getByText('post-office').waitFor();
    await click(problem('1 worker lost').getByRole('link'));
    await browsing()
      .page.getByRole('row', { name: /post-office/ })
      .waitFor();
  });

  it('finds a slow step', async () => {
    const { page } = browsing();
    const row = page
      .getByRole('region', { name: 'Slowest tasks' })
      .getByRole('row', { name: /Is slow/ });
    await click(row.getByRole('link', { name: '1', exact: true }));
    await click(
      page
        .getByRole('row', { name: /Is slow|succeeded/ })
        .getByRole('link')
        .first(),
    );
    await page.getByText('slow-part').first().waitFor();
  });

  it('finds a webhook message that was sent twice', async () => {
    await click(problem('sent twice').getByRole('link', { name: /webhook.test, 2 attempts/ }));
    await heading('receiver');
  });

  it('finds a paused task', async () => {
    await click(problem('1 task paused').getByRole('link', { name: 'Is paused' }));
    await heading('Is paused');
  });

  it('finds a quota that is used up', async () => {
    await problem('1 quota used up').getByText('agents: 3 of 3 in default').waitFor();
  });

  it('finds a hold', async () => {
    await service().client.post('/operations/hold', { reason: 'a new database' });
    await problem('on hold').getByText('a new database').waitFor();
    await service().client.post('/operations/release', {});
  });
});
