import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect } from 'chai';
import type { Page, Route } from 'playwright-core';
import { toNewEvents } from '../../../domain/handle.ts';
import { newId } from '../../../domain/ids.ts';
import { createTelemetry } from '../../../observability/create-telemetry.ts';
import { openSqliteEventStore } from '../../../stores/sqlite/event-log/event-store.ts';
import { plainCodec } from '../../support/plain-codec.ts';
import { signIn, type Credentials } from '../../support/service-process.ts';
import { useBrowser } from './webui-browser.ts';
import { useService } from './webui-service.ts';

/** Events that a rebuild reads before its end. */
const FILLERS = 150;

describe('the web page, for operators and auditors', function () {
  this.timeout(300_000);
  const service = useService({ SVC_HTTP_ALLOW_PRIVATE: 'true' });
  const browsing = useBrowser(() => service().process.address);

  it('rebuilds a projection, shows how it differs, switches to it and rolls back', async () => {
    const { page, complaints } = browsing();
    await browsing().logIn(service().credentials, 'system/read-models');
    const row = page.getByRole('row', { name: /^tasks / });
    await row.getByRole('button', { name: 'Rebuild' }).click();
    await browsing().answer('Rebuild', 'to be sure');
    await row.getByText('ready').waitFor();
    await row.getByText(/documents now, .* then\. Of all, none differs/).waitFor();
    await browsing().expectAccessible();
    await row.getByRole('button', { name: 'Switch' }).click();
    await page.getByRole('dialog').getByText('none differs').waitFor();
    await browsing().answer('Switch');
    await row.getByRole('button', { name: 'Roll back' }).click();
    await browsing().answer('Roll back', 'only tried');
    await row.getByText('version 2 is kept').waitFor();
    const { items } = (await service().client.get('/streams/projection-tasks')).json as {
      readonly items: readonly { readonly type: string; readonly metadata: object }[];
    };
    expect(items.map(({ type }) => type)).to.include('ProjectionSwitched');
    expect(items[0]?.metadata).to.include({ reason: 'to be sure' });
    expect(complaints).to.deep.equal([]);
  });

  it('rolls back only the version that it shows', async () => {
    const { page } = browsing();
    const { client } = service();
    await browsing().logIn(service().credentials, 'system/read-models');
    const row = page.getByRole('row', { name: /^topics / });
    await row.getByRole('button', { name: 'Rebuild' }).click();
    await page.getByRole('dialog').getByRole('combobox').selectOption('auto');
    await browsing().answer('Rebuild');
    await row.getByRole('button', { name: 'Roll back' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByText('Version 2 is kept').waitFor();
    const other = await client.post('/projections/topics/rollback', { expected_version: 2 });
    expect(other.status, other.text).to.equal(200);
    await dialog.getByRole('button', { name: 'Roll back' }).click();
    await dialog.getByText('version 1 of topics is live, not 2').waitFor();
    await dialog.getByRole('button', { name: 'Cancel' }).click();
    await row.getByText('version 2 is kept').waitFor();
  });

  it('leaves the differences of a rebuild open while it is refreshed', async () => {
    const { page } = browsing();
    await page.route('**/projections', async (route) => {
      const { projections } = (await (await route.fetch()).json()) as { projections: object[] };
      const first = [{ key: 'a-key', difference: 'different', fields: ['title'] }];
      const comparison = {
        documents_before: 1,
        documents_after: 1,
        compared: 1,
        different: 1,
        complete: true,
        first,
      };
      const rebuild = { version: 2, state: 'ready', progress: 1, detail: null, comparison };
      const [view, ...others] = projections;
      await route.fulfill({ json: { projections: [{ ...view, rebuild }, ...others] } });
    });
    await browsing().logIn(service().credentials, 'system/read-models');
    await page.getByText('First differences').click();
    for (let beats = 0; beats < 3; beats += 1) await page.waitForResponse('**/projections');
    expect(await page.getByText('a-key').isVisible()).to.equal(true);
  });

  it('pauses, resumes and discards a rebuild', async () => {
    const { page, complaints } = browsing();
    const { client, credentials } = service();
    // At one event per second, the rebuild takes longer than the test.
    const filler = { topic: 'filler', payload: {}, source_agent_id: credentials.agent_id };
    for (let n = 0; n < FILLERS; n += 1) {
      expect((await client.post('/events', filler)).status).to.equal(202);
    }
    await browsing().logIn(credentials, 'system/read-models');
    const row = page.getByRole('row', { name: /^audit / });
    await row.getByRole('button', { name: 'Rebuild' }).click();
    await page.getByRole('dialog').getByLabel('Events per second').fill('1');
    await browsing().answer('Rebuild');
    await row.getByRole('button', { name: 'Pause' }).click();
    await browsing().answer('Pause');
    await row.getByRole('button', { name: 'Resume' }).click();
    await browsing().answer('Resume');
    await row.getByRole('button', { name: 'Cancel' }).click();
    await browsing().answer('Cancel the rebuild');
    await row.getByRole('button', { name: 'Rebuild' }).waitFor();
    expect(complaints).to.deep.equal([]);
  });

  /** Writes an event whose data does not fit its schema into the log, bypassing the service. */
  async function poison(stream: string): Promise<void> {
    const telemetry = createTelemetry({ level: 'silent' });
    const store = await openSqliteEventStore({
      directory: service().directory,
      codec: plainCodec,
      telemetry,
    });
    try {
      const now = Date.now();
      const about = { actor: 'test', source: 'test', correlationId: newId(now), now };
      const event = { type: 'RunStarted', data: { poisonous: true } } as never;
      const events = toNewEvents(stream, [event], { ...about, commandId: newId(now) });
      await store.append(stream, events, 'any');
    } finally {
      await store.close();
    }
  }

  it('shows parked keys, and retries or skips them', async () => {
    const { page, complaints } = browsing();
    const task = await service().client.post('/tasks', {
      title: 'To be poisoned',
      description: 'in the log',
      schedule_kind: 'event',
      schedule_expr: 'never.published',
      created_by: service().credentials.agent_id,
      payload: { pipeline: [{ uses: 'echo' }] },
    });
    const ran = await service().client.post(`/tasks/${task.textAt('id')}/run_now?wait=20`);
    expect(ran.at('details.run.state'), ran.text).to.equal('succeeded');
    const run = ran.textAt('details.run_id');
    await poison(`run-${run}`);
    await browsing().logIn(service().credentials, 'system/read-models');
    await page.getByRole('button', { name: /1 parked keys of runs/ }).click();
    const keys = page.getByRole('region', { name: 'Keys' });
    await keys.getByRole('row', { name: new RegExp(`${run}.*RunStarted`) }).waitFor();
    await browsing().expectAccessible();
    await keys.getByRole('button', { name: 'Retry' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByRole('button', { name: 'Retry' }).click();
    await dialog.getByText(/Still parked: \S/).waitFor();
    await dialog.getByRole('button', { name: 'Cancel' }).click();
    await keys.getByRole('button', { name: 'Skip' }).click();
    await browsing().answer('Skip', 'known');
    await page.getByText('No keys are parked now.').waitFor();
    await page.getByRole('button', { name: /parked keys of runs/ }).waitFor({ state: 'hidden' });
    expect((await service().client.get('/projections/runs/parked')).at('total')).to.equal(0);
    expect((await service().client.get(`/runs/${run}`)).at('state')).to.equal('succeeded');
    const { items } = (await service().client.get('/streams/projection-runs')).json as {
      readonly items: readonly {
        readonly type: string;
        readonly data: object;
        readonly metadata: object;
      }[];
    };
    // The command, the event that is skipped from now on, and the result of the command.
    const [ordered, skipped] = items.slice(-3);
    expect(ordered?.data).to.include({ key: run, order: 'skip' });
    expect(ordered?.metadata).to.include({ reason: 'known' });
    expect(skipped?.type).to.equal('ParkedEventSkipped');
    expect(skipped?.data).to.include({ key: run, stream: `run-${run}` });
    expect(items.at(-1)?.data).to.include({ key: run, error: null });
    expect(complaints).to.deep.equal([]);
  });

  it('puts the service on hold, says so in every view, and releases it', async () => {
    const { page, complaints } = browsing();
    await browsing().logIn(service().credentials);
    await page.getByRole('button', { name: 'Hold the service …' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByRole('button', { name: 'Hold' }).click();
    await dialog.getByText('Enter a reason.').waitFor();
    await browsing().answer('Hold', 'moving the mail server');
    await page.getByText('On hold: no schedule fires').waitFor();
    await browsing().goTo('tasks');
    await page.getByText('“moving the mail server”').waitFor();
    await browsing().expectAccessible();
    await page.getByRole('button', { name: 'Release …' }).click();
    await page.getByLabel('Missed fires to run').selectOption('skip');
    await browsing().answer('Release', 'moved');
    await page.getByText('On hold: no schedule fires').waitFor({ state: 'hidden' });
    const { released } = (await service().client.get('/operations')).json as { released: object };
    expect(released).to.include({ missed: 'skip' });
    expect(complaints).to.deep.equal([]);
  });

  it('shows who did what and what was refused, live', async () => {
    const { page, complaints } = browsing();
    const { json } = await service().client.post('/agents', {
      name: 'curious',
      scopes: ['tasks:read'],
    });
    const path = `/agents/${String(json['id'])}`;
    const given = (await service().client.post(`${path}/credentials`, {}))
      .json as unknown as Credentials;
    const { agent_id, agent_secret } = given;
    const token = await signIn(service().process.client(), { agent_id, agent_secret });
    const curious = service().process.client(token);
    await browsing().logIn(service().credentials, 'audit?type=CommandRefused');
    await page.getByText('live', { exact: true }).waitFor();
    await curious.post('/operations/hold', { reason: 'because I can' });
    const row = page.getByRole('row', {
      name: /curious refused POST \/operations\/hold.*403 forbidden/,
    });
    await row.waitFor();
    await browsing().expectAccessible();
    await page.getByLabel('Outcome').selectOption('');
    await page
      .getByRole('row', { name: /AgentRegistered|AgentCreated/ })
      .first()
      .waitFor();
    await row.getByRole('link').click();
    await page.getByRole('heading', { name: /^0: CommandRefused/ }).waitFor();
    expect(complaints).to.deep.equal([]);
  });

  it('names agents and tasks to an auditor who may read nothing else', async () => {
    const { page } = browsing();
    const { client } = service();
    const made = await client.post('/agents', { name: 'only an auditor', scopes: ['audit:read'] });
    const path = `/agents/${String(made.json['id'])}`;
    const credentials = (await client.post(`${path}/credentials`, {}))
      .json as unknown as Credentials;
    await browsing().logIn(credentials, 'audit?search=only%20an%20auditor');
    await page
      .getByRole('row', { name: /only an auditor done SessionStarted/ })
      .first()
      .waitFor();
    await page.getByLabel('Search').fill('AgentRegistered');
    // A registered agent has a name too.
    await page.getByRole('row', { name: /admin done AgentRegistered only an auditor/ }).waitFor();
    await page.getByLabel('Search').fill('');
    await page.getByLabel('Who (name or ID)').fill('only an aud');
    await page.getByText('No agent, or more than one, is called “only an aud”.').waitFor();
    await page.getByLabel('Who (name or ID)').fill('only an auditor');
    const own = page.getByRole('row', { name: /only an auditor done SessionStarted/ }).first();
    const others = page.getByRole('row', { name: /admin done/ });
    await others.first().waitFor({ state: 'detached' });
    await own.waitFor();
    expect(page.url()).to.match(/actor=only(\+|%20)an(\+|%20)auditor/);
    await page.reload();
    await own.waitFor();
    expect(await others.count()).to.equal(0);
    await browsing().expectAccessible();
  });

  describe('of an agent with a webhook', () => {
    let receiver: Server;
    before((done) => {
      receiver = createServer((request, response) => {
        request.resume();
        response.writeHead(410).end('gone <script>alert(1)</script>');
      }).listen(0, '127.0.0.1', done);
    });
    after((done) => {
      receiver.close(() => done());
      receiver.closeAllConnections();
    });

    /** The response to an earlier choice comes last, and does not replace that to the latest choice. */
    async function expectLatestChoice(page: Page): Promise<void> {
      const state = page.getByLabel('State');
      const held = new Promise<Route>((resolve) => {
        void page.route('**/webhooks/deliveries?*state=failed*', resolve, { times: 1 });
      });
      await state.selectOption('failed');
      await state.selectOption('pending');
      await page.getByText('Nothing was sent.').waitFor();
      const answer = page.waitForResponse(/state=failed/);
      await (await held).continue();
      await (await answer).finished();
      await page.evaluate(
        'new Promise((go) => requestAnimationFrame(() => requestAnimationFrame(go)))',
      );
      expect(await page.getByText('Nothing was sent.').isVisible()).to.equal(true);
      await state.selectOption('');
      await page.getByRole('row', { name: /webhook.test/ }).waitFor();
    }

    it('shows what was sent and the responses, and sends it again', async () => {
      const { page, complaints } = browsing();
      const { port } = receiver.address() as AddressInfo;
      const webhook_url = `http://127.0.0.1:${port}/hook`;
      const { json } = await service().client.post('/agents', {
        name: 'told',
        scopes: [],
        webhook_url,
      });
      await browsing().logIn(service().credentials, `agents/${String(json['id'])}`);
      await page.getByText('Nothing was sent.').waitFor();
      await page.getByRole('button', { name: 'New webhook secret …' }).click();
      await browsing().answer('Create the secret', 'the old one leaked');
      await page.getByText('The new secret of the webhook of told.').waitFor();
      await page.getByRole('button', { name: 'I have saved it' }).click();
      await page.getByRole('button', { name: 'Send a test message' }).click();
      await browsing().answer('Send', 'a try');
      const sent = page.getByRole('row', { name: /webhook.test/ });
      await sent.waitFor();
      while (!(await sent.getByText('failed').isVisible())) {
        await page.getByLabel('State').selectOption('failed');
        await page.getByLabel('State').selectOption('');
        await sent.waitFor();
      }
      await expectLatestChoice(page);
      await sent.locator('summary').click();
      await sent.getByText('gone <script>').waitFor();
      await browsing().expectAccessible();
      // 410 has removed the webhook, so the repetition fails and says so.
      await sent.getByRole('button', { name: 'Send again' }).click();
      await browsing().answer('Send');
      await sent.first().waitFor();
      await browsing().goTo('agents');
      await page.getByRole('link', { name: 'Messages sent twice' }).click();
      await page.getByRole('row', { name: /told webhook.test/ }).waitFor();
      await browsing().goTo('agents');
      await page.getByLabel('Name').fill('tol');
      await page.getByRole('link', { name: 'told' }).waitFor();
      await browsing().expectAccessible();
      expect(complaints).to.deep.equal([]);
    });
  });
});
