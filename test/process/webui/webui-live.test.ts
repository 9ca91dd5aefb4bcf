import { expect } from 'chai';
import { useBrowser } from './webui-browser.ts';
import { useService } from './webui-service.ts';

describe('the web page, live', function () {
  this.timeout(300_000);
  const service = useService();
  const browsing = useBrowser(() => service().process.address);

  const publish = async (topic: string): Promise<void> => {
    const event = { topic, payload: {}, source_agent_id: service().credentials.agent_id };
    const { status, text } = await service().client.post('/events', event);
    expect(status, text).to.equal(202);
  };

  /** Holds back the requests to an address. @returns a function that releases them */
  async function holdBack(address: string): Promise<() => void> {
    let letGo = (): void => {};
    const gone = new Promise<void>((resolve) => (letGo = resolve));
    await browsing().page.route(address, async (route) => {
      await gone;
      // A view that was left ignores the response.
      await route.continue().catch(() => {});
    });
    return letGo;
  }

  it('keeps the address of the new view, whatever was typed just before', async () => {
    const { page } = browsing();
    await page.clock.install();
    await browsing().logIn(service().credentials, 'tasks');
    await page.getByLabel('Search in titles').fill('figures');
    await browsing().goTo('runs');
    await page.getByRole('heading', { level: 1, name: 'Runs' }).waitFor();
    await page.clock.runFor(1000);
    expect(new URL(page.url()).hash).to.equal('#/runs');
  });

  describe('of the overview', () => {
    /** Creates a task with one sleeping run at a time. Each further event adds a waiting run. @returns its path */
    async function makeSleeper(topic: string): Promise<string> {
      const { json, text, status } = await service().client.post('/tasks', {
        title: `Sleeps on ${topic}`,
        description: 'One at a time',
        concurrency_key: topic,
        schedule_kind: 'event',
        schedule_expr: topic,
        created_by: service().credentials.agent_id,
        payload: { pipeline: [{ uses: 'sleep', with: { seconds: 600 }, timeout_seconds: 900 }] },
      });
      expect(status, text).to.equal(201);
      return `/tasks/${String(json['id'])}`;
    }
    const tile = (text: RegExp) => browsing().page.locator('.tile', { hasText: text });

    it('counts waiting and queued runs beyond those it lists', async () => {
      const task = await makeSleeper('crowd');
      for (let n = 0; n < 71; n += 1) await publish('crowd');
      const { page } = browsing();
      await browsing().logIn(service().credentials);
      await tile(/^Running0\s*70 queued/).waitFor();
      await tile(/^Waiting1/).waitFor();
      await page.getByText('and 59 more').waitFor();
      await service().client.post(`${task}/cancel`);
      await tile(/^Running0\s*0 queued/).waitFor();
      await tile(/^Waiting0/).waitFor();
      await page.getByText('Nothing is running.').waitFor();
    });

    it('is not redrawn while a link is held down, so that releasing it is a click', async () => {
      const task = await makeSleeper('held.down');
      await publish('held.down');
      const { page } = browsing();
      await browsing().logIn(service().credentials);
      const listed = page.getByRole('link', { name: 'Sleeps on held.down' });
      await page.locator('.live[data-how=live]').waitFor();
      // Parts that are still to come would move the link.
      await page.locator('.loading').first().waitFor({ state: 'detached' });
      await listed.hover();
      await page.mouse.down();
      const read = page.waitForResponse(async (response) => {
        if (!response.url().includes('/runs?state=queued')) return false;
        return ((await response.json()) as { readonly total: number }).total > 0;
      });
      await publish('held.down');
      await (await read).finished();
      // Drawing takes no further request, so it would have been drawn by now.
      for (let n = 0; n < 3; n += 1) {
        await page.evaluate('new Promise((go) => requestAnimationFrame(() => setTimeout(go)))');
      }
      expect(await listed.count()).to.equal(1);
      await page.mouse.up();
      await page.getByRole('heading', { level: 1, name: 'Sleeps on held.down' }).waitFor();
      await page.goBack();
      await listed.nth(1).waitFor();
      await service().client.post(`${task}/cancel`);
    });

    it('shows no run that ended while the lists were being read', async () => {
      const task = await makeSleeper('alone');
      const { page } = browsing();
      await browsing().logIn(service().credentials);
      await page.locator('.live[data-how=live]').waitFor();
      let letGo = (): void => {};
      const gone = new Promise<void>((resolve) => (letGo = resolve));
      const old = new Promise<void>((resolve) => {
        void page.route('**/runs?state=waiting*', async (route) => {
          const response = await route.fetch();
          const { total } = (await response.json()) as { readonly total: number };
          if (total > 0) {
            resolve();
            await gone;
          }
          await route.fulfill({ response });
        });
      });
      await publish('alone');
      await browsing().goTo('tasks');
      await browsing().goTo('overview');
      await old;
      await service().client.post(`${task}/cancel`);
      letGo();
      await tile(/^Running0\s*0 queued/).waitFor();
      await tile(/^Waiting0/).waitFor();
      await page.getByText('Nothing is running.').waitFor();
    });
  });

  it("keeps a task's next fire and the changes of others up to date", async () => {
    const { json } = await service().client.post('/tasks', {
      title: 'Fires and is changed',
      description: 'Each second',
      payload: { pipeline: [] },
      schedule_kind: 'cron',
      schedule_expr: '* * * * * *',
      created_by: service().credentials.agent_id,
    });
    const path = `/tasks/${String(json['id'])}`;
    const { page } = browsing();
    await browsing().logIn(service().credentials, path.slice(1));
    const next = page.locator('dt', { hasText: 'Next fire' }).locator('+ dd time').first();
    const first = await next.getAttribute('datetime');
    await next.and(page.locator(`:not([datetime="${first}"])`)).waitFor();
    await service().client.post(`${path}/pause`);
    await page.getByRole('button', { name: 'Resume', exact: true }).waitFor();
    await browsing().goTo(`${path.slice(1)}?tab=history`);
    await page.getByRole('row', { name: /TaskPaused/ }).waitFor();
    await service().client.post(`${path}/cancel`);
    await page.locator('.view-head .state', { hasText: 'canceled' }).waitFor();
  });

  it('reads a run of many steps in one request at a time, up to its latest state', async () => {
    const { client, credentials } = service();
    const made = await client.post('/tasks', {
      title: 'Of many steps',
      description: 'Waits',
      created_by: credentials.agent_id,
      schedule_kind: 'event',
      schedule_expr: 'many.steps',
      payload: { pipeline: [{ uses: 'sleep', with: { seconds: 600 }, timeout_seconds: 900 }] },
    });
    const task = `/tasks/${String(made.json['id'])}`;
    const asked = await client.post(`${task}/run_now`);
    const { run_id } = asked.json['details'] as { readonly run_id: string };
    const told = Array.from({ length: 60 }, (_, n) => {
      const data = JSON.stringify({ position: `step-${n}`, run: { id: run_id } });
      return `event: run.changed\ndata: ${data}\n\n`;
    });
    const { page } = browsing();
    await page.route(`**${task}/live`, (route) =>
      route.fulfill({ contentType: 'text/event-stream', body: told.splice(0).join('') }),
    );
    let [letGo, reads] = [(): void => {}, 0];
    const gone = new Promise<void>((resolve) => (letGo = resolve));
    const later = page.waitForRequest(`**/runs/${run_id}?after=*`);
    let ofTask = 0;
    page.on('request', (request) => {
      if (request.url().endsWith(task)) ofTask += 1;
      if (request.url().includes(`/runs/${run_id}?after=`)) reads += 1;
    });
    await page.route(`**/runs/${run_id}*`, async (route) => {
      if (route.request().url().includes('after=')) await gone;
      await route.continue({ url: route.request().url().replace(/\?.*/, '') }).catch(() => {});
    });
    const latest = page.waitForRequest(`**/runs/${run_id}?after=step-59`);
    await browsing().logIn(credentials, `runs/${run_id}`);
    await later;
    letGo();
    await latest;
    expect(reads).to.be.within(1, 2);
    expect(ofTask).to.equal(1);
    await client.post(`${task}/cancel`);
  });

  describe('of the audit', () => {
    it('follows nothing after the view was left', async () => {
      const { page } = browsing();
      await browsing().logIn(service().credentials, 'tasks');
      await page.getByText(/^\d+ tasks?/).waitFor();
      const followed: string[] = [];
      page.on('request', (request) => {
        if (request.url().includes('/audit/live')) followed.push(request.url());
      });
      const letGo = await holdBack('**/audit?*');
      const asked = page.waitForRequest('**/audit?*');
      await browsing().goTo('audit');
      await asked;
      await browsing().goTo('tasks');
      await page.getByText(/^\d+ tasks?/).waitFor();
      letGo();
      expect(followed).to.deep.equal([]);
    });

    it("does not follow the service's own entries, which are not sent live", async () => {
      const { page } = browsing();
      const followed: string[] = [];
      page.on('request', (request) => {
        if (request.url().includes('/audit/live')) followed.push(request.url());
      });
      await browsing().logIn(service().credentials, 'audit?actor=service');
      await page.locator('.live[data-how=refused]').waitFor();
      expect(followed).to.deep.equal([]);
    });

    it('shows what happened between the list and the live stream', async () => {
      const { page } = browsing();
      await browsing().logIn(service().credentials, 'tasks');
      const letGo = await holdBack('**/audit/live*');
      const asked = page.waitForRequest('**/audit/live*');
      await browsing().goTo('audit');
      await asked;
      await publish('between.both');
      letGo();
      await page.getByRole('row', { name: /EventPublished.*between\.both/ }).waitFor();
    });

    it('keeps its entries while the projection is behind, and reads again', async () => {
      const { page } = browsing();
      let asked = 0;
      await page.route('**/audit?*after=*', async (route) => {
        asked += 1;
        if (asked > 1) return route.continue();
        return route.fulfill({ status: 503, json: { error: 'unavailable', message: 'not yet' } });
      });
      const read = page.waitForResponse(
        (response) => response.ok() && /audit\?.*after=/.test(response.url()),
      );
      await browsing().logIn(service().credentials, 'audit');
      await page.locator('.live[data-how=live]').waitFor();
      await read;
      expect(await page.locator('.failure').count()).to.equal(0);
      expect(await page.locator('tbody tr').count()).to.be.greaterThan(0);
    });

    it('waits for its pending read, however many entries arrive', async () => {
      const { page } = browsing();
      const read = page.waitForResponse(/audit\?.*after=/);
      await browsing().logIn(service().credentials, 'audit');
      await read;
      let asked = 0;
      page.on('request', (request) => {
        if (request.url().includes('/audit?')) asked += 1;
      });
      const letGo = await holdBack('**/audit?*');
      for (let n = 0; n < 20; n += 1) {
        await Promise.all(Array.from({ length: 50 }, () => publish('more.of.it')));
      }
      await publish('the.last');
      expect(asked).to.be.at.most(1);
      letGo();
      await page.getByRole('row', { name: /the\.last/ }).waitFor();
      // Entries that arrive during a read cause one more, so there are far fewer reads than entries.
      expect(asked).to.be.within(1, 30);
      expect(await page.locator('tbody tr').count()).to.be.lessThan(300);
    });

    it('leaves out no entry, however many were read or arrive', async () => {
      const { page } = browsing();
      for (let n = 0; n < 310; n += 1) await publish('much.of.it');
      await browsing().logIn(service().credentials, 'audit');
      await page.locator('.live[data-how=live]').waitFor();
      const rows = page.locator('tbody tr');
      const older = async (many: number): Promise<void> => {
        await page.getByRole('button', { name: 'Older' }).click();
        await rows.nth(many - 1).waitFor();
      };
      for (let many = 100; many <= 250; many += 50) await older(many);
      await publish('one.more');
      await page.getByRole('row', { name: /one\.more/ }).waitFor();
      await older(301);
      const addresses = await page.evaluate<string[]>(
        `[...document.querySelectorAll('tbody tr a.name')].map(({ hash }) => hash)`,
      );
      const found = addresses.flatMap(
        (each) => /^#.*much\.of\.it\?at=(\d+)$/.exec(each)?.[1] ?? [],
      );
      expect(found.map(Number)).to.deep.equal(found.map((_, n) => 309 - n));
      expect(found).to.have.length.greaterThan(250);
    });
  });
});
