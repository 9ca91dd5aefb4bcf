import { expect } from 'chai';
import type { Page } from 'playwright-core';
import { useBrowser } from './webui-browser.ts';
import { useService } from './webui-service.ts';

const params_schema = {
  type: 'object',
  properties: {
    shop: { type: 'string', title: 'Shop', description: 'Its address' },
    limit: { type: 'integer', minimum: 1, maximum: 100 },
    rate: { type: 'number' },
    dry: { type: 'boolean' },
    size: { enum: ['small', 'large', 3] },
    filter: { type: 'object' },
  },
  required: ['shop'],
};

describe('the params of a run, in the web page', function () {
  this.timeout(300_000);
  const service = useService();
  const browsing = useBrowser(() => service().process.address);

  /** An event task that nobody triggers, opened in the page. @returns its path */
  async function open(task: object): Promise<string> {
    const created = await service().client.post('/tasks', {
      title: 'Orders',
      description: 'Counts orders',
      schedule_kind: 'event',
      schedule_expr: 'never.published',
      created_by: service().credentials.agent_id,
      payload: { params: { limit: 10 }, pipeline: [] },
      params_schema,
      ...task,
    });
    expect(created.status, created.text).to.equal(201);
    const path = `tasks/${created.textAt('id')}`;
    await browsing().logIn(service().credentials, path);
    return path;
  }

  const openDialog = async (page: Page) => {
    await page.getByRole('button', { name: 'Run now' }).click();
    return page.getByRole('dialog');
  };
  const isShown = (page: Page): Promise<void> =>
    page.getByRole('heading', { level: 1, name: 'Run of' }).waitFor();
  /** The params that the task's latest run was given. */
  const latest = async (path: string): Promise<unknown> => {
    const { client } = service();
    return (await client.get(`/task/${path.slice('tasks/'.length)}/latest`)).at('params');
  };

  it('are entered in a form made from their schema, and shown with the run', async () => {
    const { page, complaints } = browsing();
    const path = await open({});
    const dialog = await openDialog(page);
    await dialog.getByText('Its address').waitFor();
    expect(await dialog.getByLabel('limit').inputValue()).to.equal('10');
    await browsing().expectAccessible();
    await dialog.getByRole('button', { name: 'Run', exact: true }).click();
    await dialog.getByText('shop is required').waitFor();
    await dialog.getByLabel('Shop').fill('https://shop.example');
    await dialog.getByLabel('rate').fill('0.5');
    await dialog.getByLabel('dry').selectOption('yes');
    await dialog.getByLabel('size').selectOption('3');
    await dialog.getByLabel('filter').fill('{"open": [true]}');
    await browsing().answer('Run', 'to see it');
    await isShown(page);
    const shown = page.getByRole('region', { name: 'Params' });
    await shown.getByText('https://shop.example').waitFor();
    const given = { shop: 'https://shop.example', rate: 0.5, dry: true, size: 3 };
    expect(await latest(path)).to.deep.equal({ ...given, filter: { open: [true] }, limit: 10 });
    expect(complaints).to.deep.equal([]);
  });

  it('that the service rejects are named in the dialog, which stays open', async () => {
    const { page } = browsing();
    const path = await open({});
    const dialog = await openDialog(page);
    await dialog.getByLabel('Shop').fill('a');
    await dialog.getByLabel('limit').fill('1000');
    await dialog.getByLabel('filter').fill('{open}');
    await dialog.getByRole('button', { name: 'Run', exact: true }).click();
    await dialog.getByText('params.limit must be at most 100').waitFor();
    await dialog.getByText('params.filter must be object').waitFor();
    await dialog.getByLabel('limit').fill('100');
    await dialog.getByLabel('filter').fill('');
    await browsing().answer('Run');
    await isShown(page);
    expect(await latest(path)).to.deep.equal({ shop: 'a', limit: 100 });
  });

  it('of a schema without properties are typed as JSON', async () => {
    const { page } = browsing();
    const path = await open({ params_schema: { type: 'object' } });
    const dialog = await openDialog(page);
    await dialog.getByLabel('Params').fill('{"limit": 5, "more": null}');
    await browsing().answer('Run');
    await isShown(page);
    expect(await latest(path)).to.deep.equal({ limit: 5, more: null });
  });

  it('have their schema in the form of the task', async () => {
    const { page } = browsing();
    const path = await open({});
    await page.getByRole('link', { name: 'Change', exact: true }).click();
    await page.getByText('Limits, retries and overlaps').click();
    const field = page.getByLabel('Schema of params');
    expect(JSON.parse(await field.inputValue())).to.deep.equal(params_schema);
    await field.fill('{"type": ');
    await page.locator('#fault-params-schema', { hasText: 'invalid JSON' }).waitFor();
    await field.fill('{"type": "list"}');
    await page.getByRole('button', { name: 'Save' }).click();
    await page.locator('#fault-params-schema', { hasText: 'must be "object"' }).waitFor();
    await field.fill('');
    await page.getByRole('button', { name: 'Save' }).click();
    await page.getByRole('heading', { name: 'Run durations' }).waitFor();
    expect((await service().client.get(`/${path}`)).at('params_schema')).to.equal(null);
  });
});
