import { expect } from 'chai';
import { readFile } from 'node:fs/promises';
import { useBrowser } from './webui-browser.ts';
import { useService } from './webui-service.ts';

describe('the insights', function () {
  this.timeout(300_000);
  const service = useService();
  const browsing = useBrowser(() => service().process.address);

  async function run(title: string, step: object, times: number): Promise<string> {
    const made = await service().client.post('/tasks', {
      title,
      description: '-',
      schedule_kind: 'event',
      schedule_expr: 'never.published',
      created_by: service().credentials.agent_id,
      max_retries: 0,
      payload: { pipeline: [{ id: 'work', max_retries: 0, ...step }] },
    });
    expect(made.status, made.text).to.equal(201);
    const id = made.textAt('id');
    for (let n = 0; n < times; n += 1) await service().client.post(`/tasks/${id}/run_now?wait=30`);
    return id;
  }

  let good: string;

  before(async () => {
    good = await run('Sweep the floor', { uses: 'echo' }, 3);
    await run('Import orders', { uses: 'fail', with: { message: 'order 1234567 is unknown' } }, 2);
    await run('=Print()', { uses: 'fail', with: { message: 'no paper, "A4"' } }, 1);
  });

  const hash = (): string => new URL(browsing().page.url()).hash;

  it('show throughput, durations and failures by hour and day, and keep all choices in the address', async () => {
    const { page, complaints } = browsing();
    await browsing().logIn(service().credentials);
    await page.getByRole('navigation').getByRole('link', { name: 'Insights' }).click();
    await page.locator('.figures').getByText('50.0 %').waitFor();
    for (const name of [/^Runs by hour/, /^Duration by hour/, /^Failure share by hour/]) {
      await page.getByRole('img', { name }).waitFor();
    }
    await browsing().expectAccessible();
    // Each period begins with an interval of its own.
    await page.getByLabel('Period').selectOption('31d');
    await page.getByRole('img', { name: /^Runs by day/ }).waitFor();
    await page.getByLabel('Period').selectOption('7d');
    await page.getByLabel('By', { exact: true }).selectOption('hour');
    await page.getByRole('img', { name: /^Runs by hour/ }).waitFor();
    expect(hash()).to.contain('period=7d').and.contain('by=hour');
    await page.getByLabel('By', { exact: true }).selectOption('day');
    await page.getByRole('img', { name: /^Runs by day/ }).waitFor();
    expect(hash()).to.contain('by=day');
    await page.getByText('Numbers').first().click();
    await page.getByRole('columnheader', { name: 'Failure share' }).first().waitFor();
    await page.reload();
    await page.getByRole('img', { name: /^Runs by day/ }).waitFor();
    expect(await page.getByLabel('Period').inputValue()).to.equal('7d');
    for (const width of [390, 1440]) {
      await page.setViewportSize({ width, height: 800 });
      expect(await browsing().width(), String(width)).to.be.most(width);
    }
    expect(complaints).to.deep.equal([]);
  });

  it('dim the figures of the earlier choice until those of the new one arrive', async () => {
    const { page } = browsing();
    await browsing().logIn(service().credentials, 'insights');
    await page.getByRole('img', { name: /^Runs by hour/ }).waitFor();
    let answer = (): void => undefined;
    const held = new Promise<void>((resolve) => (answer = resolve));
    await page.route('**/stats/summary?*', async (route) => {
      await held;
      return route.continue();
    });
    const opacity = (): Promise<string> =>
      page.evaluate<string>("getComputedStyle(document.querySelector('.figures')).opacity");
    expect(await opacity()).to.equal('1');
    await page.getByLabel('Period').selectOption('7d');
    await page.locator('.old').first().waitFor({ state: 'attached' });
    expect(await opacity()).to.equal('0.5');
    answer();
    await page.locator('.old').first().waitFor({ state: 'detached' });
    expect(await opacity()).to.equal('1');
  });

  it('rank tasks, and show one of them over time', async () => {
    const { page } = browsing();
    await browsing().logIn(service().credentials, 'insights');
    const table = page.getByRole('region', { name: 'By task' });
    await table.getByRole('row').nth(1).getByText('Import orders').waitFor();
    await page.getByLabel('Tasks with').selectOption('runs');
    await table.getByRole('row').nth(1).getByText('Sweep the floor').waitFor();
    expect(hash()).to.contain('sort=runs');
    await table.getByRole('button', { name: 'Show over time: Sweep the floor' }).click();
    await page.locator('.figures').getByText('0.0 %', { exact: true }).waitFor();
    expect(hash()).to.contain(`task=${good}`);
    await page.getByRole('button', { name: 'All tasks' }).click();
    await page.locator('.figures').getByText('50.0 %').waitFor();
  });

  it('group failures by error, and show one of them over time with its tasks', async () => {
    const { page } = browsing();
    await browsing().logIn(service().credentials, 'insights');
    await page.getByRole('button', { name: 'Show details: order <n> is unknown' }).click();
    await page.getByRole('img', { name: 'Failures with this error' }).waitFor();
    await page
      .getByRole('region', { name: 'Tasks with this error' })
      .getByText('Import orders')
      .waitFor();
    expect(hash()).to.match(/error=[0-9a-f]{16}/);
    await browsing().expectAccessible();
    await page.getByRole('button', { name: 'All errors' }).click();
    await page.getByRole('region', { name: 'By error' }).getByText('no paper').waitFor();
  });

  it('are saved as CSV, with strings that no spreadsheet reads as a formula', async () => {
    const { page } = browsing();
    await browsing().logIn(service().credentials, 'insights');
    await page.locator('.figures').getByText('50.0 %').waitFor();
    const save = async (name: RegExp): Promise<string> => {
      const [file] = await Promise.all([
        page.waitForEvent('download'),
        page.getByRole('button', { name }).click(),
      ]);
      return readFile(await file.path(), 'utf8');
    };
    const hours = (await save(/CSV: runs-hour-24h/)).trimEnd().split('\r\n');
    expect(hours[0]).to.equal('start,runs,failed,skipped,failure_share,p50_seconds,p95_seconds');
    const total = hours.slice(1).reduce((sum, line) => sum + Number(line.split(',')[1]), 0);
    expect(total).to.equal(6);
    await page.getByRole('region', { name: 'By task' }).getByText('=Print()').waitFor();
    expect(await save(/CSV: tasks-failed-24h/)).to.contain(",'=Print(),1,1,0,1,");
    expect(await save(/CSV: errors-24h/)).to.contain('"no paper, ""A4""",1,1,');
  });

  it('of one task retry only failures of that task', async () => {
    const failing = { uses: 'fail', with: { message: 'order 7 is unknown' } };
    const id = await run('Import returns', failing, 1);
    const { page } = browsing();
    await browsing().logIn(service().credentials, `insights?task=${id}`);
    await page.getByRole('link', { name: '1', exact: true }).waitFor();
    const list = page.getByTitle('List these runs');
    expect(await list.getAttribute('href')).to.include(`task_id=${id}`);
    await page.getByRole('button', { name: 'Retry order <n> is unknown' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByRole('link', { name: 'Import returns' }).waitFor();
    await dialog.getByRole('button', { name: 'Preview' }).click();
    await dialog.getByText('1 would be retried').waitFor();
    await browsing().answer('Retry 1 run', 'returns only');
    await page.getByText('1 run is retried').waitFor();
  });
});
