import { expect } from 'chai';
import { useBrowser } from './webui-browser.ts';
import { overwrite, tabTo } from './webui-keyboard.ts';
import { useService } from './webui-service.ts';

describe('the search and the keyboard shortcuts of the web page', function () {
  this.timeout(300_000);
  const service = useService();
  const browsing = useBrowser(() => service().process.address);
  let run: string;
  let failed: string;

  before(async () => {
    const { client, credentials } = service();
    const runOf = async (title: string, step: object, params: object = {}): Promise<string> => {
      const made = await client.post('/tasks', {
        title,
        description: 'sought',
        created_by: credentials.agent_id,
        max_retries: 0,
        schedule_kind: 'event',
        schedule_expr: 'never.published',
        payload: { pipeline: [step] },
      });
      const ran = await client.post(`/tasks/${made.textAt('id')}/run_now?wait=20`, { params });
      return ran.textAt('details.run_id');
    };
    const message = 'tray 7 is empty';
    failed = await runOf('Print', { uses: 'fail', with: { message } }, { letter: 'Näslund-77' });
    run = await runOf('Send the invoices', { uses: 'echo' });
    await runOf('Send the reminders', { uses: 'echo' });
  });

  it('find tasks, runs, agents, views and actions, by keyboard alone', async () => {
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
    await dialog
      .getByRole('group', { name: 'Runs', exact: true })
      .getByText(run.slice(0, 8))
      .waitFor();
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
    await dialog.getByRole('group', { name: 'Runs', exact: true }).getByRole('option').waitFor();
    await keyboard.press('Escape');
    await dialog.waitFor({ state: 'detached' });
    await search('admin');
    await dialog.getByRole('group', { name: 'Agents' }).getByRole('option').first().waitFor();
    await keyboard.press('Enter');
    await page.getByRole('heading', { level: 1, name: 'admin' }).waitFor();
    await search('workers');
    await dialog.getByRole('group', { name: 'Views' }).getByText('Workers').waitFor();
    await dialog.getByText('1 result', { exact: true }).waitFor();
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

  it('find errors and owners, and offer to search runs by error, input and event', async () => {
    const { page, complaints } = browsing();
    const { keyboard } = page;
    await browsing().logIn(service().credentials);
    const dialog = page.getByRole('dialog', { name: 'Search' });
    const listed = page.getByRole('link', { name: failed.slice(0, 8), exact: true });
    const search = async (words: string): Promise<void> => {
      await keyboard.press('Control+K');
      await dialog.waitFor();
      await keyboard.type(words);
    };
    const choose = async (group: string, option: RegExp): Promise<void> => {
      await dialog
        .getByRole('group', { name: group })
        .getByRole('option', { name: option })
        .click();
    };
    await search('EMPTY tray');
    await dialog.getByRole('group', { name: 'Errors' }).getByText('1 run in 24 h').waitFor();
    await browsing().expectAccessible();
    await keyboard.press('Enter');
    await listed.waitFor();
    await page.getByRole('button', { name: 'error “tray <n> is empty”, remove' }).waitFor();
    await search('7 is empt');
    await choose('Search runs', /in the error/);
    await listed.waitFor();
    expect(new URL(page.url()).hash).to.equal('#/runs?by=error&q=7+is+empt');
    await search('näslund');
    await dialog.getByText('Nothing is called “näslund”.').waitFor();
    await keyboard.press('ArrowDown');
    await dialog.getByRole('option', { selected: true }).getByText('in the input').waitFor();
    await keyboard.press('Enter');
    await page.waitForURL(/by=input&q=n%C3%A4slund$/);
    await listed.waitFor();
    await search('00000000-0000-7000-8000-000000000000');
    await choose('Search runs', /in the event id/);
    await page.getByText('No run matches.').waitFor();
    await search('admin');
    await choose('Owners', /Tasks of admin/);
    await page.getByRole('button', { name: 'owned by admin, remove' }).waitFor();
    expect(complaints).to.deep.equal([]);
  });

  it('offer nothing that the agent may not do', async () => {
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

  it('move in lists, open rows, go to the search field of the view, and show the shortcuts', async () => {
    const { page, complaints } = browsing();
    const { keyboard } = page;
    await browsing().logIn(service().credentials, 'tasks');
    await page.getByRole('link', { name: 'Send the invoices' }).waitFor();
    const focused = (): Promise<string> =>
      page.evaluate<string>('document.activeElement.textContent.trim()');
    await keyboard.press('j');
    expect(await focused()).to.equal('Send the reminders');
    for (const title of ['Send the invoices', 'Print', 'Print']) {
      await keyboard.press('j');
      expect(await focused()).to.equal(title);
    }
    for (const title of ['Send the invoices', 'Send the reminders']) {
      await keyboard.press('k');
      expect(await focused()).to.equal(title);
    }
    await keyboard.press('/');
    await keyboard.type('jk/?');
    expect(await page.getByRole('searchbox', { name: 'Search in titles' }).inputValue()).to.equal(
      'jk/?',
    );
    await overwrite(page, 'reminders');
    await page.getByText('1 task', { exact: true }).waitFor();
    await keyboard.press('Enter');
    expect(await focused()).to.equal('Send the reminders');
    await keyboard.press('Enter');
    await page.getByRole('heading', { level: 1, name: 'Send the reminders' }).waitFor();
    await keyboard.press('?');
    const keys = page.getByRole('dialog', { name: 'Keyboard shortcuts' });
    await keys.getByText('next row of a list').waitFor();
    await browsing().expectAccessible();
    await tabTo(page, 'Shortcuts of a single key');
    await keyboard.press('Space');
    await keyboard.press('Escape');
    await keys.waitFor({ state: 'detached' });
    await keyboard.press('?');
    await keyboard.press('Control+K');
    await page.getByRole('dialog', { name: 'Search' }).waitFor();
    expect(await keys.count()).to.equal(0);
    expect(complaints).to.deep.equal([]);
  });
});
