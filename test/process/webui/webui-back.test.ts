import { expect } from 'chai';
import { eventually } from '../../support/signals.ts';
import { useBrowser } from './webui-browser.ts';
import { useService } from './webui-service.ts';

/** Two pages of the list, and more than a screen each. */
const TASKS = 80;

describe('going back on the web page', function () {
  this.timeout(120_000);
  const service = useService();
  const browsing = useBrowser(() => service().process.address, {
    viewport: { width: 1280, height: 500 },
  });

  before(async () => {
    const { client, credentials } = service();
    for (let n = 0; n < TASKS; n += 1) {
      const { status, text } = await client.post('/tasks', {
        ...{ title: `Listed ${n}`, description: 'x', created_by: credentials.agent_id },
        ...{ schedule_kind: 'event', schedule_expr: 'never.published', payload: { pipeline: [] } },
      });
      expect(status, text).to.equal(201);
    }
  });

  const scrolled = (): Promise<number> => browsing().page.evaluate<number>('scrollY');

  it('brings back the page of a list, its filters and where it was scrolled to', async () => {
    const { page, complaints } = browsing();
    await browsing().logIn(service().credentials, 'tasks');
    await page.getByLabel('Status', { exact: true }).selectOption('active');
    await page.waitForURL(/status=active/);
    await page.getByRole('button', { name: 'Next', exact: true }).click();
    await page.getByText('page 2').waitFor();
    await page.waitForURL(/page=2&cursor=/);
    const last = page.getByRole('link', { name: /^Listed/ }).last();
    await last.waitFor();
    await page.evaluate('scrollTo(0, document.body.scrollHeight)');
    const before = await scrolled();
    expect(before).to.be.greaterThan(50);
    await last.click();
    await page.getByRole('heading', { level: 1, name: /^Listed/ }).waitFor();
    expect(await scrolled()).to.equal(0);
    await page.goBack();
    await page.getByText('page 2').waitFor();
    await eventually(async () => Math.abs((await scrolled()) - before) < 3);
    expect(await page.getByLabel('Status', { exact: true }).inputValue()).to.equal('active');
    await page.goBack();
    await page.getByText('page 1').waitFor();
    await page.goForward();
    await page.getByText('page 2').waitFor();
    await page.reload();
    await page.getByText('page 2').waitFor();
    await page.getByRole('button', { name: 'Previous' }).click();
    await page.getByText('page 1').waitFor();
    expect(complaints).to.deep.equal([]);
  });

  it('opens a page of a list by its address alone', async () => {
    const { page } = browsing();
    await browsing().logIn(service().credentials, 'tasks');
    await page.getByRole('button', { name: 'Next', exact: true }).click();
    await page.waitForURL(/page=2&cursor=/);
    const address = page.url().split('#/')[1] ?? '';
    const titles = (): Promise<readonly string[]> =>
      page.getByRole('link', { name: /^Listed/ }).allTextContents();
    await page.getByText('page 2').waitFor();
    await eventually(async () => (await page.locator('tbody tr').count()) === 25);
    const shown = await titles();
    await browsing().logIn(service().credentials, address);
    await page.getByText('page 2').waitFor();
    expect(await titles()).to.deep.equal(shown);
    await page.getByRole('button', { name: 'Previous' }).click();
    await page.getByText('page 1').waitFor();
  });

  it('brings back what was typed into a form and not sent', async () => {
    const { page, complaints } = browsing();
    await browsing().logIn(service().credentials, 'tasks/new');
    await page.getByLabel('Title').fill('Half typed');
    await page.getByRole('navigation').getByRole('link', { name: 'Runs' }).click();
    await page.getByRole('heading', { level: 1, name: 'Runs' }).waitFor();
    await page.goBack();
    await page.getByRole('heading', { level: 1, name: 'New task' }).waitFor();
    expect(await page.getByLabel('Title').inputValue()).to.equal('Half typed');
    await page.reload();
    await page.getByRole('heading', { level: 1, name: 'New task' }).waitFor();
    expect(await page.getByLabel('Title').inputValue()).to.equal('Half typed');
    await page.getByRole('button', { name: 'Create' }).click();
    await page.getByRole('heading', { level: 1, name: 'Half typed' }).waitFor();
    await page.goBack();
    await page.getByRole('heading', { level: 1, name: 'New task' }).waitFor();
    expect(await page.getByLabel('Title').inputValue()).to.equal('');
    expect(complaints).to.deep.equal([]);
  });

  it('brings back no secret that was typed', async () => {
    const { page, complaints } = browsing();
    await browsing().logIn(service().credentials, 'secrets/new');
    await page.getByLabel('Name', { exact: true }).fill('shop_key');
    await page.getByLabel('Value', { exact: true }).fill('of the shop');
    await page.getByRole('navigation').getByRole('link', { name: 'Runs' }).click();
    await page.getByRole('heading', { level: 1, name: 'Runs' }).waitFor();
    await page.goBack();
    await page.getByLabel('Value', { exact: true }).waitFor();
    expect(await page.getByLabel('Name', { exact: true }).inputValue()).to.equal('shop_key');
    expect(await page.getByLabel('Value', { exact: true }).inputValue()).to.equal('');
    expect(await page.evaluate<string>('JSON.stringify(history.state)')).not.to.include('the shop');
    expect(complaints).to.deep.equal([]);
  });
});
