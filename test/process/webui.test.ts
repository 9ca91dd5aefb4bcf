import { expect } from 'chai';
import { existsSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { chromium, type Browser, type Page } from 'playwright-core';
import {
  ServiceProcess,
  credentialsIn,
  signIn,
  type Credentials,
} from '../support/service-process.ts';
import { eventually } from '../support/signals.ts';
import { makeTemporaryDirectory, type TemporaryDirectory } from '../support/temporary-directory.ts';

/** Debian's. Where it is missing, what needs a browser is left out. */
const CHROMIUM = '/usr/bin/chromium';

/** How long a browser on a busy machine may take for one step. Milliseconds. */
const PATIENCE = 20_000;

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

interface AxeFinding {
  readonly id: string;
  readonly impact: string;
  readonly targets: string;
}

/** The findings of axe-core in the page as it stands, as JSON. */
const LOOK = `axe.run(document).then(({ violations }) => JSON.stringify(violations.map(
  ({ id, impact, nodes }) => ({ id, impact, targets: nodes.map(({ target, html }) => target + ' ' + html).join(' | ').slice(0, 600) }))))`;

describe('the web page', function () {
  this.timeout(120_000);
  let directory: TemporaryDirectory;
  let service: ServiceProcess;
  let credentials: Credentials;

  before(async () => {
    directory = await makeTemporaryDirectory();
    service = await ServiceProcess.start({ SVC_DATA_DIR: directory.path });
    credentials = credentialsIn(directory.path);
  });

  after(async () => {
    await service.terminate();
    await directory.remove();
  });

  it('is served to everybody, with all it needs, in less than 300 KB and from nowhere else', async () => {
    const client = service.client();
    const { status, headers, text } = await client.get('/ext/webui/');
    expect(status).to.equal(200);
    expect(headers['content-type']).to.match(/^text\/html/);
    expect(headers['content-security-policy']).to.include("script-src 'self'");
    const seen = new Map([['', text]]);
    const wanted = [...text.matchAll(/(?:href|src)="(static\/[^"]+)"/g)].map(([, path]) => path);
    for (const path of wanted) {
      if (path === undefined || seen.has(path)) continue;
      const file = await client.get(`/ext/webui/${path}`);
      expect(file.status, path).to.equal(200);
      seen.set(path, file.text);
      for (const [, other] of file.text.matchAll(/from '\.\/([^']+)'/g)) {
        wanted.push(`static/${other}`);
      }
    }
    const all = [...seen.values()].join('');
    expect(seen.size).to.be.greaterThan(10);
    expect(Buffer.byteLength(all)).to.be.lessThan(300_000);
    expect(all.replaceAll('http://www.w3.org/2000/svg', '')).not.to.match(/https?:\/\//);
    expect(all).not.to.match(/innerHTML|insertAdjacentHTML|document\.write/);
  });

  it('lists and creates tasks by its own endpoints, for those who have a token', async () => {
    const stranger = service.client();
    expect((await stranger.get('/ext/webui/api/tasks')).status).to.equal(401);
    const client = service.client(await signIn(stranger, credentials));
    const created = await client.post('/ext/webui/api/tasks', {
      title: 'Made by its endpoint',
      schedule_kind: 'cron',
      schedule_expr: '0 9 * * *',
      payload: { pipeline: [{ uses: 'echo' }] },
    });
    expect(created.status, created.text).to.equal(201);
    expect(created.json).to.include({
      description: 'Made by its endpoint',
      created_by: credentials.agent_id,
    });
    const { id, title, status, next_run_at } = created.json;
    const { tasks } = (await client.get('/ext/webui/api/tasks')).json as { tasks: object[] };
    expect(tasks).to.deep.include({ id, title, status, next_run: next_run_at });
    const refused = await client.post('/ext/webui/api/tasks', {
      title: 'x',
      schedule_kind: 'cron',
    });
    expect(refused.status).to.equal(400);
    expect(refused.json['error']).to.equal('bad_request');
  });

  it('is closed by SVC_WEBUI_REQUIRE_AUTH', async () => {
    const other = await makeTemporaryDirectory();
    const closed = await ServiceProcess.start({
      SVC_DATA_DIR: other.path,
      SVC_WEBUI_REQUIRE_AUTH: 'true',
    });
    expect((await closed.client().get('/ext/webui/')).status).to.equal(401);
    const token = await signIn(closed.client(), credentialsIn(other.path));
    expect((await closed.client(token).get('/ext/webui/')).status).to.equal(200);
    await closed.terminate();
    await other.remove();
  });

  describe('in a browser', () => {
    let browser: Browser | undefined;
    let page: Page;
    let complaints: string[];

    before(async function () {
      if (!existsSync(CHROMIUM)) {
        console.log(`      there is no ${CHROMIUM}: what needs a browser is left out`);
        this.skip();
      }
      browser = await chromium.launch({ executablePath: CHROMIUM, args: ['--no-sandbox'] });
    });

    after(() => browser?.close());

    beforeEach(async () => {
      if (browser === undefined) throw new Error('there is no browser');
      page = await browser.newPage();
      page.setDefaultTimeout(PATIENCE);
      complaints = [];
      page.on('console', (message) => {
        const { url } = message.location();
        if (message.type() === 'error') complaints.push(`${message.text()} ${url}`);
      });
      page.on('pageerror', (error) => complaints.push(String(error)));
      page.on('request', (request) => {
        const url = request.url();
        if (!url.startsWith(service.address) && !url.startsWith('data:')) complaints.push(url);
      });
    });

    afterEach(() => page.close());

    async function logIn(): Promise<void> {
      await page.goto(`${service.address}/ext/webui/`);
      await page.getByLabel("The agent's id").fill(credentials.agent_id);
      await page.getByLabel('Its secret').fill(credentials.agent_secret);
      await page.getByRole('button', { name: 'Log in' }).click();
      await page.getByRole('heading', { level: 1, name: 'Overview' }).waitFor();
    }

    async function create(title: string, pipeline: readonly object[]): Promise<void> {
      await page.getByRole('navigation').getByRole('link', { name: 'Tasks' }).click();
      await page.getByRole('link', { name: 'New task' }).click();
      await page.getByLabel('Title').fill(title);
      await page.getByLabel('Pipeline (JSON)').fill(JSON.stringify({ pipeline }));
      await page.getByRole('button', { name: 'Create' }).click();
      await page.getByRole('heading', { level: 1, name: title }).waitFor();
    }

    /** Finds nothing serious, in light and in dark. */
    async function expectAccessible(): Promise<void> {
      await page.evaluate(axe);
      for (const colorScheme of ['light', 'dark'] as const) {
        await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' });
        const findings = JSON.parse(await page.evaluate<string>(LOOK)) as AxeFinding[];
        const grave = findings.filter(
          ({ impact }) => impact === 'serious' || impact === 'critical',
        );
        expect(grave, `${page.url()} ${colorScheme}`).to.deep.equal([]);
      }
    }

    it('refuses a wrong secret in words', async () => {
      await page.goto(`${service.address}/ext/webui/`);
      await page.getByLabel("The agent's id").fill(credentials.agent_id);
      await page.getByLabel('Its secret').fill('wrong');
      await page.keyboard.press('Enter');
      await page.getByRole('alert').filter({ hasText: /\w/ }).waitFor();
      await expectAccessible();
    });

    it('shows the next fires while a schedule is typed, and faults at the field', async () => {
      await logIn();
      await page.goto(`${service.address}/ext/webui/#/tasks/new`);
      const expression = page.getByRole('textbox', { name: 'Schedule' });
      await page.getByLabel('Time zone').fill('UTC');
      await expression.fill('30 4 * * *');
      await page.locator('#next-fires li', { hasText: 'T04:30' }).nth(4).waitFor();
      await expression.fill('61 4 * * *');
      await page.locator('#fault-schedule-expr', { hasText: '61' }).waitFor();
      expect(await expression.getAttribute('aria-invalid')).to.equal('true');
      await expectAccessible();
      await expression.fill('0 5 * * *');
      await page.locator('#next-fires li', { hasText: 'T05:00' }).first().waitFor();
      await page.getByRole('button', { name: 'Create' }).click();
      await page.locator('#fault-title', { hasText: /\w/ }).waitFor();
    });

    it('creates a task, runs it, shows its run, changes, pauses and cancels it', async () => {
      await logIn();
      const hostile = 'Report <img src=x onerror=alert(1)>';
      await create(hostile, [{ id: 'say', uses: 'echo', with: { text: 'good day' } }]);
      await expectAccessible();
      await page.getByRole('button', { name: 'Run now' }).click();
      await page.getByRole('heading', { level: 1, name: 'Run of' }).waitFor();
      await page.locator('.state.succeeded').first().waitFor();
      await page.getByRole('img', { name: 'Attempts and steps over time' }).waitFor();
      await page.getByRole('region', { name: 'Output' }).getByText('good day').waitFor();
      await page.getByRole('cell', { name: 'RunRequested' }).waitFor();
      await expectAccessible();
      await page.getByRole('link', { name: hostile }).click();
      await page.getByRole('link', { name: 'Change' }).click();
      await page.getByLabel('Description').fill('changed');
      await page.getByRole('button', { name: 'Save' }).click();
      await page.getByRole('cell', { name: 'TaskUpdated' }).waitFor();
      await page.getByRole('button', { name: 'Explain' }).click();
      await page.locator('.state.not_in_schedule').waitFor();
      await page.getByRole('button', { name: 'Snooze 10 min' }).click();
      await page.getByRole('cell', { name: 'TaskSnoozed' }).waitFor();
      await page.getByRole('button', { name: 'Pause' }).click();
      await page.getByRole('button', { name: 'Resume' }).click();
      page.once('dialog', (dialog) => void dialog.accept());
      await page.getByRole('button', { name: 'Pause' }).waitFor();
      await page.getByRole('button', { name: 'Cancel' }).click();
      await page.locator('.state.canceled').first().waitFor();
      expect(complaints).to.deep.equal([]);
    });

    it('says of each fire what it came to, and why it did not run', async () => {
      const client = service.client(await signIn(service.client(), credentials));
      const { json } = await client.post('/tasks', {
        title: 'Each second',
        description: 'Held back',
        schedule_kind: 'cron',
        schedule_expr: '* * * * * *',
        payload: { pipeline: [{ uses: 'echo' }] },
        created_by: credentials.agent_id,
      });
      const id = String(json['id']);
      await client.post(`/tasks/${id}/pause`, {});
      await logIn();
      const due = page.getByRole('region', { name: 'Fires that were due' });
      await eventually(
        async () => {
          await page.goto(`${service.address}/ext/webui/#/tasks`);
          await page.getByRole('link', { name: 'Each second' }).click();
          await due.getByText('holds back the fire').first().waitFor({ timeout: 2_000 });
        },
        { limitMs: PATIENCE, what: 'a fire that is held back' },
      );
      await page.getByText('None while it is paused.').waitFor();
      await expectAccessible();
      await client.post(`/tasks/${id}/cancel`, {});
      expect(complaints).to.deep.equal([]);
    });

    it('finds tasks, and shows what failed and lets it be retried', async () => {
      await logIn();
      await create('Bound to fail', [
        { id: 'stop', uses: 'fail', with: { message: 'no paper', retryable: false } },
      ]);
      await page.getByRole('button', { name: 'Run now' }).click();
      await page.getByRole('button', { name: 'Retry from the start' }).click();
      await page.getByText('Retry of').waitFor();
      await page.getByRole('navigation').getByRole('link', { name: 'Tasks' }).click();
      await page.getByLabel('Search in titles').fill('bound to');
      await page.getByText('1 task, page 1').waitFor();
      await page.getByRole('link', { name: 'Bound to fail' }).waitFor();
      await expectAccessible();
      await page.getByRole('navigation').getByRole('link', { name: 'Overview' }).click();
      await page.getByText('live', { exact: true }).waitFor();
      await page
        .getByRole('cell', { name: /no paper/ })
        .first()
        .waitFor();
      await expectAccessible();
      await page.getByRole('navigation').getByRole('link', { name: 'Runs' }).click();
      await page.getByRole('region', { name: 'Runs' }).waitFor();
      await expectAccessible();
      expect(complaints).to.deep.equal([]);
    });

    it('steps through a stream by the keyboard, and shows how things stood', async () => {
      await logIn();
      await create('Stepped through', [{ uses: 'echo' }]);
      await page.getByRole('button', { name: 'Pause' }).click();
      await page.getByRole('link', { name: 'Step through its events' }).click();
      await page.getByRole('heading', { name: '1: TaskPaused' }).waitFor();
      const stood = page.getByRole('region', { name: 'State at this event' });
      await stood.getByText('"paused"').waitFor();
      await page.getByLabel('Over time').press('ArrowLeft');
      await page.getByRole('heading', { name: '0: TaskCreated' }).waitFor();
      await stood.getByText('"active"').waitFor();
      await expectAccessible();
      await page.getByRole('navigation').getByRole('link', { name: 'Streams' }).click();
      await page.getByRole('region', { name: 'Streams' }).waitFor();
      await expectAccessible();
      expect(complaints).to.deep.equal([]);
    });

    it('shows how far the views are, and orders a rebuild', async () => {
      await logIn();
      await page.getByRole('navigation').getByRole('link', { name: 'Projections' }).click();
      await page.getByRole('region', { name: 'Views' }).waitFor();
      await expectAccessible();
      page.once('dialog', (dialog) => void dialog.accept());
      const row = page.getByRole('row').filter({ hasText: /^tasks/ });
      await row.getByRole('button', { name: 'Rebuild' }).click();
      await page.getByRole('status').filter({ hasText: 'tasks: ordered' }).waitFor();
      expect(complaints).to.deep.equal([]);
    });

    it('fits a phone: nothing but tables is wider than the screen', async () => {
      await page.setViewportSize({ width: 360, height: 740 });
      await logIn();
      for (const view of ['overview', 'tasks', 'tasks/new', 'runs', 'streams', 'projections']) {
        await page.goto(`${service.address}/ext/webui/#/${view}`);
        await page.waitForFunction(`document.querySelector('main h1') !== null`);
        expect(
          await page.evaluate<number>('document.documentElement.scrollWidth'),
          view,
        ).to.be.most(360);
      }
    });
  });
});
