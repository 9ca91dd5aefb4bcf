import { expect } from 'chai';
import { useBrowser } from './webui-browser.ts';
import { useService } from './webui-service.ts';

describe('the web page, with many records', function () {
  this.timeout(300_000);
  const service = useService();
  const browsing = useBrowser(() => service().process.address);

  it('shows the event in its address, however late it is in its stream', async () => {
    const { page, complaints } = browsing();
    for (let n = 0; n < 450; n += 1) {
      const event = {
        topic: 'much',
        payload: { n },
        source_agent_id: service().credentials.agent_id,
      };
      expect((await service().client.post('/events', event)).status).to.equal(202);
    }
    await browsing().logIn(service().credentials, 'streams/topic-much?at=430');
    await page.getByRole('heading', { name: '430: EventPublished' }).waitFor();
    await page.getByText('of each field since event 400.').waitFor();
    await page.getByRole('link', { name: 'From its start' }).click();
    await page.getByRole('heading', { name: '199: EventPublished' }).waitFor();
    await browsing().goTo('streams/topic-much?at=4300');
    await page.getByRole('heading', { name: '199: EventPublished' }).waitFor();
    expect(complaints).to.deep.equal([]);
  });

  it('says why a button failed', async () => {
    const { page } = browsing();
    const message = 'the log is being moved';
    await page.route('**/streams/topic-much?from=200*', (route) =>
      route.fulfill({ status: 503, json: { error: 'unavailable', message, details: {} } }),
    );
    await browsing().logIn(service().credentials, 'streams/topic-much');
    await page.getByRole('button', { name: 'Read on after the first 200' }).click();
    await page.getByText(message).waitFor();
  });

  it('builds the whole state of a task at the event in its address', async () => {
    const { json } = await service().client.post('/tasks', {
      title: 'Often changed',
      description: '-',
      payload: { pipeline: [] },
      schedule_kind: 'event',
      created_by: service().credentials.agent_id,
    });
    const id = String(json['id']);
    for (let n = 1; n <= 220; n += 1)
      await service().client.put(`/tasks/${id}`, { title: `Change ${n}` });
    const { page } = browsing();
    await browsing().logIn(service().credentials, `streams/task-${id}?at=215`);
    await page.getByRole('heading', { name: '215: TaskUpdated' }).waitFor();
    const stood = page.getByRole('region', { name: 'State after this event' });
    await stood.getByText('"Change 215"').waitFor();
    await stood.getByText('"event"').waitFor();
  });

  it('says that days have more fires if there are too many to count', async () => {
    const { json } = await service().client.post('/tasks', {
      title: 'Each second',
      description: '-',
      payload: { pipeline: [] },
      schedule_kind: 'cron',
      schedule_expr: '* * * * * *',
      created_by: service().credentials.agent_id,
    });
    const { page } = browsing();
    await browsing().logIn(service().credentials, `tasks/${String(json['id'])}?tab=calendar`);
    await page.getByRole('button', { name: 'Next month' }).click();
    // The last day of the current month also has future fires.
    await page.locator('.day.today').waitFor({ state: 'detached' });
    const last = page.locator('.day').last();
    await last.getByText('and more due').waitFor();
    expect(await page.getByRole('button', { name: /no fires/ }).count()).to.equal(0);
    await last.click();
    await page.getByText('1,000 and more due').waitFor();
    await service().client.post(`/tasks/${String(json['id'])}/cancel`);
  });

  it('lists agents beyond the first page', async () => {
    for (let n = 0; n < 200; n += 1) {
      const { status } = await service().client.post('/agents', { name: `agent ${n}`, scopes: [] });
      expect(status).to.equal(201);
    }
    const { page } = browsing();
    await browsing().logIn(service().credentials, 'agents');
    await page.getByText('201 agents').waitFor();
    // However fast the button is pressed, no page is left out or shown under the number of another.
    let answer = (): void => undefined;
    const held = new Promise<void>((resolve) => (answer = resolve));
    await page.route('**/agents?*', async (route) => {
      await held;
      return route.continue();
    });
    for (let press = 0; press < 2; press += 1) {
      await page.getByRole('button', { name: 'Next' }).click();
    }
    expect(await page.locator('.pages').textContent()).to.contain('page 1');
    answer();
    await page.getByText('page 2').waitFor();
    await page.getByRole('button', { name: 'Next' }).click();
    await page.getByText('page 3').waitFor();
    await page.getByRole('link', { name: 'admin', exact: true }).waitFor();
    // The first admin is the oldest agent.
    await page.getByRole('banner').getByText('admin', { exact: true }).waitFor();
  });

  it('has room for long rules and addresses', async () => {
    const hours = Array.from({ length: 24 }, (_, hour) => hour).join(',');
    await service().client.post('/tasks', {
      title: 'By a long rule',
      description: '-',
      payload: { pipeline: [] },
      schedule_kind: 'rrule',
      schedule_expr: `FREQ=DAILY;BYHOUR=${hours};BYMINUTE=${hours}`,
      created_by: service().credentials.agent_id,
    });
    const webhook_url = `https://example.com/${'x'.repeat(300)}`;
    await service().client.post('/agents', {
      name: 'far away',
      scopes: ['tasks:read'],
      webhook_url,
    });
    const { page } = browsing();
    await browsing().logIn(service().credentials);
    for (const [view, name] of [
      ['tasks', 'By a long rule'],
      ['agents', 'far away'],
    ] as const) {
      await browsing().goTo(view);
      await page.getByRole('link', { name }).waitFor();
      const over = `(({ scrollWidth, clientWidth }) => scrollWidth - clientWidth)(document.querySelector('.wide'))`;
      expect(await page.evaluate<number>(over), view).to.equal(0);
    }
  });
});
