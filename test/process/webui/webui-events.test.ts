import { expect } from 'chai';
import type { Credentials } from '../../support/service-process.ts';
import { useBrowser } from './webui-browser.ts';
import { tabTo } from './webui-keyboard.ts';
import { useService } from './webui-service.ts';

describe('events in the web page', function () {
  this.timeout(300_000);
  const service = useService();
  const browsing = useBrowser(() => service().process.address);

  async function listen(title: string, topic: string): Promise<void> {
    const { client, credentials } = service();
    const made = await client.post('/tasks', {
      title,
      description: '-',
      schedule_kind: 'event',
      schedule_expr: topic,
      created_by: credentials.agent_id,
      payload: { pipeline: [{ uses: 'echo' }] },
    });
    expect(made.status, made.text).to.equal(201);
  }

  it('can be published as a test, after a preview of the tasks that they trigger', async () => {
    const { page, complaints } = browsing();
    await listen('Packs parcels', 'orders.*');
    await listen('Writes invoices', 'orders.created');
    await browsing().logIn(service().credentials, 'events');
    const topics = page.getByRole('region', { name: 'Topics' });
    await topics.getByRole('row', { name: /orders\.\* 1 Packs parcels/ }).waitFor();
    await topics.getByRole('row', { name: /orders\.created 1 Writes invoices/ }).waitFor();
    await tabTo(page, 'Publish test event');
    await page.keyboard.press('Enter');
    const dialog = page.getByRole('dialog');
    await dialog.getByLabel('Topic').fill('orders.created');
    await dialog.getByLabel('Payload (JSON)').fill('[1]');
    await dialog.getByLabel('Topic').press('Enter');
    await dialog.getByText('must be a JSON object').waitFor();
    await dialog.getByLabel('Payload (JSON)').fill('{"order": 4711}');
    await dialog.getByLabel('Topic').press('Enter');
    await dialog.getByText('Triggers 2 tasks:').waitFor();
    await dialog.getByText('Packs parcels').waitFor();
    await browsing().expectAccessible();
    await tabTo(page, 'Publish, and start 2 runs');
    await page.keyboard.press('Enter');
    await page.getByText('Published: 2 tasks triggered.').waitFor();
    const row = page.getByRole('row', { name: /orders\.created admin/ });
    await row.getByRole('link', { name: 'Writes invoices' }).waitFor();
    await row.getByText('succeeded').nth(1).waitFor();
    await row.locator('summary').click();
    await row.getByText('"order": 4711').waitFor();
    await browsing().expectAccessible();
    await row
      .getByRole('listitem')
      .filter({ hasText: 'Packs parcels' })
      .getByRole('link')
      .first()
      .click();
    await page.getByRole('heading', { level: 1, name: /Packs parcels/ }).waitFor();
    expect(complaints).to.deep.equal([]);
  });

  it('are shown for one topic, which is in the address, and say when no task listened', async () => {
    const { page, complaints } = browsing();
    const { client, credentials } = service();
    for (const topic of ['lonely.topic', 'other.topic']) {
      const event = { topic, payload: {}, source_agent_id: credentials.agent_id };
      expect((await client.post('/events', event)).status).to.equal(202);
    }
    await browsing().logIn(credentials, 'events?topic=lonely.topic');
    await page.getByRole('row', { name: /lonely\.topic admin.*no task listened/ }).waitFor();
    expect(await page.getByRole('row', { name: /other\.topic/ }).count()).to.equal(0);
    await page.getByLabel('Topic', { exact: true }).fill('');
    await page
      .getByRole('row', { name: /other\.topic/ })
      .getByRole('link', { name: 'other.topic' })
      .click();
    await page.getByRole('row', { name: /lonely\.topic/ }).waitFor({ state: 'detached' });
    expect(page.url()).to.match(/#\/events\?topic=other\.topic$/);
    expect(complaints).to.deep.equal([]);
  });

  it('show their source and their tasks to an agent that only reads events', async () => {
    const { page, complaints } = browsing();
    const { client } = service();
    const made = await client.post('/agents', { name: 'listener', scopes: ['events:read'] });
    const given = await client.post(`/agents/${made.textAt('id')}/credentials`, {});
    const { agent_id, agent_secret } = given.json as unknown as Credentials;
    await browsing().logIn({ agent_id, agent_secret }, 'events');
    await page
      .getByRole('row', { name: /orders\.created admin/ })
      .first()
      .waitFor();
    expect(await page.getByRole('button', { name: 'Publish test event' }).count()).to.equal(0);
    expect(await page.getByRole('region', { name: 'Topics' }).count()).to.equal(0);
    expect(complaints).to.deep.equal([]);
  });

  it('have an address each, however many came after them', async () => {
    const { page, complaints } = browsing();
    const { client, credentials } = service();
    await listen('Weighs parcels', 'parcels.#');
    const publish = async (weight: number): Promise<string> => {
      const event = { topic: 'parcels.sent', payload: { weight } };
      const sent = await client.post('/events', {
        ...event,
        source_agent_id: credentials.agent_id,
      });
      return sent.textAt('details.event_id');
    };
    const first = await publish(1000);
    for (let weight = 1; weight <= 20; weight += 1) await publish(weight);
    await browsing().logIn(credentials, `events/${first}`);
    await page.getByRole('heading', { level: 1, name: 'Event of parcels.sent' }).waitFor();
    await page.getByRole('region', { name: 'Payload' }).getByText('"weight": 1000').waitFor();
    await page.getByRole('row', { name: /Weighs parcels succeeded/ }).waitFor();
    await page.getByRole('link', { name: 'All runs of the event' }).click();
    await page
      .getByRole('row', { name: /Weighs parcels/ })
      .getByRole('link')
      .first()
      .click();
    // The way back, from the run.
    await page.getByRole('link', { name: 'parcels.sent', exact: true }).click();
    await page.getByRole('heading', { level: 1, name: 'Event of parcels.sent' }).waitFor();
    await page.getByRole('link', { name: 'parcels.sent', exact: true }).click();
    await page.getByText('page 1').waitFor();
    expect(await page.locator(`a[href="#/events/${first}"]`).count()).to.equal(0);
    await browsing().goTo(`events/${credentials.agent_id}`);
    await page.getByRole('heading', { level: 1, name: 'Not found' }).waitFor();
    expect(complaints.filter((each) => !each.includes('404'))).to.deep.equal([]);
  });
});
