import { expect } from 'chai';
import { useBrowser } from './webui-browser.ts';
import { useService } from './webui-service.ts';

describe('a run that waits, in the web page', function () {
  this.timeout(300_000);
  const service = useService();
  const browsing = useBrowser(() => service().process.address);

  /** Creates an event task that nobody triggers. @returns its id */
  async function task(title: string, pipeline: readonly object[]): Promise<string> {
    const made = await service().client.post('/tasks', {
      title,
      description: '-',
      schedule_kind: 'event',
      schedule_expr: 'never.published',
      created_by: service().credentials.agent_id,
      payload: { pipeline },
    });
    expect(made.status, made.text).to.equal(201);
    return made.textAt('id');
  }

  /** Runs a task. @returns the run's id */
  async function run(task_id: string): Promise<string> {
    const ran = await service().client.post(`/tasks/${task_id}/run_now`);
    expect(ran.status, ran.text).to.be.oneOf([200, 202]);
    return ran.textAt('details.run_id');
  }

  it('is counted and listed, and says what each step waits for, since when and until when', async () => {
    const { page, complaints } = browsing();
    const child = await task('Pack the goods', [{ uses: 'sleep', with: { seconds: 900 } }]);
    const paid = { topic: 'paid.*', if: 'event.payload.total > `10`', timeout_seconds: 7200 };
    const parallel = [
      { id: 'nap', uses: 'sleep', with: { seconds: 5400 } },
      { id: 'money', uses: 'wait.event', with: paid },
      { id: 'chief', uses: 'approval', with: { message: 'Ship it?' } },
      { id: 'packed', uses: 'tasks.run', with: { task_id: child, wait: true } },
      { id: 'carrier', uses: 'echo', wait_for: 'callback', wait_seconds: 3600 },
    ];
    const parent = await task('Ship an order', [{ id: 'all', parallel }]);
    const id = await run(parent);
    await browsing().logIn(service().credentials);
    const tile = page.locator('a.tile', { hasText: /^Waiting2/ });
    await tile.waitFor();
    await tile.click();
    const listed = page.getByRole('row', { name: /Ship an order/ });
    for (const each of ['a time', 'an event', 'an approval', 'a run', 'a callback']) {
      await listed.getByText(each).waitFor();
    }
    expect(await page.getByLabel('State').inputValue()).to.equal('waiting');
    await browsing().expectAccessible();
    await listed.getByRole('link', { name: id.slice(0, 8) }).click();
    await page.locator('.view-head .state', { hasText: 'waiting' }).waitFor();
    const waits = page.getByRole('region', { name: 'Waiting for' });
    const row = (step: string) => waits.getByRole('row', { name: new RegExp(`^${step} `) });
    await row('nap').getByText('in 1 h').waitFor();
    await row('money').getByText('an event of paid.* where event.payload.total > `10`').waitFor();
    await row('money').getByText('in 1 h').waitFor();
    await row('chief').getByText('an approval: Ship it?').waitFor();
    await row('carrier').getByText('a callback').waitFor();
    await page.getByRole('list', { name: 'Attempts and steps over time' }).getByText('nap').click();
    await page.locator('.pane dt', { hasText: 'At most until' }).waitFor();
    await browsing().expectAccessible();
    await row('packed').getByRole('link', { name: 'Pack the goods' }).waitFor();
    const children = page.getByRole('region', { name: 'Child runs' });
    await children.getByRole('link', { name: 'Pack the goods' }).waitFor();
    await row('packed').getByRole('link').first().click();
    await page.getByRole('heading', { level: 1, name: 'Run of Pack the goods' }).waitFor();
    const facts = page.locator('section', { hasText: 'Facts' }).last();
    await facts.getByText('Parent run').waitFor();
    await facts.getByRole('link', { name: id.slice(0, 8) }).waitFor();
    expect(await children.count()).to.equal(0);
    await service().client.post(`/tasks/${parent}/cancel`);
    await service().client.post(`/tasks/${child}/cancel`);
    await page.locator('.view-head .state', { hasText: 'canceled' }).waitFor();
    expect(await waits.count()).to.equal(0);
    expect(complaints).to.deep.equal([]);
  });
});
