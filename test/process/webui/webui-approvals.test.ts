import { expect } from 'chai';
import type { Credentials } from '../../support/service-process.ts';
import { eventually, found } from '../../support/signals.ts';
import { useBrowser } from './webui-browser.ts';
import { enter, expectFocus, tabTo } from './webui-keyboard.ts';
import { useService } from './webui-service.ts';

describe('approvals in the web page', function () {
  this.timeout(300_000);
  const service = useService();
  const browsing = useBrowser(() => service().process.address);

  /** Runs a new task with one step that asks for an approval. @returns the run's id, once it waits */
  async function ask(message: string, fields: object = {}): Promise<string> {
    const { client, credentials } = service();
    const pipeline = [{ id: 'chief', uses: 'approval', with: { message, ...fields } }];
    const made = await client.post('/tasks', {
      title: `Asks: ${message}`,
      description: '-',
      schedule_kind: 'event',
      created_by: credentials.agent_id,
      payload: { pipeline },
      max_retries: 0,
    });
    expect(made.status, made.text).to.equal(201);
    const ran = await client.post(`/tasks/${made.textAt('id')}/run_now`);
    return ran.textAt('details.run_id');
  }

  /** A new agent with these scopes. */
  async function agent(name: string, scopes: readonly string[]): Promise<Credentials> {
    const path = `/agents/${(await service().client.post('/agents', { name, scopes })).textAt('id')}`;
    const { json } = await service().client.post(`${path}/credentials`, {});
    const { agent_id, agent_secret } = json as unknown as Credentials;
    return { agent_id, agent_secret };
  }

  // The overview of a service in which nothing has run is a guide.
  before(async () => {
    const { client, credentials } = service();
    const made = await client.post('/tasks', {
      title: 'Says hello',
      description: '-',
      schedule_kind: 'event',
      created_by: credentials.agent_id,
      payload: { pipeline: [] },
    });
    await client.post(`/tasks/${made.textAt('id')}/run_now?wait=30`);
  });

  it('appear while the list is open, and are approved there with a comment', async () => {
    const { page, complaints } = browsing();
    await browsing().logIn(service().credentials);
    const tile = page.locator('a.tile', { hasText: 'To approve' });
    await tile.filter({ hasText: /0$/ }).click();
    await page.getByText('Nothing is waiting for approval.').waitFor();
    await page.locator('.live[data-how=live]').waitFor();
    const run = await ask('Pay the rent?');
    const row = page.getByRole('row', { name: /Pay the rent\?/ });
    await row.getByText('approvals:write').waitFor();
    await browsing().expectAccessible();
    await page.goBack();
    await tile.filter({ hasText: /1$/ }).click();
    await row.getByRole('button', { name: 'Approve: Pay the rent? (chief)' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByLabel('Comment').fill('in time');
    await browsing().answer('Approve');
    await page.getByText('Nothing is waiting for approval.').waitFor();
    await page.getByLabel('State').selectOption('approved');
    await row.getByText('in time').waitFor();
    expect(await row.getByRole('button').count()).to.equal(0);
    await row.getByRole('link', { name: run.slice(0, 8) }).click();
    await page.locator('.view-head .state', { hasText: 'succeeded' }).waitFor();
    expect(complaints).to.deep.equal([]);
  });

  it('are approved with the keyboard only', async () => {
    const { page, complaints } = browsing();
    await ask('Without a mouse?');
    await browsing().logIn(service().credentials, 'approvals');
    const row = page.getByRole('row', { name: /Without a mouse\?/ });
    await row.waitFor();
    await tabTo(page, 'Approve: Without a mouse? (chief)');
    await page.keyboard.press('Enter');
    await page.getByRole('dialog').waitFor();
    await page.keyboard.type('typed');
    await tabTo(page, 'Approve');
    await page.keyboard.press('Enter');
    await row.waitFor({ state: 'detached' });
    expect(complaints).to.deep.equal([]);
  });

  it("are rejected on the run's page, whose step then fails", async () => {
    const { page, complaints } = browsing();
    const run = await ask('Dismiss them?');
    await browsing().logIn(service().credentials, `runs/${run}`);
    await page.getByRole('button', { name: 'Reject: Dismiss them? (chief)' }).click();
    await page.getByRole('dialog').getByLabel('Comment').fill('not now');
    await browsing().answer('Reject');
    await page.locator('.view-head .state', { hasText: 'failed' }).waitFor();
    await page
      .locator('main')
      .getByText(/: not now/)
      .first()
      .waitFor();
    expect(await page.getByRole('button', { name: /Dismiss them/ }).count()).to.equal(0);
    expect(complaints).to.deep.equal([]);
  });

  it('are decided only by their approvers', async () => {
    const { page, complaints } = browsing();
    const approver = await agent('approver', ['tasks:read', 'runs:read']);
    await ask('Named?', { approvers: [approver.agent_id] });
    await ask('Scoped?', { approvers: ['scope:runs:read'] });
    await ask('Anybody?');
    await browsing().logIn(approver, 'approvals');
    await page.getByRole('button', { name: 'Approve: Named? (chief)' }).waitFor();
    await page.getByRole('button', { name: 'Approve: Scoped? (chief)' }).waitFor();
    const other = page.getByRole('row', { name: /Anybody\?/ });
    await other.waitFor();
    expect(await other.getByRole('button').count()).to.equal(0);
    expect(complaints).to.deep.equal([]);
  });

  it('show the names of their approvers and of the decider, even to an agent that may read no other agent', async () => {
    const { page, complaints } = browsing();
    const reader = await agent('only reads', ['tasks:read', 'runs:read']);
    const namesake = await agent('the treasurer', ['tasks:read']);
    const run = await ask('Sign it?', { approvers: [namesake.agent_id, 'scope:admin'] });
    await browsing().logIn(reader, `approvals?run_id=${run}`);
    const row = page.getByRole('row', { name: /Sign it\?/ });
    await row.getByText('the treasurer').waitFor();
    const { json } = await service().client.get(`/approvals?run_id=${run}`);
    const [{ id }] = json['items'] as [{ readonly id: string }];
    await service().client.post(`/approvals/${id}/approve`, { comment: 'as agreed' });
    await page.getByText('Nothing is waiting for approval.').waitFor();
    await page.getByLabel('State').selectOption('approved');
    await row.getByText(/^admin, /).waitFor();
    await row.getByText('as agreed').waitFor();
    expect(page.url()).to.contain('state=approved').and.contain(`run_id=${run}`);
    await page.getByRole('link', { name: 'all', exact: true }).click();
    await page.getByLabel('State').waitFor();
    expect(page.url()).not.to.contain(run);
    expect(complaints).to.deep.equal([]);
  });

  it("have an address each, which shows another agent's decision as soon as it is made", async () => {
    const { page, complaints } = browsing();
    const run = await ask('Alone?');
    const { client } = service();
    const id = await found(async () => {
      const first = (await client.get(`/approvals?run_id=${run}`)).at('items.0.id');
      return typeof first === 'string' ? first : null;
    });
    await page.clock.install();
    await browsing().logIn(service().credentials, `approvals/${id}`);
    await page.getByRole('heading', { level: 1, name: 'Alone?' }).waitFor();
    await page.locator('.live[data-how=live]').waitFor();
    // While its clock stands still, the view does not read again by itself.
    await page.clock.pauseAt(Date.now() + 60_000);
    expect((await client.post(`/approvals/${id}/approve`, { comment: 'yes' })).status).to.equal(
      200,
    );
    const state = page.locator('.view-head .state', { hasText: 'approved' });
    await eventually(async () => {
      await page.clock.runFor(10);
      return (await state.count()) === 1;
    });
    await page.getByRole('definition').filter({ hasText: 'yes' }).waitFor();
    expect(await page.getByRole('button', { name: /Alone/ }).count()).to.equal(0);
    await page.getByRole('link', { name: run.slice(0, 8) }).click();
    await page.getByRole('heading', { level: 1, name: /^Run of/ }).waitFor();
    await browsing().goTo(`approvals/${run}`);
    await page.getByRole('heading', { level: 1, name: 'Not found' }).waitFor();
    expect(complaints.filter((each) => !each.includes('404'))).to.deep.equal([]);
  });

  it('return the focus to the question if another agent decides while the dialog is open', async () => {
    const { page, complaints } = browsing();
    const run = await ask('Already done?');
    const { client } = service();
    const id = await found(async () => {
      const first = (await client.get(`/approvals?run_id=${run}`)).at('items.0.id');
      return typeof first === 'string' ? first : null;
    });
    await browsing().logIn(service().credentials, `approvals/${id}`);
    await page.locator('.live[data-how=live]').waitFor();
    await enter(page, 'Approve: Already done? (chief)');
    await expectFocus(page, 'Comment');
    expect((await client.post(`/approvals/${id}/reject`)).status).to.equal(200);
    await page.locator('.view-head .state', { hasText: 'rejected' }).waitFor();
    await page.keyboard.press('Escape');
    await expectFocus(page, 'Asks: Already done?');
    expect(complaints).to.deep.equal([]);
  });

  it("show the service's message if they could not be decided", async () => {
    const { page } = browsing();
    const chief = await agent('chief', ['tasks:read', 'runs:read', 'approvals:write']);
    const run = await ask('Too late?');
    await browsing().logIn(chief, `runs/${run}`);
    const { client } = service();
    const button = page.getByRole('button', { name: 'Approve: Too late? (chief)' });
    await button.click();
    const dialog = page.getByRole('dialog');
    const agentPath = `/agents/${chief.agent_id}`;
    const changed = await client.put(agentPath, { scopes: ['tasks:read', 'runs:read'] });
    expect(changed.status, changed.text).to.equal(200);
    await dialog.getByRole('button', { name: 'Approve', exact: true }).click();
    await dialog.getByText('this needs the scope approvals:write').waitFor();
    const { json } = await client.get(`/approvals?run_id=${run}`);
    const [{ id }] = json['items'] as [{ readonly id: string }];
    await client.put(agentPath, { scopes: ['tasks:read', 'runs:read', 'approvals:write'] });
    expect((await client.post(`/approvals/${id}/approve`)).status).to.equal(200);
    await dialog.getByRole('button', { name: 'Approve', exact: true }).click();
    await dialog.getByText('the step no longer waits').waitFor();
  });
});
