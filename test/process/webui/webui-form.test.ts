import { expect } from 'chai';
import { writeJson } from '../../../domain/exact-numbers.ts';
import { useBrowser } from './webui-browser.ts';
import { useService } from './webui-service.ts';

describe('the form of a task', function () {
  this.timeout(300_000);
  const service = useService();
  const browsing = useBrowser(() => service().process.address);

  const described = {
    title: 'As others made it',
    description: 'In two\nlines',
    schedule_kind: 'rrule',
    schedule_expr: 'DTSTART;TZID=Europe/Berlin:20260101T090000\nRRULE:FREQ=DAILY',
    tags: ['with, a comma'],
    priority: 3,
    payload: { pipeline: [{ uses: 'echo' }] },
  };

  /** Creates a task with the API, and opens it in the form. @returns its path */
  async function open(task: object): Promise<string> {
    const created_by = service().credentials.agent_id;
    const { json, status, text } = await service().client.post('/tasks', undefined, {
      raw: writeJson({ ...described, created_by, ...task }),
      headers: { 'content-type': 'application/json' },
    });
    expect(status, text).to.equal(201);
    const path = `/tasks/${String(json['id'])}`;
    await browsing().logIn(service().credentials, `${path.slice(1)}/edit`);
    await browsing().page.getByRole('heading', { name: 'Change' }).waitFor();
    return path;
  }

  async function save(title: string): Promise<void> {
    const { page } = browsing();
    await page.getByLabel('Title').fill(title);
    await page.getByRole('button', { name: 'Save' }).click();
    await page.getByRole('heading', { level: 1, name: title, exact: true }).waitFor();
  }

  it('leaves untouched fields as they are: line breaks, rules of several lines, tags with commas', async () => {
    const path = await open({});
    const { page, complaints } = browsing();
    await page.locator('#next-fires li', { hasText: ' 09:00' }).nth(4).waitFor();
    await save('By another name');
    expect((await service().client.get(path)).json).to.deep.include({
      ...described,
      title: 'By another name',
    });
    expect(complaints).to.deep.equal([]);
  });

  it('keeps a large float a float even if the payload is changed', async () => {
    const path = await open({ payload: { params: { n: 1e20 }, pipeline: [] } });
    const { page } = browsing();
    const payload = page.getByLabel('Pipeline (JSON)');
    const shown = await payload.inputValue();
    expect(shown).to.contain('"n": 1e+20');
    await payload.fill(shown.replace('"n"', '"m"'));
    await save('With another parameter');
    const { json } = await service().client.get(path);
    expect(json['payload']).to.deep.equal({ params: { m: 1e20 }, pipeline: [] });
  });

  it('accepts a rule and a description of several lines', async () => {
    const path = await open({});
    const { page } = browsing();
    const schedule_expr = described.schedule_expr.replace('09', '10');
    await page.getByRole('textbox', { name: 'Schedule' }).fill(schedule_expr);
    await page.locator('#next-fires li', { hasText: ' 10:00' }).nth(4).waitFor();
    await page.getByLabel('Description').fill('In\nthree\nlines');
    await save('An hour later');
    expect((await service().client.get(path)).json).to.include({
      schedule_expr,
      description: 'In\nthree\nlines',
    });
  });

  it('removes the values of emptied fields, or restores their defaults', async () => {
    const path = await open({ schedule_kind: 'event', schedule_expr: 'orders.*' });
    const { page } = browsing();
    await page.getByRole('textbox', { name: 'Schedule' }).fill('');
    await page.getByLabel('Tags').fill('');
    await page.getByText('Limits, retries and overlaps').click();
    await page.getByLabel('Priority').fill('');
    await save('Of all topics');
    expect((await service().client.get(path)).json).to.deep.include({
      schedule_expr: null,
      tags: [],
      priority: 5,
      description: described.description,
    });
  });
});
