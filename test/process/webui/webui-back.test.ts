import { expect } from 'chai';
import { eventually } from '../../support/signals.ts';
import { useBrowser } from './webui-browser.ts';
import { useService } from './webui-service.ts';

/** Enough for two pages of the list, each longer than the screen. */
const TASKS = 80;

describe('going back on the web page', function () {
  this.timeout(300_000);
  const service = useService();
  const browsing = useBrowser(() => service().process.address, {
    viewport: { width: 1280, height: 500 },
  });

  before(async () => {
    const { client, credentials } = service();
    const ids: string[] = [];
    for (let n = 0; n < TASKS; n += 1) {
      const made = await client.post('/tasks', {
        title: `Listed ${n}`,
        description: 'x',
        created_by: credentials.agent_id,
        schedule_kind: 'event',
        schedule_expr: `never.published.${n}`,
        payload: { pipeline: [] },
      });
      expect(made.status, made.text).to.equal(201);
      ids.push(made.textAt('id'));
    }
    // The filter for active tasks changes the number that the list shows.
    expect((await client.post(`/tasks/${ids[0]}/pause`)).status).to.equal(200);
  });

  const scrolled = (): Promise<number> => browsing().page.evaluate<number>('scrollY');

  it('restores the page of a list, its filters and its scroll position', async () => {
    const { page, complaints } = browsing();
    await browsing().logIn(service().credentials, 'tasks');
    await page.getByLabel('Status', { exact: true }).selectOption('active');
    await page.waitForURL(/status=active/);
    // Before the list has been read with its filter, its buttons do nothing.
    await page.getByText(`${TASKS - 1} tasks, page 1`).waitFor();
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

  it('does not undo a navigation that follows before the view has put its filters into the address', async () => {
    const { page } = browsing();
    await browsing().logIn(service().credentials, 'workers');
    // The effects of the first view run between the second navigation and its event.
    await page.evaluate(`new Promise((resolve) => {
      const { requestAnimationFrame: frame, setTimeout: timer } = window;
      const effects = [];
      window.requestAnimationFrame = (effect) => effects.push(effect);
      window.setTimeout = (act, delay) => (delay === undefined ? act() : timer(act, delay));
      addEventListener('hashchange', () => {
        location.hash = '#/agents';
        for (const effect of effects) effect();
        Object.assign(window, { requestAnimationFrame: frame, setTimeout: timer });
        resolve();
      }, { once: true });
      location.hash = '#/approvals';
    })`);
    await page.getByRole('heading', { level: 1, name: 'Agents' }).waitFor();
  });

  it('opens a page of a list from its address alone', async () => {
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

  const rows = (): Promise<number> => browsing().page.locator('tbody tr').count();

  it('restores the pages that a person had read of an audit, a history and a list of topics', async () => {
    const { page, complaints } = browsing();
    const { client, credentials } = service();
    const made = await client.post('/tasks', {
      title: 'Often changed',
      description: 'x',
      created_by: credentials.agent_id,
      schedule_kind: 'event',
      schedule_expr: 'never.published',
      payload: { pipeline: [] },
    });
    const id = made.textAt('id');
    for (let n = 1; n <= 51; n += 1) await client.put(`/tasks/${id}`, { priority: 1 + (n % 9) });
    const leave = async (): Promise<void> => {
      await browsing().goTo('approvals');
      await page.getByRole('heading', { level: 1, name: 'Approvals' }).waitFor();
      await page.goBack();
    };
    await browsing().logIn(credentials, 'audit');
    await page.getByRole('button', { name: 'Older' }).click();
    await eventually(async () => (await rows()) >= 100);
    await leave();
    await eventually(async () => (await rows()) >= 100);
    await browsing().goTo(`tasks/${id}?tab=history`);
    await page.getByRole('button', { name: 'Later events' }).click();
    await eventually(async () => (await rows()) === 52);
    await leave();
    await eventually(async () => (await rows()) === 52);
    await browsing().goTo('events');
    await page.getByRole('button', { name: 'Next', exact: true }).click();
    await page.getByText('page 2').waitFor();
    await leave();
    await page.getByText('page 2').waitFor();
    expect(complaints).to.deep.equal([]);
  });

  it('restores the question about an instant, which has an address', async () => {
    const { page, complaints } = browsing();
    const { credentials, client } = service();
    const { json } = await client.get('/tasks?limit=1');
    const [{ id = '' } = {}] = json['items'] as readonly { readonly id?: string }[];
    await browsing().logIn(credentials, `tasks/${id}?tab=calendar&by=year`);
    const instant = page.getByLabel('At', { exact: true });
    const answer = page.locator('.state', { hasText: 'not in schedule' });
    await instant.fill('2026-03-01T09:30');
    await page.getByRole('button', { name: 'Explain' }).click();
    await answer.waitFor();
    await page.getByRole('button', { name: 'Previous year' }).click();
    await page.waitForURL(/explain=.*&date=\d{4}-\d\d-01/);
    await browsing().goTo('approvals');
    await page.getByRole('heading', { level: 1, name: 'Approvals' }).waitFor();
    await page.goBack();
    await answer.waitFor();
    expect(await instant.inputValue()).to.equal('2026-03-01T09:30');
    const address = page.url().split('#/')[1] ?? '';
    await browsing().logIn(credentials, address);
    await answer.waitFor();
    expect(complaints).to.deep.equal([]);
  });

  it('restores unsent input of a form', async () => {
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

  it('closes a dialog without an answer, and restores its text when it is opened again', async () => {
    const { page, complaints } = browsing();
    const { client, credentials } = service();
    await client.post('/operations/hold', { reason: 'a look' });
    await browsing().logIn(credentials, 'runs');
    await browsing().goTo('events');
    const dialog = page.getByRole('dialog');
    const open = (name: string): Promise<void> => page.getByRole('button', { name }).click();
    await open('Publish test event');
    await dialog.getByLabel('Topic').fill('half.typed');
    await page.goBack();
    await dialog.waitFor({ state: 'detached' });
    await page.goForward();
    await open('Publish test event');
    expect(await dialog.getByLabel('Topic').inputValue()).to.equal('half.typed');
    await page.keyboard.press('Escape');
    await open('Publish test event');
    expect(await dialog.getByLabel('Topic').inputValue()).not.to.equal('half.typed');
    await page.keyboard.press('Escape');
    // The button of the banner stays through a navigation.
    await open('Release …');
    await page.goBack();
    await dialog.waitFor({ state: 'detached' });
    await open('Release …');
    await browsing().answer('Release');
    expect(complaints).to.deep.equal([]);
  });

  it('does not restore a secret that was typed', async () => {
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
