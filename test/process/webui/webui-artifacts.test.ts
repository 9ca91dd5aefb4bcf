import { readFileSync } from 'node:fs';
import { expect } from 'chai';
import { useBrowser } from './webui-browser.ts';
import { useService } from './webui-service.ts';

describe('the large results of a run, in the web page', function () {
  this.timeout(300_000);
  const service = useService();
  const browsing = useBrowser(() => service().process.address);

  it('are listed with their sizes, and can be saved', async () => {
    const { client, credentials } = service();
    const text = 'x'.repeat(200_000);
    const created = await client.post('/tasks', {
      title: 'Rows',
      description: 'Returns many rows',
      schedule_kind: 'event',
      schedule_expr: 'never.published',
      created_by: credentials.agent_id,
      payload: {
        params: { text },
        pipeline: [{ id: 'rows', uses: 'echo', with: ['${params.text}', '${params.text}'] }],
      },
    });
    expect(created.status, created.text).to.equal(201);
    const asked = await client.post(`/tasks/${created.textAt('id')}/run_now?wait=30`);
    const { page, complaints } = browsing();
    await browsing().logIn(credentials, `runs/${asked.textAt('details.run_id')}`);
    const results = page.getByRole('table', { name: 'Large results' });
    await results.getByText('391 KiB').waitFor();
    const saving = page.waitForEvent('download');
    await page.getByRole('button', { name: 'Download the result of rows' }).click();
    const saved = await (await saving).path();
    expect(JSON.parse(readFileSync(saved, 'utf8'))).to.deep.equal([text, text]);
    expect(complaints).to.deep.equal([]);
  });
});
