import { expect } from 'chai';
import type { Locator } from 'playwright-core';
import { useBrowser } from './webui-browser.ts';
import { Problems } from './webui-hunt-problems.ts';
import { useService } from './webui-service.ts';

const TASKS = 500;
const MAX_AGENTS = 4;
const MAX_CLICKS = 3;
/** How far the browser's clock is ahead, so that what started just now seems old. Milliseconds. */
const CLOCK_AHEAD_MS = 400_000;

describe('a hunt for problems, from the overview', function () {
  this.timeout(300_000);
  const service = useService({
    SVC_QUOTAS: JSON.stringify({ default: { agents: MAX_AGENTS } }),
    SVC_HTTP_ALLOW_PRIVATE: 'true',
  });
  const browsing = useBrowser(() => service().process.address);
  let problems: Problems;
  let clicks = 0;

  before(async () => {
    problems = new Problems(service().client, service().credentials.agent_id);
    await problems.quietTasks(TASKS);
    await Promise.all([
      problems.failingTask(),
      problems.pausedTask(),
      problems.stuckQueue(),
      problems.skippingSchedule(),
      problems.slowStep(),
      problems.lostWorker(),
      problems.duplicatedWebhook(),
      problems.expiredKey(),
      problems.expiredSecret(),
    ]);
    await problems.usedUpQuota(MAX_AGENTS);
  });

  after(() => problems.close());

  /** Opens the overview, from which the clicks of a hunt count. */
  async function start(): Promise<void> {
    await browsing().page.clock.install({ time: Date.now() + CLOCK_AHEAD_MS });
    await browsing().logIn(service().credentials);
    clicks = 0;
  }

  beforeEach(start);

  afterEach(function () {
    if (this.currentTest?.state === 'failed') return;
    expect(clicks, 'clicks').to.be.within(1, MAX_CLICKS);
    expect(browsing().complaints).to.deep.equal([]);
  });

  async function click(what: Locator): Promise<void> {
    await what.click();
    clicks += 1;
  }

  /** Waits until an element contains all these texts. */
  async function reads(where: Locator, ...texts: readonly (string | RegExp)[]): Promise<void> {
    for (const text of texts) await where.filter({ hasText: text }).waitFor();
  }

  const problem = (name: string): Locator =>
    browsing().page.locator('.problems li', { hasText: name });
  const view = (): Locator => browsing().page.locator('main');
  const row = (name: RegExp): Locator => browsing().page.getByRole('row', { name });
  const heading = (name: string): Promise<void> =>
    browsing().page.getByRole('heading', { level: 1, name }).waitFor();

  it('finds a failing task among 500, with its error and when it failed', async () => {
    await click(problem('1 task failing').getByRole('link', { name: 'Print letters' }));
    await heading('Print letters');
    await reads(row(/failed/), /\d+ min ago/, 'no paper');
  });

  it('finds a stuck queue, what it waits for, and the run that blocks it', async () => {
    const { page } = browsing();
    const queue = problem('1 run stuck in the queue');
    await reads(queue, /the oldest, [0-9a-f]{8}, \d+ min ago/);
    await click(queue.getByRole('link', { name: /^[0-9a-f]{8}$/ }));
    await heading('Run of Print invoices');
    const obstacle = page.locator('.obstacles li');
    await reads(
      obstacle,
      'It waits for the concurrency key printer: 1 of 1 in use.',
      /since .+ ago/,
    );
    await click(obstacle.getByRole('link'));
    await reads(page.locator('.view-head .state'), 'waiting');
    await heading('Run of Print invoices');
  });

  it('finds a schedule that skips fires, when and why, and the run that blocks it', async () => {
    const { page } = browsing();
    const state = page.locator('.view-head .state');
    const skipping = problem('1 task skipping runs');
    await reads(skipping, 'Copy the archive');
    await click(skipping.getByRole('link', { name: '1 skipped run' }));
    await reads(row(/skipped/), 'schedule', /ago/, 'overlap');
    await click(row(/skipped/).getByRole('link'));
    await heading('Run of Copy the archive');
    await reads(state, 'skipped');
    await reads(
      view(),
      /The schedule of its task was due at .+\./,
      /Skip reason\s*overlap: a run of its task had not ended/,
    );
    await click(page.getByRole('link', { name: '← Previous run' }));
    await reads(state, 'waiting');
  });

  it('finds an expired secret, when it expired, and the task that uses it', async () => {
    await problem('1 API key expired').getByRole('link', { name: 'old-key' }).waitFor();
    const expired = problem('1 secret expired');
    await reads(expired, /BANK_TOKEN expired \d+ min ago, used by 1 task/);
    await click(expired.getByRole('link', { name: 'BANK_TOKEN' }));
    await heading('Replace BANK_TOKEN');
    await reads(view(), /Expires\s*expired\s*\d+ min ago/);
    await click(view().getByRole('link', { name: 'Pay the rent' }));
    await heading('Pay the rent');
  });

  it('finds a lost worker, when it was last seen and what it offered', async () => {
    const lost = problem('1 worker lost');
    await reads(lost, /post-office, last seen \d+ min ago/);
    await click(lost.getByRole('link', { name: '1 worker lost' }));
    await heading('Workers');
    await reads(row(/post-office/), 'lost', 'letters.send', /\d+ min ago/);
  });

  it('finds a slow step, with its usual time', async () => {
    const { page } = browsing();
    const slowest = page.getByRole('region', { name: 'Slowest tasks' });
    const task = slowest.getByRole('row', { name: /Close the books/ });
    await click(task.getByRole('link', { name: '6', exact: true }));
    await heading('Runs');
    await click(
      row(/(^|\s)[1-9]\S* s\b/)
        .first()
        .getByRole('link'),
    );
    await heading('Run of Close the books');
    await click(page.getByRole('link', { name: /^work .*slow$/ }));
    await reads(view(), /Took\s*\d\S* s\s*slow/, /Usually\s*up to .+ of 5/);
  });

  it('finds a webhook message that was delivered twice, with both responses', async () => {
    const resent = problem('sent twice').getByRole('link', { name: /webhook.test, 2 attempts/ });
    await click(resent);
    await heading('bookkeeping');
    const delivery = row(/webhook.test/);
    await reads(delivery, 'delivered');
    await click(delivery.getByText('status 200'));
    expect(await delivery.getByText(/\/hook, 200/).count()).to.equal(2);
  });

  it('finds a paused task, who paused it, when and why', async () => {
    await click(problem('1 task paused').getByRole('link', { name: 'Paint the wall' }));
    await heading('Paint the wall');
    await reads(view(), /paused by admin at .+: the paint is out of stock/);
  });

  it('finds a quota that is used up', async () => {
    const quota = problem('1 quota used up').getByRole('link', { name: /^agents:/ });
    await reads(quota, `agents: ${MAX_AGENTS} of ${MAX_AGENTS} in default`);
    await click(quota);
    await heading('Namespace default');
    await reads(row(/^agents/), 'used up');
  });

  describe('of a service on hold', () => {
    before(() => problems.hold());
    after(() => problems.release());

    it('finds the hold, who ordered it, when and why', async () => {
      const { page } = browsing();
      const hold = problem('on hold');
      await reads(hold, /“a new database”, admin, .+ ago/);
      await click(hold.getByRole('link', { name: 'on hold' }));
      await heading('System');
      const orders = page.locator('section', { hasText: 'No schedule fires and no run starts' });
      await reads(orders, /Who\s*admin/, /Since.+ago/s, /Why\s*a new database/);
    });
  });
});
