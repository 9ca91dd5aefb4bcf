import { expect } from 'chai';
import type { Locator } from 'playwright-core';
import { useBrowser } from './webui-browser.ts';
import { useService } from './webui-service.ts';

describe('the overview', function () {
  this.timeout(300_000);
  const service = useService();
  const browsing = useBrowser(() => service().process.address);

  async function task(title: string, step: object, fields: object = {}): Promise<string> {
    const made = await service().client.post('/tasks', {
      title,
      description: '-',
      schedule_kind: 'event',
      schedule_expr: 'never.published',
      created_by: service().credentials.agent_id,
      max_retries: 0,
      payload: { pipeline: [{ id: 'work', max_retries: 0, ...step }] },
      ...fields,
    });
    expect(made.status, made.text).to.equal(201);
    return made.textAt('id');
  }

  /** Runs a task to its end. */
  async function run(id: string): Promise<string> {
    const ran = await service().client.post(`/tasks/${id}/run_now?wait=30`);
    return ran.textAt('details.run_id');
  }

  const fail = (message: string): object => ({ uses: 'fail', with: { message } });
  const section = (name: string): Locator =>
    browsing().page.locator('section', { has: browsing().page.getByRole('heading', { name }) });

  describe('of an empty service', () => {
    it('is a guide to a first task, its run, and the result', async () => {
      const { page, complaints } = browsing();
      await page.setViewportSize({ width: 1280, height: 720 });
      await browsing().logIn(service().credentials);
      await page.getByRole('heading', { name: 'Nothing has run here yet' }).waitFor();
      expect(await page.locator('.tile').count()).to.equal(0);
      await browsing().expectAccessible();
      await page.getByRole('button', { name: 'Create an example task' }).click();
      await page.getByRole('link', { name: 'Say hello' }).waitFor();
      await page.getByRole('button', { name: 'Run it now' }).click();
      await page.getByRole('link', { name: 'See the run' }).click();
      await page.locator('.view-head .state', { hasText: 'succeeded' }).waitFor();
      await browsing().goTo('overview');
      await page.locator('.sentence', { hasText: 'All normal.' }).waitFor();
      await section('Needs attention').getByText('Nothing needs attention.').waitFor();
      await section('Failures by error').getByText('No run failed in the last 24 hours.').waitFor();
      // Otherwise it may be due within the hours that later tests look at.
      const example = await service().client.get('/tasks?search=Say%20hello');
      const canceled = await service().client.post(`/tasks/${example.textAt('items.0.id')}/cancel`);
      expect(canceled.status, canceled.text).to.equal(200);
      expect(complaints).to.deep.equal([]);
    });
  });

  describe('of a service with problems', () => {
    let failing: string;

    before(async () => {
      failing = await task('Import orders', fail('order 1234567 is unknown'));
      const other = await task('Export orders', fail('order 7654321 is unknown'));
      await run(failing);
      await run(failing);
      await run(other);
      await run(await task('Print letters', fail('no paper')));
      const good = await task('Sweep the floor', { uses: 'echo', with: { text: 'done' } });
      await run(good);
      const idle = await task('Paint the wall', { uses: 'echo' });
      expect((await service().client.post(`/tasks/${idle}/pause`)).status).to.equal(200);
      const slow = { overlap_policy: 'skip' };
      const busy = await task('Long way', { uses: 'sleep', with: { seconds: 900 } }, slow);
      await service().client.post(`/tasks/${busy}/run_now`);
      await service().client.post(`/tasks/${busy}/run_now`);
      const expires_at = new Date(Date.now() + 3 * 86_400_000).toISOString();
      await service().client.put('/secrets/INK_TOKEN', { value: 'hush', expires_at });
      const headers = { token: '${secrets.INK_TOKEN}' };
      const url = 'https://ink.example/';
      await task('Order ink', { uses: 'http.request', with: { url, headers } });
      const soon = new Date(Date.now() + 1_800_000).toISOString();
      const once = { schedule_kind: 'once', schedule_expr: soon };
      await task('Water the plants', { uses: 'echo' }, once);
    });

    it('says in one sentence what is wrong, and leads to each problem', async () => {
      const { page, complaints } = browsing();
      await browsing().logIn(service().credentials);
      const sentence = page.locator('.sentence');
      await sentence.filter({ hasText: '3 tasks failing' }).waitFor();
      expect(await sentence.textContent()).to.match(/1 task skipping runs, all else normal\.\s*$/);
      const problems = section('Needs attention');
      await problems.getByRole('link', { name: 'Import orders' }).waitFor();
      await problems.getByRole('link', { name: 'Paint the wall' }).waitFor();
      await problems.getByRole('link', { name: '1 skipped run' }).click();
      await page.getByRole('heading', { level: 1, name: 'Runs' }).waitFor();
      expect(page.url()).to.contain('state=skipped');
      await page.goBack();
      const expiring = problems.locator('li', { hasText: '1 secret about to expire' });
      await expiring.filter({ hasText: /INK_TOKEN expires in 2 days, used by 1 task/ }).waitFor();
      await expiring.getByRole('link', { name: '1 task' }).click();
      await page.getByRole('button', { name: 'using the secret INK_TOKEN, remove' }).waitFor();
      await page.getByRole('link', { name: 'Order ink' }).waitFor();
      await page.goBack();
      await problems.getByRole('link', { name: 'Import orders' }).click();
      await page.getByRole('heading', { level: 1, name: 'Import orders' }).waitFor();
      expect(complaints).to.deep.equal([]);
    });

    it('shows everything that matters above the fold of 1280×720', async () => {
      const { page, complaints } = browsing();
      await page.setViewportSize({ width: 1280, height: 720 });
      await browsing().logIn(service().credentials);
      await page.locator('.timeline svg').waitFor();
      await page.getByRole('row', { name: /no paper/ }).waitFor();
      await browsing().expectAccessible();
      let body = (await service().client.get('/stats/errors?hours=24')).json;
      const [group] = body['items'] as readonly { readonly tasks: readonly object[] }[];
      await page.route('**/stats/errors?**', (route) => route.fulfill({ json: body }));
      for (const many of [0, 4, 5]) {
        const items = Array.from({ length: Math.min(many, 4) }, (_, n) => ({
          ...group,
          id: String(n),
          error: `error ${n} of many words `.repeat(9),
          task_count: 40,
          tasks: group?.tasks.flatMap((each) => [each, each]),
        }));
        body = { ...body, items, total: many };
        await page.reload();
        const errors = section('Failures by error');
        await page.locator('.timeline svg').waitFor();
        if (many > 4) await errors.getByRole('link', { name: `${many - 4} more` }).waitFor();
        else if (many > 0) await errors.getByRole('row').nth(many).waitFor();
        else await errors.getByText('No run failed').waitFor();
        for (const part of [page.locator('.sentence'), page.locator('.timeline svg')]) {
          const box = await part.boundingBox();
          expect((box?.y ?? 9999) + (box?.height ?? 0), String(many)).to.be.most(720);
        }
      }
      for (const width of [390, 1280, 1440]) {
        await page.setViewportSize({ width, height: 800 });
        expect(await browsing().width(), String(width)).to.be.most(width);
      }
      expect(complaints).to.deep.equal([]);
    });

    it('compares the last 24 hours with the day before, as a chart and as a table', async () => {
      await browsing().logIn(service().credentials);
      const { page } = browsing();
      const heading = page.getByRole('heading', { name: 'Last 24 hours', exact: true });
      const strip = page.locator('section', { has: heading });
      await strip.getByText('4 failed', { exact: true }).waitFor();
      await strip.getByRole('img', { name: 'Runs of the last 24 hours by hour' }).waitFor();
      await strip.getByText('Numbers').click();
      await strip.getByRole('columnheader', { name: 'A day before' }).waitFor();
      expect(await strip.getByRole('row').count()).to.equal(25);
    });

    it('groups failures by error, and retries those of one error after showing their number', async () => {
      const { page, complaints } = browsing();
      await browsing().logIn(service().credentials);
      const row = page.getByRole('row', { name: /order <n> is unknown/ });
      await row.getByRole('cell', { name: '3', exact: true }).waitFor();
      await row.getByRole('link', { name: 'Export orders' }).waitFor();
      await section('Failures by error').getByRole('columnheader', { name: 'First' }).waitFor();
      expect(await row.locator('time').count()).to.equal(2);
      await row.getByRole('button', { name: 'Retry' }).click();
      const dialog = page.getByRole('dialog');
      await dialog.getByLabel('Why').fill('the catalogue is back');
      await page.keyboard.press('Enter');
      await dialog.getByText('3 would be retried').waitFor();
      await browsing().expectAccessible();
      expect((await service().client.get('/runs?state=failed')).at('total')).to.equal(4);
      await dialog.getByRole('button', { name: 'Retry 3 runs' }).click();
      await page.getByText('3 runs are retried').waitFor();
      await page
        .getByRole('row', { name: /order <n>/ })
        .getByRole('cell', { name: '6', exact: true })
        .waitFor();
      await page.getByRole('link', { name: 'order <n> is unknown' }).click();
      await page.getByRole('heading', { level: 1, name: 'Insights' }).waitFor();
      const tasks = page.getByRole('region', { name: 'Tasks with this error' });
      await tasks.getByRole('link', { name: 'Export orders' }).waitFor();
      expect(complaints).to.deep.equal([]);
    });

    it('shows the last hour and the next one, each run and fire with a link', async () => {
      const { page } = browsing();
      await browsing().logIn(service().credentials);
      const timeline = section('From an hour ago to an hour ahead');
      await timeline.getByText('1 task due in the next one').waitFor();
      // Nobody sees the list yet, and it may have hundreds of rows.
      expect(await timeline.locator('tr').count()).to.equal(0);
      await timeline.getByText('As a list').click();
      await timeline.getByRole('row', { name: /Water the plants due/ }).waitFor();
      await timeline.getByRole('row', { name: /Long way skipped/ }).waitFor();
      await timeline
        .getByRole('row', { name: /Print letters failed/ })
        .getByRole('link')
        .last()
        .click();
      await page.locator('.view-head .state', { hasText: 'failed' }).waitFor();
    });

    it('says that the service is on hold, by whom and why', async () => {
      const { page } = browsing();
      await service().client.post('/operations/hold', { reason: 'a new database' });
      await browsing().logIn(service().credentials);
      await page.locator('.sentence', { hasText: 'on hold' }).waitFor();
      await section('Needs attention').getByText('a new database').waitFor();
      await service().client.post('/operations/release', {});
      await page.locator('.sentence', { hasText: 'on hold' }).waitFor({ state: 'detached' });
    });

    it('says that the service is unhealthy, and which projections are halted', async () => {
      const { page } = browsing();
      const message = 'runs: making no progress';
      const checks = [
        { name: 'projections', status: 'unhealthy', message },
        { name: 'scheduler', status: 'degraded', message: 'on hold', hold: { reason: 'x' } },
        { name: 'workers', status: 'healthy', message: '1 alive' },
      ];
      const report = {
        status: 'unhealthy',
        version: '1',
        timestamp: '2026-01-01T00:00:00Z',
        checks,
      };
      await page.route('**/health', (route) => route.fulfill({ status: 503, json: report }));
      await page.route('**/projections', async (route) => {
        const response = await route.fetch();
        const body = (await response.json()) as { projections: object[] };
        const [first, ...others] = body.projections;
        const projections = [{ ...first, state: 'halted' }, ...others];
        return route.fulfill({ response, json: { ...body, projections } });
      });
      await browsing().logIn(service().credentials);
      const sentence = page.locator('.sentence');
      await sentence.filter({ hasText: /service unhealthy, 1 projection halted, / }).waitFor();
      const health = section('Needs attention').locator('li', { hasText: 'service unhealthy' });
      expect(await health.textContent()).to.include(`projections: ${message}`);
      expect(await health.textContent()).not.to.match(/on hold|alive/);
      await browsing().expectAccessible();
      await section('Needs attention').getByRole('link', { name: '1 projection halted' }).click();
      await page.getByRole('heading', { level: 1, name: 'Read models' }).waitFor();
      await page.goBack();
      await health.getByRole('link', { name: 'service unhealthy' }).click();
      await page.getByRole('heading', { level: 1, name: 'System' }).waitFor();
    });

    it('leads from the number of overdue tasks to a list that starts with them', async () => {
      const { page } = browsing();
      const at = new Date(Date.now() - 600_000).toISOString();
      const due = { task_id: failing, title: 'Import orders', next_run_at: at };
      await page.route('**/tasks/due?*', (route) =>
        route.fulfill({ json: { items: [due], total: 1, next_cursor: null } }),
      );
      await browsing().logIn(service().credentials);
      await page.locator('.sentence', { hasText: '1 overdue' }).waitFor();
      await section('Needs attention').getByRole('link', { name: '1 overdue' }).click();
      await page.getByRole('button', { name: 'sorted by next run, remove' }).waitFor();
      await page.getByRole('button', { name: 'only active, remove' }).waitFor();
      // The task with a next run comes before those that wait for an event.
      await page.getByRole('row').nth(1).getByText('Water the plants').waitFor();
    });

    it('claims no more than the agent may see', async () => {
      const { page } = browsing();
      const { client, credentials } = service();
      const scopes = ['runs:read'];
      const made = await client.post('/agents', { name: 'reader of runs', scopes });
      const path = `/agents/${made.textAt('id')}/credentials`;
      const given = await client.post(path, {});
      const reader = {
        agent_id: given.textAt('agent_id'),
        agent_secret: given.textAt('agent_secret'),
      };
      await browsing().logIn(reader);
      await page
        .locator('.sentence', { hasText: 'all else normal as far as you may see.' })
        .waitFor();
      await browsing().logIn(credentials);
      await page.locator('.sentence', { hasText: /all else normal\.\s*$/ }).waitFor();
    });
  });
});
