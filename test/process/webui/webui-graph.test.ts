import { expect } from 'chai';
import type { Locator } from 'playwright-core';
import { useBrowser } from './webui-browser.ts';
import { useService } from './webui-service.ts';

describe('the graph of steps in the web page', function () {
  this.timeout(300_000);
  const service = useService();
  const browsing = useBrowser(() => service().process.address);

  async function task(pipeline: readonly object[]): Promise<string> {
    const made = await service().client.post('/tasks', {
      title: 'Of many ways',
      description: '-',
      schedule_kind: 'event',
      max_retries: 0,
      created_by: service().credentials.agent_id,
      payload: { pipeline },
    });
    expect(made.status, made.text).to.equal(201);
    return made.textAt('id');
  }
  const graph = (): Locator => browsing().page.getByRole('region', { name: 'Graph of steps' });
  const box = (id: string): Locator =>
    graph()
      .locator('.box')
      .filter({ has: browsing().page.getByTitle(id, { exact: true }) })
      .last();
  const placeOf = async (id: string) => {
    const place = await box(id).boundingBox();
    if (place === null) throw new Error(`${id} is not drawn`);
    return place;
  };

  it('shows the order of steps, and the state of each step in a run', async () => {
    const { page, complaints } = browsing();
    const id = await task([
      { id: 'load', uses: 'echo' },
      { id: 'check', uses: 'sleep', with: { seconds: 900 }, needs: ['load'] },
      { id: 'none', uses: 'echo', needs: ['load'], if: false },
      {
        id: 'both',
        parallel: [
          { id: 'left', uses: 'echo' },
          { uses: 'wait.event', with: { topic: 'go' } },
        ],
        needs: ['load'],
      },
      { id: 'send', uses: 'echo', needs: ['load', 'check', 'both'] },
    ]);
    await browsing().logIn(service().credentials, `tasks/${id}?tab=definition`);
    await box('send').getByText('after load, check, both').waitFor();
    expect(await graph().locator('.state').count()).to.equal(0);
    const load = await placeOf('load');
    const check = await placeOf('check');
    const none = await placeOf('none');
    const send = await placeOf('send');
    expect(check.x).to.be.greaterThan(load.x + load.width);
    expect(none.x).to.equal(check.x);
    expect(none.y).not.to.equal(check.y);
    expect(send.x).to.be.greaterThan(check.x + check.width);
    expect(await graph().locator('path').count()).to.equal(6);
    await browsing().expectAccessible();
    await page.getByRole('button', { name: 'Run now' }).click();
    await page.locator('.view-head .state', { hasText: 'waiting' }).waitFor();
    await page.getByRole('link', { name: 'Graph', exact: true }).click();
    const state = (step: string, text: string): Promise<void> =>
      box(step)
        .locator('.state')
        .first()
        .and(page.getByText(text, { exact: true }))
        .waitFor();
    await state('load', 'succeeded');
    await state('check', 'waiting');
    await state('none', 'skipped');
    await state('both', 'waiting');
    await state('left', 'succeeded');
    await state('step_3_1', 'waiting');
    await state('send', 'pending');
    await browsing().expectAccessible();
    await service().client.put(`/tasks/${id}`, {
      payload: { pipeline: [{ id: 'load', uses: 'echo' }] },
    });
    await service().client.post(`/tasks/${id}/cancel`);
    await state('check', 'did not end');
    // The run keeps the steps that it started with.
    await page.reload();
    await state('send', 'did not end');
    expect(await graph().locator('.box').count()).to.equal(7);
    expect(complaints).to.deep.equal([]);
  });

  it('draws steps of a run that all start at once below each other', async () => {
    const { page, complaints } = browsing();
    const id = await task([
      { id: 'one', uses: 'echo', needs: [] },
      { id: 'other', uses: 'echo', needs: [] },
    ]);
    await service().client.post(`/tasks/${id}/run_now?wait=10`);
    const { json } = await service().client.get(`/task/${id}/latest`);
    await browsing().logIn(service().credentials, `runs/${String(json['id'])}?view=graph`);
    await page.locator('.view-head .state', { hasText: 'succeeded' }).waitFor();
    const { x, y } = await placeOf('one');
    const other = await placeOf('other');
    expect(other.x).to.equal(x);
    expect(other.y).not.to.equal(y);
    expect(await graph().locator('path').count()).to.equal(0);
    expect(complaints).to.deep.equal([]);
  });

  it('draws a pipeline without needs as a sequence, with the step that failed', async () => {
    const id = await task([
      { uses: 'echo' },
      { uses: 'fail', with: { message: 'no paper' } },
      { uses: 'echo' },
    ]);
    const ran = await service().client.post(`/tasks/${id}/run_now?wait=20`);
    await browsing().logIn(
      service().credentials,
      `runs/${ran.textAt('details.run_id')}?view=graph`,
    );
    await box('step_1').getByText('failed').waitFor();
    await box('step_0').getByText('succeeded').waitFor();
    await box('step_2').getByText('did not end').waitFor();
    await box('step_2').getByText('after step_1').waitFor();
    const [first, second] = [await placeOf('step_0'), await placeOf('step_1')];
    expect(second.y).to.equal(first.y);
    expect(second.x).to.be.greaterThan(first.x);
  });
});
