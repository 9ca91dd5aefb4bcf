import { expect } from 'chai';
import { found } from '../../support/signals.ts';
import { atNoon, useBrowser } from './webui-browser.ts';
import { useService } from './webui-service.ts';

interface Fire {
  readonly reason: string;
  readonly from: string;
}

describe('the page of a task', function () {
  this.timeout(300_000);
  const service = useService();
  const browsing = useBrowser(() => service().process.address, atNoon());

  const yearly = '0 5 1 1 *';

  /** @returns its id */
  async function makeTask(title: string, fields: object = {}): Promise<string> {
    const made = await service().client.post('/tasks', {
      title,
      description: 'Looked at',
      created_by: service().credentials.agent_id,
      schedule_kind: 'cron',
      schedule_expr: yearly,
      payload: { pipeline: [] },
      ...fields,
    });
    expect(made.status, made.text).to.equal(201);
    return made.textAt('id');
  }
  const firesOf = async (id: string): Promise<readonly Fire[]> => {
    const span = `from=${new Date(Date.now() - 600_000).toISOString()}&to=${new Date().toISOString()}`;
    const { json } = await service().client.get(`/tasks/${id}/fires?${span}`);
    return json['items'] as readonly Fire[];
  };
  const decided = (id: string, reason: string): Promise<Fire> =>
    found(async () => (await firesOf(id)).find((fire) => fire.reason === reason) ?? null, {
      what: `a fire to be ${reason}`,
    });

  it('shows the past decisions in its calendar, whatever the present schedule is', async () => {
    const { page, complaints } = browsing();
    const { client } = service();
    const id = await makeTask('Once each second', { schedule_expr: '* * * * * *' });
    const { from: fired } = await decided(id, 'fired');
    await client.post(`/tasks/${id}/pause`, {}, { headers: { 'x-reason': 'a look' } });
    await found(
      async () => {
        const { json } = await client.get(`/tasks/${id}/explain?at=${new Date().toISOString()}`);
        return /holds back the fire/.test(String(json['message'])) ? true : null;
      },
      { what: 'a fire to be held back' },
    );
    await client.post(`/tasks/${id}/resume?missed=skip`);
    const { from: gap } = await decided(id, 'paused');
    await client.put(`/tasks/${id}`, { schedule_expr: yearly });
    await browsing().logIn(service().credentials, `tasks/${id}?tab=calendar`);
    const zone = await page.evaluate<string>('Intl.DateTimeFormat().resolvedOptions().timeZone');
    await page.getByText(`Days are in the time zone ${zone}.`).waitFor();
    // Days before the task was created are empty, although its schedule starts earlier.
    const today = page.locator('.day.today');
    await today.getByText(/succeeded/).waitFor();
    expect(await page.getByRole('button', { name: /succeeded|did not run/ }).count()).to.equal(1);
    await browsing().expectAccessible();
    await page.getByRole('button', { name: 'Year', exact: true }).click();
    await today.getByText(/succeeded/).waitFor();
    expect(page.url()).to.include('by=year');
    await browsing().expectAccessible();
    await today.click();
    await page.locator('.day').nth(27).waitFor();
    await today.click();
    await page.getByRole('heading', { level: 3 }).first().waitFor();
    const explanation = page.locator('#explanation');
    await page.locator(`button[title="${gap}"]`).click();
    await explanation.getByText('because the task was paused').waitFor();
    await explanation.getByText('a look').waitFor();
    expect(new URL(page.url().replace('#/', '')).searchParams.get('at')).to.equal(gap);
    await browsing().expectAccessible();
    await page.locator(`button[title="${fired}"]`).click();
    await explanation.getByText('ran.').waitFor();
    await page.reload();
    await explanation.getByText('ran.').waitFor();
    expect(complaints).to.deep.equal([]);
  });

  it('lists on a day all runs that its calendar counts, whether or not they started', async () => {
    const { page, complaints } = browsing();
    const { client } = service();
    const id = await makeTask('Overlaps', { overlap_policy: 'skip' });
    const runNow = async (): Promise<string> =>
      (await client.post(`/tasks/${id}/run_now`)).textAt('details.run_id');
    await client.post('/operations/hold', { reason: 'so that it stays queued' });
    const queued = await runNow();
    // More than one page of the list.
    for (let n = 0; n < 101; n += 1) await runNow();
    await client.post(`/runs/${queued}/cancel`, {});
    await client.post('/operations/release', {});
    await client.post(`/tasks/${id}/run_now?wait=20`);
    await browsing().logIn(service().credentials, `tasks/${id}?tab=calendar`);
    const today = page.locator('.day.today');
    await today.getByText(/1 succeeded, 101 did not run, 1 canceled/).waitFor();
    await browsing().expectAccessible();
    await today.click();
    const rows = page.locator('.day-list tbody tr');
    await rows.getByText('succeeded').waitFor();
    expect(await rows.count()).to.equal(101);
    await page.getByRole('button', { name: 'Earlier ones' }).click();
    await found(async () => ((await rows.count()) === 103 ? true : null), { what: '103 rows' });
    await rows.getByText('canceled').waitFor();
    await page.getByRole('button', { name: 'Earlier ones' }).waitFor({ state: 'detached' });
    // Going back shows as many again.
    await rows.getByRole('link', { name: /^run/ }).last().click();
    await page.getByRole('heading', { level: 1, name: 'Run of' }).waitFor();
    await page.goBack();
    await found(async () => ((await rows.count()) === 103 ? true : null), { what: '103 rows' });
    expect(complaints).to.deep.equal([]);
  });

  it('says who paused it or postponed its next fire, when and why', async () => {
    const { page } = browsing();
    const { client } = service();
    const id = await makeTask('Held');
    const because = (reason: string) => ({ headers: { 'x-reason': reason } });
    await client.post(`/tasks/${id}/snooze`, { delay_seconds: 60 }, because('a long night'));
    await browsing().logIn(service().credentials, `tasks/${id}`);
    await page.getByText(/by admin at .*: a long night/).waitFor();
    await client.post(`/tasks/${id}/pause`, {}, because('moving house'));
    await page.getByText(/by admin at .*: moving house/).waitFor();
    expect(await page.getByText('a long night').count()).to.equal(0);
  });

  it('shows an unfinished backfill, and cancels it', async () => {
    const { page, complaints } = browsing();
    const { client, credentials } = service();
    await client.post('/operations/hold', { reason: 'so that it does not end' });
    const id = await makeTask('Fills up', { schedule_expr: '* * * * *' });
    const span = { from: '2026-01-01T00:00:00Z', to: '2026-01-01T01:00:00Z', concurrency: 1 };
    expect((await client.post(`/tasks/${id}/backfill`, span)).status).to.be.below(300);
    await browsing().logIn(credentials, `tasks/${id}?tab=calendar`);
    const backfill = page.getByRole('region', { name: 'Backfills' }).getByRole('row').last();
    await backfill.getByText('running').waitFor();
    await backfill.getByRole('button', { name: 'Cancel' }).click();
    await browsing().answer('Cancel the backfill', 'not needed');
    await backfill.getByText('canceled').waitFor();
    await client.post('/operations/release', {});
    expect(complaints).to.deep.equal([]);
  });

  it('flags a misspelt tool during typing, and suggests names of fields and tools', async () => {
    const { page, complaints } = browsing();
    await browsing().logIn(service().credentials, 'tasks/new');
    const payload = page.getByLabel('Pipeline (JSON)');
    const findings = page.locator('#findings');
    await payload.fill('{"pipeline": [{"uses": "ehco"}]}');
    await findings.getByText('no tool named ehco is registered; did you mean echo?').waitFor();
    await browsing().expectAccessible();
    await payload.fill('{"pipeline": [{"uses": "echo", "with": {"url": 1}}]}');
    await findings.getByText(/ehco/).waitFor({ state: 'detached' });
    await payload.fill('');
    await payload.pressSequentially('{"pip');
    const offered = page.getByRole('listbox');
    await offered.getByRole('option', { name: /^pipeline/ }).waitFor();
    await browsing().expectAccessible();
    await payload.press('Enter');
    await payload.pressSequentially('[{"us');
    await offered.getByRole('option', { name: /^uses/ }).waitFor();
    await payload.press('Enter');
    await payload.pressSequentially('"http');
    await offered.getByRole('option', { name: /^http\.request/ }).click();
    await payload.pressSequentially(', "with": {"ur');
    await payload.press('Tab');
    await payload.pressSequentially('"https://shop.example"}}]}');
    expect(JSON.parse(await payload.inputValue())).to.deep.equal({
      pipeline: [{ uses: 'http.request', with: { url: 'https://shop.example' } }],
    });
    expect(complaints).to.deep.equal([]);
  });

  it('flags a misspelt tool key by key, long before the JSON is complete', async () => {
    const { page, complaints } = browsing();
    await browsing().logIn(service().credentials, 'tasks/new');
    const payload = page.getByLabel('Pipeline (JSON)');
    const findings = page.locator('#findings');
    const flagged = (field: string, tool: string, meant: string): Promise<void> =>
      findings
        .getByText(`${field}.uses: no tool named ${tool} is registered; did you mean ${meant}?`)
        .waitFor();
    await payload.fill('');
    await payload.pressSequentially(
      '{"pipeline": [{"id": "a", "with": {"uses": "x"}, "uses": "ehco"',
    );
    await flagged('payload.pipeline.0', 'ehco', 'echo');
    await payload.pressSequentially(
      '}, {"id": "b"}, {"parallel": [{"id": "c"}, {"uses": "tranform", ',
    );
    await flagged('payload.pipeline.2.parallel.1', 'tranform', 'transform');
    expect(await findings.locator('li').count()).to.equal(2);
    await payload.fill('{"pipeline": [{"uses": "echo", ');
    await findings.locator('li').first().waitFor({ state: 'detached' });
    expect(complaints).to.deep.equal([]);
  });

  it('checks changes in a dry run, compares revisions, restores one, and starts a copy', async () => {
    const { page, complaints } = browsing();
    const id = await makeTask('First', { tags: ['kept'] });
    await service().client.put(`/tasks/${id}`, { title: 'Second', priority: 2 });
    await browsing().logIn(service().credentials, `tasks/${id}`);
    await page.getByRole('navigation', { name: 'Of this task' }).getByText('Definition').click();
    await page.getByLabel('Title').fill('Third');
    await page.getByRole('textbox', { name: 'Schedule' }).fill('0 6 * * *');
    await page.getByRole('button', { name: 'Dry run' }).click();
    const dryRun = page.locator('#dry-run');
    await dryRun.getByText('it can be saved').waitFor();
    await dryRun.getByText('at 06:00, every day').waitFor();
    await dryRun.getByText('"Third"').waitFor();
    await browsing().expectAccessible();
    await page.getByRole('textbox', { name: 'Schedule' }).fill('0 0 30 2 *');
    await page.getByRole('button', { name: 'Dry run' }).click();
    await dryRun.getByText('has no future fire').waitFor();
    expect((await service().client.get(`/tasks/${id}`)).at('title')).to.equal('Second');
    await page.getByRole('button', { name: 'Compare revision 0' }).click();
    const differences = page.getByRole('region', { name: 'Differences' });
    await differences.getByText('"First"').waitFor();
    await differences.getByText('"Second"').waitFor();
    // The address of a comparison can be shared. Unsaved input comes back too.
    expect(page.url()).to.match(/tab=definition&compare=0$/);
    await page.reload();
    await differences.getByText('"First"').waitFor();
    await browsing().expectAccessible();
    await page.getByRole('button', { name: 'Restore this revision … 0' }).click();
    await page.getByRole('dialog').getByText('2 fields would change').waitFor();
    await browsing().expectAccessible();
    await browsing().answer('Restore', 'it was better');
    await page.getByRole('heading', { level: 1, name: 'First' }).waitFor();
    const { json } = await service().client.get(`/tasks/${id}`);
    expect(json).to.deep.include({ title: 'First', priority: 5, tags: ['kept'], revision: 2 });
    await page.getByRole('row', { name: /it was better/ }).waitFor();
    expect(await page.getByLabel('Title').inputValue()).to.equal('First');
    await page.getByRole('link', { name: 'Duplicate' }).click();
    await page.getByRole('heading', { level: 1, name: 'New task' }).waitFor();
    expect(await page.getByLabel('Title').inputValue()).to.equal('Copy of First');
    await page.getByRole('button', { name: 'Create' }).click();
    await page.getByRole('heading', { level: 1, name: 'Copy of First' }).waitFor();
    expect(complaints).to.deep.equal([]);
  });
});
