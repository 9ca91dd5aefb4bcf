import { expect } from 'chai';
import { useBrowser } from './webui-browser.ts';
import { useService } from './webui-service.ts';

describe('the frame of the web page', function () {
  this.timeout(300_000);
  const service = useService();
  const browsing = useBrowser(() => service().process.address);

  it('lists the views in groups, with a link to each', async () => {
    const { page, complaints } = browsing();
    await browsing().logIn(service().credentials);
    const groups = page.getByRole('navigation', { name: 'Views' }).getByRole('list');
    const shown = await Promise.all(
      (await groups.all()).map((group) => group.getByRole('link').allTextContents()),
    );
    expect(shown).to.deep.equal([
      ['Overview', 'Tasks', 'Runs', 'Events', 'Insights'],
      ['Approvals', 'Workers'],
      ['Audit', 'Agents', 'Secrets', 'Namespaces'],
      ['System'],
    ]);
    const names = await groups.getByRole('link').allTextContents();
    for (const name of names) {
      const link = groups.getByRole('link', { name, exact: true });
      await link.click();
      await page.locator('.rail a[aria-current=page]', { hasText: name }).waitFor();
      await page.getByRole('heading', { level: 1 }).first().waitFor();
      expect(await page.getByText('There is no page at the address').count(), name).to.equal(0);
    }
    expect(complaints).to.deep.equal([]);
  });

  it('still opens views at their former addresses', async () => {
    const { page, complaints } = browsing();
    await browsing().logIn(service().credentials, 'projections');
    await page.getByRole('heading', { level: 1, name: 'Read models' }).waitFor();
    expect(page.url()).to.match(/#\/system\/read-models$/);
    await browsing().goTo('streams?prefix=agent-');
    await page.getByRole('heading', { level: 1, name: 'Streams' }).waitFor();
    expect(page.url()).to.match(/#\/system\/streams\?prefix=agent-$/);
    expect(await page.getByLabel('Begins with').inputValue()).to.equal('agent-');
    await page.getByRole('navigation', { name: 'System' }).getByText('Read models').click();
    await page.getByRole('heading', { level: 1, name: 'Read models' }).waitFor();
    await page.goBack();
    await page.getByRole('heading', { level: 1, name: 'Streams' }).waitFor();
    expect(complaints).to.deep.equal([]);
  });

  it('keeps the colours that a person chooses, even after a reload', async () => {
    const { page } = browsing();
    await page.emulateMedia({ colorScheme: 'light' });
    await browsing().logIn(service().credentials);
    const ground = (): Promise<string> =>
      page.evaluate<string>('getComputedStyle(document.body).backgroundColor');
    const light = await ground();
    await page.getByLabel('Colours').selectOption('Dark');
    const dark = await ground();
    expect(dark).not.to.equal(light);
    await page.reload();
    await page.getByRole('heading', { level: 1, name: 'Overview' }).waitFor();
    expect(await ground()).to.equal(dark);
    await page.getByLabel('Colours').selectOption('System colours');
    expect(await ground()).to.equal(light);
    await page.emulateMedia({ colorScheme: 'dark' });
    expect(await ground()).to.equal(dark);
  });

  it('shows bars while a view is loading, and a remedy if that fails', async () => {
    const { page } = browsing();
    await page.clock.install();
    await browsing().logIn(service().credentials);
    let answer = (): void => undefined;
    const held = new Promise<void>((resolve) => (answer = resolve));
    const refusal = { error: 'forbidden', message: 'the scope ops is missing' };
    let isRefused = true;
    await page.route('**/projections', async (route) => {
      await held;
      return isRefused ? route.fulfill({ status: 403, json: refusal }) : route.continue();
    });
    await browsing().goTo('system/read-models');
    await page.locator('main .loading').waitFor();
    await browsing().expectAccessible();
    answer();
    const alert = page.getByRole('alert').filter({ hasText: 'the scope ops is missing' });
    await alert.getByText('An admin can grant it.').waitFor();
    await browsing().expectAccessible();
    // Otherwise, the view retries by itself, which removes the button.
    await page.clock.pauseAt(Date.now() + 60_000);
    const again = alert.getByRole('button', { name: 'Try again' });
    await again.waitFor();
    isRefused = false;
    await again.dispatchEvent('click');
    await page.getByRole('table', { name: 'Projections' }).waitFor();
  });
});

describe('System on the web page', function () {
  this.timeout(300_000);
  const service = useService();
  const browsing = useBrowser(() => service().process.address);

  it('shows the health of each part', async () => {
    const { page, complaints } = browsing();
    await browsing().logIn(service().credentials, 'system');
    const health = page.getByRole('table', { name: 'Health' });
    for (const part of ['database', 'stream store', 'projections', 'scheduler', 'workers']) {
      await health.getByRole('row', { name: new RegExp(`^${part} `) }).waitFor();
    }
    await browsing().expectAccessible();
    expect(complaints).to.deep.equal([]);
  });

  /** An agent that may only read runs also sees the hold, but not the button that ends it. */
  async function readsOfHold(): Promise<void> {
    const { client, process } = service();
    const made = await client.post('/agents', { name: 'looker', scopes: ['runs:read'] });
    const given = await client.post(`/agents/${made.textAt('id')}/credentials`, {});
    const { agent_id, agent_secret } = given.json as { agent_id: string; agent_secret: string };
    const context = await browsing().page.context().browser()?.newContext();
    const page = await context?.newPage();
    if (context === undefined || page === undefined) throw new Error('there is no browser');
    await page.goto(`${process.address}/ext/webui/`);
    await page.getByLabel('Agent ID').fill(agent_id);
    await page.getByLabel('Secret').fill(agent_secret);
    await page.getByRole('button', { name: 'Log in' }).click();
    await page.locator('.banner', { hasText: '“the database is being moved”, admin,' }).waitFor();
    expect(await page.getByRole('button', { name: 'Release …' }).count()).to.equal(0);
    await context.close();
  }

  it('puts the service on hold, says who did it, when and why, and ends the hold', async () => {
    const { page, complaints } = browsing();
    await browsing().logIn(service().credentials, 'system');
    const heading = page.getByRole('heading', { level: 2, name: 'Hold', exact: true });
    const hold = page.locator('section', { has: heading });
    await page.getByRole('button', { name: 'Hold the service …' }).click();
    await browsing().answer('Hold', 'the database is being moved');
    await hold.getByText('the database is being moved').waitFor();
    await hold.getByText('admin', { exact: true }).waitFor();
    await hold.locator('time').first().waitFor();
    await browsing().expectAccessible();
    await readsOfHold();
    await hold.getByRole('button', { name: 'Release …' }).click();
    await browsing().answer('Release');
    await hold.getByText('The service is not on hold').waitFor();
    await hold.getByText('Last release').waitFor();
    expect((await service().client.get('/operations')).at('held')).to.equal(false);
    expect(complaints).to.deep.equal([]);
  });

  it('keeps the position of a stream’s slider in the address', async () => {
    const { page } = browsing();
    const { agent_id } = service().credentials;
    await service().client.put(`/agents/${agent_id}`, { name: 'renamed' });
    await browsing().logIn(service().credentials, `system/streams/agent-${agent_id}`);
    await page.getByLabel('Position in time').press('Home');
    await page.waitForURL(/\?at=0$/);
    await page.reload();
    await page.getByRole('heading', { level: 2, name: /^0: / }).waitFor();
  });
});
