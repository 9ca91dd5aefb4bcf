import { readFile, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'chai';
import type { Route } from 'playwright-core';
import { projectRoot } from '../../support/project-root.ts';
import {
  ServiceProcess,
  credentialsIn,
  signIn,
  type Credentials,
} from '../../support/service-process.ts';
import {
  makeTemporaryDirectory,
  type TemporaryDirectory,
} from '../../support/temporary-directory.ts';
import { eventually } from '../../support/signals.ts';
import { atNoon, useBrowser, type Browsing } from './webui-browser.ts';
import { FOCUS_LIMIT_MS } from './webui-keyboard.ts';

describe('the web page', function () {
  this.timeout(300_000);
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

  it('is served to everybody, in less than 150 KB compressed, without requests to other sites', async () => {
    const { status, headers, text } = await service.client().get('/ext/webui/');
    expect(status).to.equal(200);
    expect(headers['content-type']).to.match(/^text\/html/);
    expect(headers['cache-control']).to.equal('no-cache');
    expect(headers['content-security-policy']).to.include("script-src 'self'");
    const files = [...text.matchAll(/(?:href|src)="(static\/[^"]+)"/g)].map(([, path]) => path);
    expect(files).to.have.length(2);
    let bytes = 0;
    for (const coding of ['br', 'gzip']) {
      for (const path of ['', ...files]) {
        const file = await fetch(`${service.address}/ext/webui/${path}`, {
          headers: { 'accept-encoding': coding },
        });
        expect(file.status, path).to.equal(200);
        expect(file.headers.get('content-encoding'), path).to.equal(coding);
        expect(file.headers.get('vary'), path).to.include('Accept-Encoding');
        if (coding === 'br') bytes += Number(file.headers.get('content-length'));
        const content = await file.text();
        // A file that imports others would cause further requests.
        expect(content).not.to.match(/\bfrom\s*"\.\/|@import/);
        if (path !== '') {
          expect(file.headers.get('cache-control')).to.match(/max-age=31536000, immutable/);
        }
      }
    }
    expect(bytes).to.be.within(10_000, 150_000);
  });

  it('writes no markup and names no other site in its own files', async () => {
    const folder = join(projectRoot, 'extensions/webui/static');
    const names = await readdir(folder, { recursive: true });
    const files = names.filter((name) => /\.(js|css|html)$/.test(name));
    expect(files.length).to.be.greaterThan(10);
    for (const name of files) {
      const text = await readFile(join(folder, name), 'utf8');
      expect(text, name).not.to.match(/https?:\/\//);
      expect(text, name).not.to.match(/innerHTML|insertAdjacentHTML|document\.write/);
    }
  });

  it('lists and creates tasks with its own endpoints, for callers with a token', async () => {
    const stranger = service.client();
    expect((await stranger.get('/ext/webui/api/tasks')).status).to.equal(401);
    const client = service.client(await signIn(stranger, credentials));
    const created = await client.post('/ext/webui/api/tasks', {
      title: 'Made by its endpoint',
      schedule_kind: 'cron',
      schedule_expr: '0 5 1 1 *',
      payload: { pipeline: [{ uses: 'echo' }] },
    });
    expect(created.status, created.text).to.equal(201);
    expect(created.json).to.include({
      description: 'Made by its endpoint',
      created_by: credentials.agent_id,
    });
    const { id, title, status, next_run_at, schedule_text } = created.json;
    const { tasks } = (await client.get('/ext/webui/api/tasks')).json as { tasks: object[] };
    expect(tasks).to.deep.include({ id, title, status, schedule_text, next_run: next_run_at });
    const refused = await client.post('/ext/webui/api/tasks', {
      title: 'x',
      schedule_kind: 'cron',
    });
    expect(refused.status).to.equal(400);
    expect(refused.json['error']).to.equal('bad_request');
  });

  describe('in a browser', () => {
    const browsing = useBrowser(() => service.address, atNoon());
    const here = (): Browsing => browsing();

    it('rejects a wrong secret with a message', async () => {
      const { page } = here();
      await here().open();
      await here().fillIn({ ...credentials, agent_secret: 'wrong' });
      await page.getByRole('alert').filter({ hasText: /\w/ }).waitFor();
      await here().expectAccessible();
    });

    it('shows the next fires while a schedule is typed, and errors at the field', async () => {
      const { page, complaints } = here();
      await here().logIn(credentials, 'tasks/new');
      const expression = page.getByRole('textbox', { name: 'Schedule' });
      await page.getByLabel('Time zone').fill('UTC');
      await expression.fill('30 4 * * *');
      await page.locator('#next-fires li', { hasText: ' 04:30' }).nth(4).waitFor();
      await page.locator('#next-fires', { hasText: 'at 04:30, every day, UTC' }).waitFor();
      await expression.fill('61 4 * * *');
      await page.locator('#fault-schedule-expr', { hasText: '61' }).waitFor();
      expect(await expression.getAttribute('aria-invalid')).to.equal('true');
      await expression.pressSequentially(' 5 wrong');
      await page.locator('#fault-schedule-expr', { hasText: 'has 5 fields' }).waitFor();
      await page.getByLabel('Pipeline (JSON)').fill('{');
      await page.locator('#fault-payload', { hasText: 'invalid JSON' }).waitFor();
      const payload = '{"params": {"id": 7615917337495251231}, "pipeline": []}';
      await page.getByLabel('Pipeline (JSON)').fill(payload);
      const changed = '7615917337495251231 is a number that cannot be kept exactly';
      await page.locator('#fault-payload', { hasText: changed }).waitFor();
      await page.getByText('Limits, retries and overlaps').click();
      await here().expectAccessible();
      await page.getByLabel('Pipeline (JSON)').fill('{"pipeline": []}');
      await expression.fill('0 5 * * *');
      await page.locator('#next-fires li', { hasText: ' 05:00' }).first().waitFor();
      await page.getByLabel('Time zone').fill('Mars/Olympus');
      await page.locator('#fault-timezone', { hasText: /\w/ }).waitFor();
      for (const kind of ['rrule', 'once', 'event', 'cron']) {
        await page.getByLabel('Kind').selectOption(kind);
        await page.getByText('None: see the field.').waitFor();
      }
      // A half-typed schedule is not an error, because a browser would write each error response into its console.
      expect(complaints).to.deep.equal([]);
      await page.getByRole('button', { name: 'Create' }).click();
      await page.locator('#fault-title', { hasText: /\w/ }).waitFor();
    });

    it('creates a task, runs it, shows its run, changes, snoozes, pauses and cancels it', async () => {
      const { page, complaints } = here();
      await here().logIn(credentials);
      const title = 'Monthly figures';
      await here().create(title, [{ id: 'say', uses: 'echo', with: { text: 'good day' } }]);
      await here().expectAccessible();
      await page.getByRole('button', { name: 'Run now' }).click();
      await page.getByRole('heading', { level: 1, name: 'Run of' }).waitFor();
      await page.locator('.state', { hasText: 'succeeded' }).first().waitFor();
      await page.getByRole('list', { name: 'Attempts and steps over time' }).waitFor();
      await page.getByRole('region', { name: 'Output' }).getByText('good day').waitFor();
      await page.getByRole('cell', { name: 'RunRequested' }).waitFor();
      await here().expectAccessible();
      await page.getByRole('link', { name: title }).click();
      await page.getByRole('link', { name: 'Change', exact: true }).click();
      await page.getByLabel('Description').fill('changed');
      await page.getByLabel('Why').fill('a better word');
      await page.getByRole('button', { name: 'Save' }).click();
      await page.getByRole('heading', { name: 'Run durations' }).waitFor();
      await here().openTab('Calendar');
      await page.getByRole('button', { name: 'Explain' }).click();
      await page.locator('.state', { hasText: 'not in schedule' }).waitFor();
      await here().openTab('History');
      await page.getByRole('row', { name: /TaskUpdated.*a better word/ }).waitFor();
      await here().expectAccessible();
      await page.getByRole('button', { name: 'Snooze' }).click();
      await here().answer('Snooze', 'a holiday');
      await page.getByRole('row', { name: /TaskSnoozed.*a holiday/ }).waitFor();
      await page.getByRole('button', { name: 'Pause', exact: true }).click();
      await here().answer('Pause', 'zu früh – 早すぎる');
      await page.getByRole('row', { name: /TaskPaused.*zu früh – 早すぎる/ }).waitFor();
      await page.getByRole('button', { name: 'Resume', exact: true }).click();
      await here().answer('Resume');
      await page.getByRole('button', { name: 'Cancel' }).click();
      await here().answer('Cancel the task', 'no longer needed');
      await page.locator('.state', { hasText: 'canceled' }).first().waitFor();
      expect(complaints).to.deep.equal([]);
    });

    it('explains the instant of the last request, whichever response comes last', async () => {
      const { page, complaints } = here();
      await here().logIn(credentials);
      await here().create('Explained', [{ uses: 'echo' }]);
      await here().openTab('Calendar');
      const held = new Promise<Route>((resolve) => {
        void page.route('**/explain?*', resolve, { times: 1 });
      });
      const explain = page.getByRole('button', { name: 'Explain' });
      await explain.click();
      const route = await held;
      await explain.click();
      const latest = page.locator('.state', { hasText: 'not in schedule' });
      await latest.waitFor();
      const answer = page.waitForResponse('**/explain?*');
      const said = { reason: 'paused', message: 'An earlier answer.', run_id: null };
      const beside = { previous_fire: null, next_fire: null, evidence: [] };
      await route.fulfill({ json: { ...said, ...beside } });
      await (await answer).finished();
      await page.evaluate(
        'new Promise((go) => requestAnimationFrame(() => requestAnimationFrame(go)))',
      );
      expect(await latest.isVisible()).to.equal(true);
      expect(complaints).to.deep.equal([]);
    });

    it('shows the result of each fire of a day and why it did not run, and runs it by a backfill', async () => {
      const { page, complaints } = here();
      const client = service.client(await signIn(service.client(), credentials));
      const { json } = await client.post('/tasks', {
        title: 'Each second',
        description: 'Held back',
        schedule_kind: 'cron',
        schedule_expr: '* * * * * *',
        payload: { pipeline: [{ uses: 'echo' }] },
        created_by: credentials.agent_id,
      });
      const path = `/tasks/${String(json['id'])}`;
      await client.post(`${path}/pause`, {});
      // A fire before the pause has run.
      const from = Math.ceil(Date.now() / 1000) * 1000;
      await here().logIn(credentials, `${path.slice(1)}?tab=calendar&by=day`);
      await page.getByText('are held back by a pause and undecided').waitFor();
      // It fires each second, so the first request may come before the first fire.
      const held = page.locator('#explanation').getByText('holds back the fire');
      while (!(await held.isVisible())) {
        const answer = page.waitForResponse('**/explain?*');
        await page.getByRole('button', { name: 'Why?' }).click();
        await (await answer).finished();
        await page.locator('#explanation dl').waitFor();
      }
      await here().expectAccessible();
      const to = from + 2000;
      await eventually(() => Date.now() > to);
      await client.post(`${path}/resume?missed=skip`, {});
      await client.put(path, { schedule_expr: '* * * * * *', timezone: 'UTC' });
      await page.getByRole('button', { name: 'Backfill …' }).click();
      const dialog = page.getByRole('dialog');
      const second = (at: number): string => new Date(at).toISOString().slice(0, 19);
      await dialog.getByLabel('From', { exact: true }).fill(second(from));
      await dialog.getByLabel('To', { exact: true }).fill(second(to));
      await dialog.getByRole('button', { name: 'Preview' }).click();
      await dialog.getByText(/fires in this span/).waitFor();
      await here().expectAccessible();
      await here().answer('Run 3 fires', 'the figures are needed');
      await page.getByRole('region', { name: 'Backfills' }).getByText('completed').waitFor();
      await here().openTab('Runs');
      await page.locator('.bars a').first().waitFor();
      await here().expectAccessible();
      await client.post(`${path}/cancel`, {});
      expect(complaints).to.deep.equal([]);
    });

    it('steps through a stream by keyboard, and shows the state at each event', async () => {
      const { page, complaints } = here();
      await here().logIn(credentials);
      await here().create('Stepped through', [{ uses: 'echo' }]);
      await page.getByRole('button', { name: 'Pause', exact: true }).click();
      await here().answer('Pause', 'for a look');
      await here().openTab('History');
      await page.getByRole('row', { name: /for a look/ }).waitFor();
      await page.getByRole('link', { name: 'Step through its events' }).click();
      await page.getByRole('heading', { name: '1: TaskPaused' }).waitFor();
      const stood = page.getByRole('region', { name: 'State after this event' });
      await stood.getByText('"paused"').waitFor();
      await page.getByText('for a look').waitFor();
      await page.getByLabel('Position in time').press('ArrowLeft');
      await page.getByRole('heading', { name: '0: TaskCreated' }).waitFor();
      await stood.getByText('"active"').waitFor();
      await here().expectAccessible();
      await page.getByRole('navigation').getByRole('link', { name: 'System' }).click();
      await page.getByRole('link', { name: 'Streams' }).click();
      await page.getByRole('button', { name: 'projection-' }).click();
      await page
        .getByText('No stream begins like this.')
        .or(page.getByRole('link', { name: /^projection-/ }).first())
        .waitFor();
      await page.getByRole('button', { name: 'task-' }).click();
      await page
        .getByRole('link', { name: /^task-/ })
        .first()
        .waitFor();
      await here().expectAccessible();
      expect(complaints).to.deep.equal([]);
    });

    it('works by keyboard alone, and keeps the focus when it is redrawn', async () => {
      const { page, complaints } = here();
      const { keyboard } = page;
      const focused = (): Promise<string> =>
        page.evaluate<string>(`(({ tagName, id, ariaLabel, textContent }) =>
          [tagName, id, (ariaLabel ?? textContent).trim().slice(0, 40)].join(' '))(document.activeElement)`);
      const tabTo = async (wanted: RegExp): Promise<void> => {
        const begun = performance.now();
        for (let steps = 0; !wanted.test(await focused()); steps += 1) {
          const isLate = performance.now() - begun > FOCUS_LIMIT_MS;
          if (steps > 80 && isLate) throw new Error(`${String(wanted)} is not reached`);
          await keyboard.press('Tab');
        }
      };
      const heading = (name: string | RegExp) =>
        page.getByRole('heading', { level: 1, name }).waitFor();
      await here().open();
      // The form gets the focus when it appears.
      await page.getByLabel('Agent ID').waitFor();
      await tabTo(/^INPUT/);
      await keyboard.type(credentials.agent_id);
      await keyboard.press('Tab');
      await keyboard.type(credentials.agent_secret);
      await keyboard.press('Enter');
      await page.getByText('Exact times').waitFor();
      await tabTo(/^A +Tasks$/);
      await keyboard.press('Enter');
      await heading('Tasks');
      await tabTo(/^A +New task$/);
      await keyboard.press('Enter');
      await heading('New task');
      await tabTo(/field-title/);
      await keyboard.type('By keys alone');
      await tabTo(/field-schedule-expr/);
      await keyboard.press('Control+A');
      await keyboard.type('0 5 1 1 *');
      await keyboard.press('Enter');
      await heading('By keys alone');
      await tabTo(/^BUTTON +Pause$/);
      await keyboard.press('Enter');
      const dialog = page.getByRole('dialog');
      await dialog.waitFor();
      await keyboard.press('Escape');
      await dialog.waitFor({ state: 'hidden' });
      expect(await focused()).to.equal('BUTTON  Pause');
      await keyboard.press('Shift+Tab');
      await keyboard.press('Enter');
      await heading(/^Run of/);
      await page.locator('.state', { hasText: 'succeeded' }).first().waitFor();
      await here().goTo('system/read-models');
      await heading('Read models');
      await page.getByRole('button', { name: 'Rebuild tasks' }).waitFor();
      await tabTo(/^BUTTON +Rebuild tasks$/);
      // It is read and drawn again every 1.5 seconds.
      for (let reads = 0; reads < 2; reads += 1) await page.waitForResponse('**/projections');
      await page.evaluate(
        'new Promise((go) => requestAnimationFrame(() => requestAnimationFrame(go)))',
      );
      expect(await focused()).to.equal('BUTTON  Rebuild tasks');
      expect(complaints).to.deep.equal([]);
    });

    it('fits a phone: only tables are wider than the screen', async () => {
      const { page } = here();
      await page.setViewportSize({ width: 390, height: 844 });
      await here().logIn(credentials);
      const views = [
        'overview',
        'tasks',
        'tasks/new',
        'runs',
        'audit',
        'agents',
        'system',
        'system/streams',
        'system/read-models',
      ];
      for (const view of views) {
        await here().goTo(view);
        await page.locator(`.rail a[aria-current=page][href="#/${view.split('/')[0]}"]`).waitFor();
        await page.getByRole('heading', { level: 1 }).waitFor();
        expect(await here().width(), view).to.be.most(390);
      }
    });
  });
});
