import { expect } from 'chai';
import { eventually } from '../../support/signals.ts';
import { useBrowser } from './webui-browser.ts';
import { useService } from './webui-service.ts';

describe('the search and the keys of the web page', function () {
  this.timeout(120_000);
  const service = useService();
  const browsing = useBrowser(() => service().process.address);
  let run: string;

  before(async () => {
    const { client, credentials } = service();
    for (const title of ['Send the invoices', 'Send the reminders']) {
      const made = await client.post('/tasks', {
        ...{ title, description: 'sought', created_by: credentials.agent_id },
        ...{ schedule_kind: 'event', schedule_expr: 'never.published' },
        payload: { pipeline: [{ uses: 'echo' }] },
      });
      const ran = await client.post(`/tasks/${made.textAt('id')}/run_now?wait=20`);
      if (title.endsWith('invoices')) run = ran.textAt('details.run_id');
    }
  });

  it('finds tasks, runs, agents, views and actions, by keyboard alone', async () => {
    const { page, complaints } = browsing();
    const { keyboard } = page;
    await browsing().logIn(service().credentials);
    const dialog = page.getByRole('dialog', { name: 'Search' });
    const chosen = dialog.getByRole('option', { selected: true });
    const search = async (words: string): Promise<void> => {
      await keyboard.press('Control+K');
      await dialog.waitFor();
      await keyboard.type(words);
    };
    await search('the invo');
    await dialog.getByRole('group', { name: 'Tasks' }).getByText('Send the invoices').waitFor();
    await dialog.getByRole('group', { name: 'Runs' }).getByText(run.slice(0, 8)).waitFor();
    await browsing().expectAccessible();
    await keyboard.press('Enter');
    await page.getByRole('heading', { level: 1, name: 'Send the invoices' }).waitFor();
    await search('the invo');
    await dialog.getByText(run.slice(0, 8)).waitFor();
    await keyboard.press('ArrowDown');
    await chosen.getByText(run.slice(0, 8)).waitFor();
    await keyboard.press('Enter');
    await page.getByRole('heading', { level: 1, name: 'Run of Send the invoices' }).waitFor();
    await search(run.slice(0, 20));
    await dialog.getByRole('group', { name: 'Runs' }).getByRole('option').waitFor();
    await keyboard.press('Escape');
    await dialog.waitFor({ state: 'detached' });
    await search('admin');
    await dialog.getByRole('group', { name: 'Agents' }).getByRole('option').first().waitFor();
    await keyboard.press('Enter');
    await page.getByRole('heading', { level: 1, name: 'admin' }).waitFor();
    await search('workers');
    await dialog.getByRole('group', { name: 'Views' }).getByText('Workers').waitFor();
    await eventually(async () => (await page.locator('[role=option]').count()) === 1);
    await keyboard.press('Enter');
    await page.getByRole('heading', { level: 1, name: 'Workers' }).waitFor();
    await search('hold');
    await chosen.getByText('Hold the service …').waitFor();
    await keyboard.press('Enter');
    await page.getByRole('dialog', { name: 'Put the whole service on hold?' }).waitFor();
    await keyboard.press('Escape');
    await search('no such thing');
    await dialog.getByText('Nothing is called “no such thing”.').waitFor();
    await browsing().expectAccessible();
    expect(complaints).to.deep.equal([]);
  });

  it('offers nothing that the agent may not do', async () => {
    const { page } = browsing();
    const { client } = service();
    const made = await client.post('/agents', { name: 'looker', scopes: ['runs:read'] });
    const given = await client.post(`/agents/${made.textAt('id')}/credentials`, {});
    const { agent_id, agent_secret } = given.json as { agent_id: string; agent_secret: string };
    await browsing().logIn({ agent_id, agent_secret });
    await page.getByRole('button', { name: 'Search' }).click();
    const dialog = page.getByRole('dialog', { name: 'Search' });
    await dialog.getByText('Dark colours').waitFor();
    for (const name of ['New task', 'Hold the service …', 'Tasks', 'Secrets']) {
      expect(await dialog.getByText(name, { exact: true }).count(), name).to.equal(0);
    }
  });

  it('moves in lists, opens rows, goes to the search of the view, and shows the keys', async () => {
    const { page, complaints } = browsing();
    const { keyboard } = page;
    await browsing().logIn(service().credentials, 'tasks');
    await page.getByRole('link', { name: 'Send the invoices' }).waitFor();
    const focused = (): Promise<string> =>
      page.evaluate<string>('document.activeElement.textContent.trim()');
    await keyboard.press('j');
    expect(await focused()).to.equal('Send the reminders');
    await keyboard.press('j');
    expect(await focused()).to.equal('Send the invoices');
    await keyboard.press('j');
    expect(await focused()).to.equal('Send the invoices');
    await keyboard.press('k');
    expect(await focused()).to.equal('Send the reminders');
    await keyboard.press('/');
    await keyboard.type('jk/?');
    expect(await page.getByRole('searchbox', { name: 'Search in titles' }).inputValue()).to.equal(
      'jk/?',
    );
    await page.getByRole('searchbox', { name: 'Search in titles' }).fill('reminders');
    await page.getByText('1 task', { exact: true }).waitFor();
    await page.getByRole('searchbox', { name: 'Search in titles' }).blur();
    await keyboard.press('j');
    await keyboard.press('Enter');
    await page.getByRole('heading', { level: 1, name: 'Send the reminders' }).waitFor();
    await keyboard.press('?');
    const keys = page.getByRole('dialog', { name: 'Keys' });
    await keys.getByText('next row of a list').waitFor();
    await browsing().expectAccessible();
    await keys.getByLabel('Single keys').uncheck();
    await keyboard.press('Escape');
    await keys.waitFor({ state: 'detached' });
    await keyboard.press('?');
    await keyboard.press('Control+K');
    await page.getByRole('dialog', { name: 'Search' }).waitFor();
    expect(await keys.count()).to.equal(0);
    expect(complaints).to.deep.equal([]);
  });
});
