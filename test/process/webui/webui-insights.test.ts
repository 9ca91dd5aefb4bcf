import { expect } from 'chai';
import { readFile } from 'node:fs/promises';
import { useBrowser } from './webui-browser.ts';
import { useService } from './webui-service.ts';

describe('the insights', function () {
  this.timeout(120_000);
  const service = useService();
  const browsing = useBrowser(() => service().process.address);

  async function run(title: string, step: object, times: number): Promise<string> {
    const made = await service().client.post('/tasks', {
      ...{ title, description: '-', schedule_kind: 'event', schedule_expr: 'never.published' },
      ...{ created_by: service().credentials.agent_id, max_retries: 0 },
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

  it('show throughput, durations and failures by hour and day, and keep all that in the address', async () => {
    const { page, complaints } = browsing();
    await browsing().logIn(service().credentials);
    await page.getByRole('navigation').getByRole('link', { name: 'Insights' }).click();
    await page.locator('.figures').getByText('50.0 %').waitFor();
    for (const name of [/^Runs by hour/, /^Duration by hour/, /^Failure share by hour/]) {
      await page.getByRole('img', { name }).waitFor();
    }
    await browsing().expectAccessible();
    await page.getByLabel('Period').selectOption('7d');
    await page.getByLabel('By', { exact: true }).selectOption('day');
    await page.getByRole('img', { name: /^Runs by day/ }).waitFor();
    expect(hash()).to.contain('period=7d').and.contain('by=day');
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

  it('rank tasks, and show one of them over time', async () => {
    const { page } = browsing();
    await browsing().logIn(service().credentials, 'insights');
    const table = page.getByRole('region', { name: 'By task' });
    await table.getByRole('row').nth(1).getByText('Import orders').waitFor();
    await page.getByLabel('Tasks with').selectOption('runs');
    await table.getByRole('row').nth(1).getByText('Sweep the floor').waitFor();
    expect(hash()).to.contain('sort=runs');
    await table.getByRole('button', { name: 'Show over time: Sweep the floor' }).click();
    await page.locator('.figures').getByText('0.0 %').waitFor();
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

  it('are saved as CSV, with strings that no spreadsheet takes as a formula', async () => {
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
});
