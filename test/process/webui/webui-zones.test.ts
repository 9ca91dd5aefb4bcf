import { expect } from 'chai';
import { eventually } from '../../support/signals.ts';
import { useBrowser } from './webui-browser.ts';
import { useService } from './webui-service.ts';

/** Nine hours ahead of UTC, all year. */
const TOKYO = 'Asia/Tokyo';
/** Five and a half hours ahead of UTC, all year. */
const KOLKATA = 'Asia/Kolkata';

describe('the times of the web page', function () {
  this.timeout(300_000);
  const service = useService();
  const browsing = useBrowser(() => service().process.address, { timezoneId: TOKYO });
  let task: string;
  let run: string;

  before(async () => {
    const { client, credentials } = service();
    const made = await client.post('/tasks', {
      title: 'In Kolkata',
      description: 'zoned',
      created_by: credentials.agent_id,
      schedule_kind: 'cron',
      schedule_expr: '30 4 1 1 *',
      timezone: KOLKATA,
      payload: { pipeline: [{ uses: 'echo' }] },
    });
    task = made.textAt('id');
    run = (await client.post(`/tasks/${task}/run_now?wait=20`)).textAt('details.run_id');
  });

  /** The local time of an instant in a zone. */
  const clock = (iso: string, timeZone: string): string =>
    new Intl.DateTimeFormat('en-GB', {
      hour: '2-digit',
      minute: '2-digit',
      second: '2-digit',
      timeZone,
    }).format(new Date(iso));

  it('are in the zone that a person chooses, which is always named', async () => {
    const { page, complaints } = browsing();
    await browsing().logIn(service().credentials, 'runs');
    const zone = page.getByLabel('Zone of the times');
    const option = `document.querySelector('[aria-label="Zone of the times"]').selectedOptions[0]`;
    const chosen = (): Promise<string> => page.evaluate<string>(`${option}.textContent.trim()`);
    expect(await chosen()).to.equal(`${TOKYO} (mine)`);
    await page.getByText('Exact times').click();
    const time = page.getByRole('table').locator('time').first();
    const iso = (await time.getAttribute('datetime')) ?? '';
    expect(await time.textContent()).to.include(clock(iso, TOKYO));
    await zone.selectOption('UTC');
    await page.getByText(clock(iso, 'UTC')).first().waitFor();
    expect(await time.getAttribute('title')).to.include('UTC');
    await page.reload();
    await page.getByText('Exact times').click();
    await page.getByText(clock(iso, 'UTC')).first().waitFor();
    expect(await chosen()).to.equal('UTC');
    await browsing().expectAccessible();
    expect(complaints).to.deep.equal([]);
  });

  it('are in the zone of the task on its page and on those of its runs', async () => {
    const { page } = browsing();
    await browsing().logIn(service().credentials, `tasks/${task}`);
    await page.getByLabel('Zone of the times').selectOption('task');
    const { json } = await service().client.get(`/tasks/${task}`);
    const kolkata = clock(String(json['created_at']), KOLKATA);
    await page.getByText(kolkata).first().waitFor();
    await page.getByText(`${KOLKATA} (the task’s)`).waitFor({ state: 'attached' });
    await browsing().goTo(`runs/${run}`);
    await page.getByRole('heading', { level: 1, name: 'Run of In Kolkata' }).waitFor();
    await page.getByText(`${KOLKATA} (the task’s)`).waitFor({ state: 'attached' });
    await browsing().goTo('runs');
    await page.getByText(`the task’s, else ${TOKYO}`).waitFor({ state: 'attached' });
  });

  it('in filters are instants, so the zone only changes how they are shown', async () => {
    const { page } = browsing();
    await browsing().logIn(service().credentials, 'runs?since=2026-03-01T09:30:00');
    const since = page.getByLabel('Started after');
    expect(await since.inputValue()).to.equal('2026-03-01T09:30');
    await page.waitForURL(/since=2026-03-01T00%3A30%3A00\.000Z/);
    await page.getByLabel('Zone of the times').selectOption('utc');
    await eventually(async () => (await since.inputValue()) === '2026-03-01T00:30');
    await since.fill('2026-03-01T06:00');
    await page.waitForURL(/since=2026-03-01T06%3A00%3A00\.000Z/);
    expect(await since.inputValue()).to.equal('2026-03-01T06:00');
  });

  it('typed into forms are instants in the chosen zone, which the field names', async () => {
    const { page, complaints } = browsing();
    const { client, credentials } = service();
    await browsing().logIn(credentials, `tasks/${task}?tab=calendar`);
    const zone = page.getByLabel('Zone of the times');
    const explained = page.getByLabel('At', { exact: true });
    const hint = (text: string): Promise<void> =>
      page.locator('.field', { has: explained }).getByText(text, { exact: true }).waitFor();
    await explained.fill('2026-03-01T09:30');
    await hint(TOKYO);
    await zone.selectOption('task');
    await hint(KOLKATA);
    expect(await explained.inputValue()).to.equal('2026-03-01T06:00');
    const asked = page.waitForRequest('**/explain?*');
    await page.getByRole('button', { name: 'Explain' }).click();
    expect((await asked).url()).to.include('at=2026-03-01T00%3A30%3A00.000Z');
    await zone.selectOption('mine');
    await browsing().goTo(`agents/${credentials.agent_id}/keys/new`);
    await page.getByLabel('Name', { exact: true }).fill('until spring');
    await page.getByLabel('Expires').selectOption('at a time …');
    await explained.fill('2029-03-01T09:30');
    await hint(TOKYO);
    await zone.selectOption('utc');
    await hint('UTC');
    expect(await explained.inputValue()).to.equal('2029-03-01T00:30');
    await page.getByRole('button', { name: 'Create' }).click();
    await page.getByText('The key until spring.').waitFor();
    const { text } = await client.get(`/agents/${credentials.agent_id}/keys`);
    expect(text).to.include('2029-03-01T00:30:00.000Z');
    expect(complaints).to.deep.equal([]);
  });

  it('of the next fires are in the zone of the schedule, and beside it in the chosen one', async () => {
    const { page, complaints } = browsing();
    await browsing().logIn(service().credentials, `tasks/${task}?tab=definition`);
    const first = page.locator('#next-fires li').first();
    await first.getByText('-01-01 04:30:00').waitFor();
    await first.getByText(new RegExp(`08:00(:00)? ${TOKYO}\\)`)).waitFor();
    const zone = page.getByLabel('Zone of the times');
    await zone.selectOption('utc');
    await first.getByText(/23:00(:00)? UTC\)/).waitFor();
    await zone.selectOption('task');
    await first.getByText('(').waitFor({ state: 'detached' });
    expect(complaints).to.deep.equal([]);
  });
});
