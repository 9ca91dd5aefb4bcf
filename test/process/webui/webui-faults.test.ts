import { expect } from 'chai';
import type { Route } from 'playwright-core';
import type { ApiClient } from '../../support/api-client.ts';
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
import { useBrowser } from './webui-browser.ts';

/** Strings that do harm in a browser unless they are treated as text. */
const hostile = [
  '<img src=x onerror="window.harmed=1"><script>window.harmed=1</script>',
  'javascript:window.harmed=1',
  '</textarea></style><svg onload=window.harmed=1>\'"`{{7*7}}',
  'before\u0000after \ud800 \ufffe',
  '\u202egnp.exe \u2066\u2067 \u200f',
  'W'.repeat(110),
];
const [markup = ''] = hostile;

describe('the web page, when things go wrong', function () {
  this.timeout(300_000);
  let directory: TemporaryDirectory;
  let service: ServiceProcess;
  let credentials: Credentials;

  const start = (settings: Readonly<Record<string, string>> = {}): Promise<ServiceProcess> =>
    ServiceProcess.start({
      SVC_DATA_DIR: directory.path,
      SVC_ACCESS_TOKEN_SECONDS: '5',
      ...settings,
    });

  before(async () => {
    directory = await makeTemporaryDirectory();
    service = await start();
    credentials = credentialsIn(directory.path);
  });

  after(async () => {
    await service.terminate();
    await directory.remove();
  });

  const browsing = useBrowser(() => service.address);
  const admin = async (): Promise<ApiClient> =>
    service.client(await signIn(service.client(), credentials));

  /** Makes a failed task with hostile strings in all its fields and results. @returns its id and the run's */
  async function makeHostile(title: string): Promise<readonly [task: string, run: string]> {
    const client = await admin();
    const words = { constructor: { harmed: 1 }, text: title };
    const { status, json, text } = await client.post('/tasks', {
      title,
      description: title,
      schedule_kind: 'event',
      schedule_expr: 'harm.#',
      tags: [title.slice(0, 100)],
      max_retries: 0,
      created_by: credentials.agent_id,
      payload: {
        pipeline: [
          { id: 'say', uses: 'echo', with: { ...words, list: hostile } },
          { uses: 'log', with: { message: title, data: words } },
          { id: 'stop', uses: 'fail', with: { message: title, retryable: false } },
        ],
      },
    });
    expect(status, text).to.equal(201);
    const id = String(json['id']);
    const run = await client
      .as(await signIn(service.client(), credentials))
      .post(`/tasks/${id}/run_now?wait=20`);
    return [id, String((run.json['details'] as { run_id: string }).run_id)];
  }

  it("shows other agents' strings as text everywhere", async () => {
    const { page, complaints } = browsing();
    const made = [];
    for (const words of [hostile.slice(0, 3), hostile.slice(3)]) {
      made.push(await makeHostile(words.join(' ')));
    }
    await page.setViewportSize({ width: 390, height: 844 });
    await browsing().logIn(credentials);
    await page
      .getByRole('cell', { name: /onerror/ })
      .first()
      .waitFor();
    const views = ['overview', 'tasks', 'runs', 'audit'];
    for (const [task, run] of made)
      views.push(`tasks/${task}`, `runs/${run}`, `streams/run-${run}`);
    views.push(`tasks/${made[0]?.[0]}/edit`, 'streams?prefix=%3Cimg', 'streams/%3Cimg%20src=x%3E');
    for (const view of views) {
      await browsing().goTo(view);
      await page.waitForLoadState('load');
      await page.getByRole('heading', { level: 1 }).waitFor();
      const found = await page.evaluate<string>(`JSON.stringify([
        document.querySelectorAll('img, script:not([src*="/main."]), iframe, object, [onload], [onerror]').length,
        [...document.querySelectorAll('a')].filter(({ protocol }) => protocol === 'javascript:').length,
        window.harmed ?? ({}).harmed ?? 0,
        document.documentElement.scrollWidth,
      ])`);
      expect(found, view).to.equal('[0,0,0,390]');
    }
    const run = made[0]?.[1] ?? '';
    await browsing().goTo(`runs/${run}`);
    await page.getByRole('region', { name: 'Error' }).getByText(markup).waitFor();
    // One stream does not exist, and tokens expire in the meantime. The browser logs both.
    expect(complaints.filter((each) => !/ 40[14] /.test(each))).to.deep.equal([]);
  });

  it('blocks inline scripts and styles, markup from text, and requests to other sites', async () => {
    const { page } = browsing();
    await browsing().open();
    const outcome = await page.evaluate<string>(`new Promise((resolve) => {
      const blocked = [];
      document.addEventListener('securitypolicyviolation', ({ effectiveDirective }) => {
        blocked.push(effectiveDirective);
        if (blocked.length === 4) resolve(blocked.sort().join(' '));
      });
      try { document.body.innerHTML = '<b>x</b>'; } catch { }
      const style = document.createElement('style');
      style.textContent = 'body { color: red }';
      document.head.append(style);
      document.body.setAttribute('style', 'color: red');
      fetch('https://elsewhere.example/').catch(() => {});
    })`);
    expect(outcome).to.equal('connect-src require-trusted-types-for style-src-attr style-src-elem');
  });

  it('creates one task if a command is repeated after its response was lost', async () => {
    const { page } = browsing();
    await browsing().logIn(credentials, 'tasks/new');
    await page.getByLabel('Title').fill('Ordered twice');
    let lost = 0;
    const lose = async (route: Route): Promise<void> => {
      if (route.request().method() !== 'POST' || lost > 0) return route.continue();
      lost += 1;
      await route.fetch();
      return route.abort('connectionreset');
    };
    await page.route('**/tasks', lose);
    await page.getByRole('button', { name: 'Create' }).click();
    await page.getByRole('alert').filter({ hasText: 'does not respond' }).first().waitFor();
    await page.getByRole('button', { name: 'Create' }).click();
    await page.getByRole('heading', { level: 1, name: 'Ordered twice' }).waitFor();
    const listed = await (await admin()).get('/tasks?search=Ordered%20twice');
    expect([lost, listed.at('total')]).to.deep.equal([1, 1]);
    // A later command creates another task.
    await browsing().goTo('tasks/new');
    await page.getByLabel('Title').fill('Ordered twice');
    await page.getByRole('button', { name: 'Create' }).click();
    await page.getByRole('heading', { level: 1, name: 'Ordered twice' }).waitFor();
    const again = await (await admin()).get('/tasks?search=Ordered%20twice');
    expect(again.at('total')).to.equal(2);
  });

  it('asks to log in again when the agent was deleted, and returns to the same view', async () => {
    const { page } = browsing();
    const client = await admin();
    const { json } = await client.post('/agents', { name: 'leaving', scopes: ['runs:read'] });
    const path = `/agents/${String(json['id'])}`;
    const { json: given } = await client.post(`${path}/credentials`, {});
    const { agent_id, agent_secret } = given as unknown as Credentials;
    await browsing().logIn({ agent_id, agent_secret }, 'runs');
    await page.getByRole('heading', { level: 1, name: 'Runs' }).waitFor();
    expect(await page.getByRole('navigation').getByRole('link').allTextContents()).to.deep.equal([
      'Overview',
      'Runs',
      'Insights',
      'Agents',
    ]);
    expect(await page.getByRole('button', { name: 'Retry failed runs …' }).count()).to.equal(0);
    await client.as(await signIn(service.client(), credentials)).delete(path);
    await page.getByLabel('State').selectOption('failed');
    await page.getByText('Your session has ended. Log in again.').waitFor();
    await browsing().fillIn(credentials);
    await page.getByRole('heading', { level: 1, name: 'Runs' }).waitFor();
  });

  it('waits after too many requests, and says so', async () => {
    const { page } = browsing();
    await browsing().logIn(credentials);
    // The message stays for a second, and a busy browser may look too late. Refuse until it was seen.
    let seen = false;
    const asked = new Map<string, number[]>();
    const refuse = async (route: Route): Promise<void> => {
      const url = route.request().url();
      asked.set(url, [...(asked.get(url) ?? []), performance.now()]);
      if (seen) return route.fallback();
      return route.fulfill({
        status: 429,
        headers: { 'retry-after': '1' },
        json: { error: 'rate_limit_exceeded', message: 'too many requests', details: {} },
      });
    };
    await page.route('**/tasks?*', refuse);
    const said = page.getByText('Too many requests. Continuing in 1 s.').waitFor();
    await browsing().goTo('tasks');
    await said;
    seen = true;
    await page.getByText(/^\d+ tasks?/).waitFor();
    await page.getByText('Too many requests').waitFor({ state: 'hidden' });
    // Allows a tenth of a second for two processes' clocks.
    const repeated = [...asked.values()].filter(({ length }) => length > 1);
    expect(repeated).to.not.deep.equal([]);
    for (const [first = NaN, second = NaN] of repeated) {
      expect(second - first).to.be.at.least(900);
    }
  });

  it('says that the service does not respond, and is live again when it does', async () => {
    const { page } = browsing();
    await browsing().logIn(credentials);
    await page.locator('.live[data-how=live]').waitFor();
    const port = new URL(service.address).port;
    await service.terminate();
    await page.getByText('reconnecting …').waitFor();
    await page.getByText('The service does not respond.').waitFor();
    await browsing().goTo('tasks');
    await page.getByRole('button', { name: 'Try again' }).waitFor();
    service = await start({ SVC_PORT: port });
    await page.getByText(/^\d+ tasks?/).waitFor();
    await page.getByText('The service does not respond.').waitFor({ state: 'hidden' });
    await browsing().goTo('overview');
    await page.locator('.live[data-how=live]').waitFor();
  });
});
