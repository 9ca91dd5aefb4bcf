import { expect } from 'chai';
import type { Page } from 'playwright-core';
import type { Credentials } from '../../support/service-process.ts';
import { useBrowser } from './webui-browser.ts';
import { tabTo } from './webui-keyboard.ts';
import { useService } from './webui-service.ts';

describe('agents, secrets and namespaces in the web page', function () {
  this.timeout(300_000);
  const service = useService({ SVC_QUOTAS: '{"reports": {"agents": 1}}' });
  const browsing = useBrowser(() => service().process.address);

  /** A new agent with these scopes. */
  async function agent(
    name: string,
    scopes: readonly string[],
    more: object = {},
  ): Promise<Credentials> {
    const made = await service().client.post('/agents', { name, scopes, ...more });
    expect(made.status, made.text).to.equal(201);
    const { json } = await service().client.post(`/agents/${made.textAt('id')}/credentials`, {});
    const { agent_id, agent_secret } = json as unknown as Credentials;
    return { agent_id, agent_secret };
  }

  const heading = (page: Page, name: string | RegExp) =>
    page.getByRole('heading', { level: 1, name }).waitFor();

  it('adds an agent with scopes, changes it, and gives it a secret that is shown once', async () => {
    const { page, complaints } = browsing();
    await browsing().logIn(service().credentials, 'agents');
    await page.getByRole('link', { name: 'New agent' }).click();
    await page.getByRole('button', { name: 'Add' }).click();
    await page.locator('#field-name[aria-invalid=true]').waitFor();
    await page.getByLabel('Name', { exact: true }).fill('reporter');
    await page.getByRole('checkbox', { name: /^tasks:read sees/ }).check();
    await page.getByLabel('Other scopes').fill('ext:mine:routes');
    await browsing().expectAccessible();
    await page.getByRole('button', { name: 'Add' }).click();
    await heading(page, 'reporter');
    await page.getByText('ext:mine:routes').waitFor();
    await page.getByRole('link', { name: 'Change', exact: true }).click();
    await page.getByRole('checkbox', { name: /^runs:read sees runs/ }).check();
    await page.getByLabel('Why').fill('it reads runs too');
    await page.getByRole('button', { name: 'Save' }).click();
    await page.getByRole('definition').getByText('runs:read').waitFor();
    await page.getByRole('button', { name: 'New secret …' }).click();
    await browsing().answer('Create the secret', 'first one');
    const secret = await page.locator('.once code').textContent();
    await browsing().expectAccessible();
    await page.getByRole('button', { name: 'I have saved it' }).click();
    expect(await page.getByText(secret ?? '').count()).to.equal(0);
    const id = page.url().split('/').at(-1)?.split('?')[0] ?? '';
    const { status } = await service()
      .process.client()
      .post('/agents/auth/token', { agent_id: id, agent_secret: secret });
    expect(status).to.equal(200);
    for (const [name, days] of [
      ['soon', 7],
      ['later', 60],
    ] as const) {
      const expires_at = new Date(Date.now() + days * 86_400_000).toISOString();
      const made = await service().client.post(`/agents/${id}/keys`, { name, expires_at });
      expect(made.status, made.text).to.equal(201);
    }
    await page.getByRole('link', { name: 'Agents', exact: true }).click();
    await page.getByRole('link', { name: 'Keys by expiry' }).click();
    await page.getByRole('row', { name: /^later reporter/ }).waitFor();
    await page.getByLabel('Expire').selectOption('within 30 days');
    await page.getByRole('row', { name: /^later/ }).waitFor({ state: 'detached' });
    await page
      .getByRole('row', { name: /^soon reporter/ })
      .getByRole('link')
      .click();
    await heading(page, 'reporter');
    expect(complaints.filter((each) => !each.includes('400'))).to.deep.equal([]);
  });

  it('disables an agent and says who did, enables and removes it', async () => {
    const { page, complaints } = browsing();
    const { agent_id: id } = await agent('to be stopped', ['tasks:read']);
    await browsing().logIn(service().credentials, `agents/${id}`);
    await page.getByRole('button', { name: 'Disable …' }).click();
    await page.getByRole('dialog').getByLabel('Its runs').selectOption('cancel');
    await browsing().answer('Disable', 'it runs wild');
    await page.getByText(/by admin, .* Its runs are canceled\./).waitFor();
    await browsing().expectAccessible();
    await browsing().goTo('agents?name=stopped');
    await page.getByRole('row', { name: /to be stopped.*disabled/ }).waitFor();
    await page.getByRole('link', { name: 'to be stopped' }).click();
    await page.getByRole('button', { name: 'Enable …' }).click();
    await browsing().answer('Enable');
    await page.getByRole('button', { name: 'Disable …' }).waitFor();
    await page.getByRole('button', { name: 'Remove …' }).click();
    await browsing().answer('Remove');
    await heading(page, 'Agents');
    expect((await service().client.get(`/agents/${id}`)).status).to.equal(404);
    expect(complaints).to.deep.equal([]);
  });

  it('shows an agent without scopes itself, and lets it create, copy and revoke a key', async () => {
    const { page, complaints } = browsing();
    const self = await agent('on its own', ['tasks:read', 'runs:read']);
    const origin = new URL(service().process.address).origin;
    await page.context().grantPermissions(['clipboard-read', 'clipboard-write'], { origin });
    await browsing().logIn(self, 'agents');
    await heading(page, 'on its own');
    expect(await page.getByRole('button', { name: /Disable|Remove|New secret/ }).count()).to.equal(
      0,
    );
    await page.getByText('No API keys.').waitFor();
    await page.getByRole('link', { name: 'New API key' }).click();
    await page.getByLabel('Name', { exact: true }).fill('deployment');
    await page.getByRole('checkbox', { name: /^runs:read / }).uncheck();
    expect(await page.getByRole('checkbox').count()).to.equal(2);
    await page.getByLabel('Expires').selectOption('at');
    await page.getByLabel('At', { exact: true }).fill('2020-01-01T00:00:00');
    await page.getByRole('button', { name: 'Create' }).click();
    await page.getByText('must be in the future').waitFor();
    await browsing().expectAccessible();
    await page.getByLabel('Expires').selectOption('30');
    await page.getByRole('button', { name: 'Create' }).click();
    await page.getByRole('button', { name: 'Copy' }).click();
    await page.getByText('Copied.').waitFor();
    const key = await page.evaluate<string>('navigator.clipboard.readText()');
    expect(key).to.match(/^svck_/);
    const user = service().process.client(key);
    expect((await user.get('/tasks')).status).to.equal(200);
    expect((await user.get('/runs')).status).to.equal(403);
    await browsing().expectAccessible();
    await page.getByRole('button', { name: 'I have saved it' }).click();
    const row = page.getByRole('row', { name: /deployment.*tasks:read.*in 29 days/ });
    await row.waitFor();
    await page.getByRole('row', { name: /deployment.*(now|ago)/ }).waitFor();
    await browsing().expectAccessible();
    await row.getByRole('button', { name: 'Revoke deployment' }).click();
    await browsing().answer('Revoke');
    await page.getByText('No API keys.').waitFor();
    expect((await user.get('/tasks')).status).to.equal(401);
    const refused = complaints.filter((each) => !each.includes('400'));
    expect(refused).to.deep.equal([]);
  });

  it('sets a secret with the keyboard only, and never shows its value', async () => {
    const { page, complaints } = browsing();
    await browsing().logIn(await agent('keeper', ['secrets:write']), 'secrets');
    await page.getByText('No secrets.').waitFor();
    await tabTo(page, 'New secret');
    await page.keyboard.press('Enter');
    await heading(page, 'New secret');
    await tabTo(page, 'Name');
    await page.keyboard.type('API_TOKEN');
    await tabTo(page, 'Value');
    await page.keyboard.type('open sesame 4711');
    await tabTo(page, 'May be sent to (one host per line)');
    await page.keyboard.type('api.example.com:443');
    await tabTo(page, 'Expires');
    await page.keyboard.type('30');
    await tabTo(page, 'Set');
    await page.keyboard.press('Enter');
    await heading(page, 'Secrets');
    await page
      .getByRole('row', { name: /API_TOKEN 1 api\.example\.com:443 .*in 29 days/ })
      .waitFor();
    expect(await page.content()).not.to.contain('sesame');
    expect(complaints).to.deep.equal([]);
  });

  it('replaces a secret, limits it to tasks, and deletes it', async () => {
    const { page, complaints } = browsing();
    const { client, credentials } = service();
    const expires_at = new Date(Date.now() + 3 * 86_400_000).toISOString();
    await client.put('/secrets/OTHER_TOKEN', {
      value: 'first',
      allow_hosts: ['a.example'],
      expires_at,
    });
    const headers = { token: '${secrets.OTHER_TOKEN}' };
    const step = { uses: 'http.request', with: { url: 'https://a.example/', headers } };
    const task = await client.post('/tasks', {
      title: 'May use it',
      description: '-',
      schedule_kind: 'event',
      created_by: credentials.agent_id,
      payload: { pipeline: [step] },
    });
    expect(task.status, task.text).to.equal(201);
    await browsing().logIn(credentials, 'secrets');
    const row = page.getByRole('row', { name: /OTHER_TOKEN/ });
    await row.filter({ hasText: /soon\s*in 2 days\s*never/ }).waitFor();
    await browsing().expectAccessible();
    await row.getByRole('link', { name: 'Replace OTHER_TOKEN' }).click();
    await heading(page, 'Replace OTHER_TOKEN');
    const using = page.locator('section', { hasText: 'Tasks that use it' });
    await using.getByRole('link', { name: 'May use it' }).waitFor();
    // The form does not offer its lifetime, so it shows the instant.
    expect(await page.getByLabel('Expires').inputValue()).to.equal('at');
    await page.getByLabel('At', { exact: true }).fill('2020-01-01T00:00:00');
    const hosts = page.getByLabel('May be sent to (one host per line)');
    expect(await hosts.inputValue()).to.equal('a.example');
    await hosts.fill('https://a.example/path');
    await page.getByLabel('Value').fill('second');
    await page.getByLabel('Used by').selectOption('some');
    await page.getByLabel('Find a task').fill('May use');
    await page.getByRole('button', { name: 'Add May use it' }).click();
    await page.getByRole('button', { name: 'Leave out May use it' }).waitFor();
    await browsing().expectAccessible();
    await page.getByRole('button', { name: 'Replace' }).click();
    await page.locator('#field-allow-hosts[aria-invalid=true]').waitFor();
    await hosts.fill('');
    await page.getByRole('button', { name: 'Replace' }).click();
    await page.getByText('must be in the future').waitFor();
    await page.getByLabel('Expires').selectOption('');
    await page.getByRole('button', { name: 'Replace' }).click();
    await row.filter({ hasText: 'nowhere' }).getByRole('link', { name: 'May use it' }).waitFor();
    await row.getByRole('cell', { name: '2', exact: true }).waitFor();
    await row.getByRole('button', { name: 'Delete OTHER_TOKEN' }).click();
    await browsing().answer('Delete', 'no longer needed');
    await row.waitFor({ state: 'detached' });
    expect((await client.get('/secrets/OTHER_TOKEN')).status).to.equal(404);
    expect(complaints.filter((each) => !each.includes('400'))).to.deep.equal([]);
  });

  it('offers no changes to a reader of secrets, and rotates the key for an admin', async () => {
    const { page, complaints } = browsing();
    await service().client.put('/secrets/READ_ONLY', { value: 'x' });
    await browsing().logIn(await agent('only a reader', ['secrets:read']), 'secrets');
    await page.getByRole('row', { name: /READ_ONLY/ }).waitFor();
    await page.getByRole('link', { name: 'READ_ONLY' }).click();
    await heading(page, 'READ_ONLY');
    expect(await page.getByRole('button', { name: 'Replace' }).count()).to.equal(0);
    await page.goBack();
    expect(await page.getByRole('button', { name: /Delete|Rotate/ }).count()).to.equal(0);
    expect(await page.getByRole('link', { name: /Replace|New secret/ }).count()).to.equal(0);
    await browsing().open();
    await browsing().logIn(service().credentials, 'secrets');
    await page.getByRole('button', { name: 'Rotate the key …' }).click();
    await browsing().answer('Rotate', 'yearly');
    await page.getByText('All secrets are now encrypted with the present key.').waitFor();
    expect(complaints).to.deep.equal([]);
  });

  it('creates a namespace with an agent, shows what it uses, and deletes it', async () => {
    const { page, complaints } = browsing();
    await browsing().logIn(service().credentials, 'namespaces');
    await page.getByRole('row', { name: /default/ }).waitFor();
    await page.getByRole('link', { name: 'New namespace' }).click();
    await page.getByLabel('Name', { exact: true }).fill('reports');
    await page.getByLabel('Description').fill('Of the reporting team');
    await page.getByRole('button', { name: 'Create' }).click();
    await heading(page, 'Namespace reports');
    await page.getByRole('row', { name: /^agents 0 1 .*free/ }).waitFor();
    await browsing().expectAccessible();
    await page.getByRole('link', { name: 'Set quotas' }).click();
    await page.getByLabel('Tasks', { exact: true }).fill('-1');
    await page.getByRole('button', { name: 'Save' }).click();
    await page.locator('#field-tasks[aria-invalid=true]').waitFor();
    await browsing().expectAccessible();
    await page.getByLabel('Tasks', { exact: true }).fill('7');
    await page.getByRole('button', { name: 'Save' }).click();
    await page.getByRole('row', { name: /^tasks 0 7 .*free/ }).waitFor();
    await browsing().goTo('agents/new');
    await page.getByLabel('Name', { exact: true }).fill('lead');
    await page.getByLabel('Namespace (permanent)').selectOption('reports');
    await page.getByRole('button', { name: 'Add' }).click();
    await heading(page, 'lead');
    await page.getByRole('definition').getByRole('link', { name: 'reports' }).click();
    await page.getByRole('row', { name: /^agents 1 1 (?!.*nearly).*used up/ }).waitFor();
    await browsing().expectAccessible();
    await page.getByRole('button', { name: 'Delete …' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByRole('button', { name: 'Delete …' }).click();
    await dialog
      .getByRole('alert')
      .filter({ hasText: /agents/ })
      .waitFor();
    await dialog.getByRole('button', { name: 'Back' }).click();
    const { list } = await service().client.get('/agents?namespace=reports');
    await service().client.delete(`/agents/${String(list[0]?.['id'])}`);
    await page.getByRole('button', { name: 'Delete …' }).click();
    await dialog.getByRole('button', { name: 'Delete …' }).click();
    await heading(page, 'Namespaces');
    expect(await page.getByRole('row', { name: /reports/ }).count()).to.equal(0);
    expect(complaints.filter((each) => !/ (400|409) /.test(each))).to.deep.equal([]);
  });
});
