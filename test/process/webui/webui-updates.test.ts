import { expect } from 'chai';
import { eventually } from '../../support/signals.ts';
import { atNoon, useBrowser } from './webui-browser.ts';
import { useService } from './webui-service.ts';

/** More than the time between two reads of any list. Milliseconds. */
const BEAT = 12_000;

describe('a list that is a part of a view of the web page', function () {
  this.timeout(300_000);
  const service = useService();
  const browsing = useBrowser(() => service().process.address, atNoon());

  /** Sends a command that must succeed. @returns a text of its response */
  async function sent(path: string, body: object, text: string): Promise<string> {
    const response = await service().client.post(path, body);
    expect(response.status, response.text).to.be.below(300);
    return response.textAt(text);
  }

  /** Creates a task. @returns its id */
  const task = (title: string, pipeline: readonly object[], fields: object): Promise<string> => {
    const { agent_id: owner } = service().credentials;
    const all = { title, description: '-', created_by: owner, payload: { pipeline }, ...fields };
    return sent('/tasks', all, 'id');
  };
  const listening = { schedule_kind: 'event', schedule_expr: 'goods.ordered' };

  /**
   * Expects that a list of a view is read again and again, except while it is paused.
   * @param change made while it is paused
   */
  async function expectPausable(
    view: string,
    path: RegExp,
    {
      what,
      change,
      ends = false,
    }: { what?: string; change?: () => Promise<unknown>; ends?: boolean } = {},
  ): Promise<void> {
    const { page } = browsing();
    await page.clock.install();
    await browsing().logIn(service().credentials, view);
    const button = (name: string) =>
      page.getByRole('button', {
        name: what === undefined ? name : `${name}: ${what}`,
        exact: true,
      });
    await page.locator('.live[data-how=live]').first().waitFor();
    await button('Pause updates').click();
    await button('Resume updates').waitFor();
    const mark = page.locator('.live', { has: page.locator('xpath=following::button[1]') });
    await mark.filter({ hasText: 'paused' }).waitFor();
    let reads = 0;
    page.on('request', (request) => {
      if (path.test(request.url())) reads += 1;
    });
    await change?.();
    await page.clock.runFor(BEAT);
    expect(reads, `${view} while it is paused`).to.equal(0);
    await browsing().expectAccessible();
    const read = page.waitForResponse(path);
    await button('Resume updates').click();
    // What no longer changes has no button.
    if (!ends) await button('Pause updates').waitFor();
    await page.clock.runFor(BEAT);
    await read;
  }

  it('is paused and resumed: the API keys of an agent', async () => {
    const { agent_id: id } = service().credentials;
    await expectPausable(`agents/${id}`, /\/agents\/[^/]+\/keys/, { what: 'API keys' });
  });

  it('is paused and resumed: the read models', () =>
    expectPausable('system/read-models', /\/projections$/));

  it('is paused and resumed: the runs that an event caused', async () => {
    await task('Packs', [], listening);
    const { agent_id: source } = service().credentials;
    const event = { topic: 'goods.ordered', payload: {}, source_agent_id: source };
    const id = await sent('/events', event, 'details.event_id');
    await expectPausable(`events/${id}`, /\/events\/[^/]+$/);
  });

  it('is paused and resumed: the child runs of a run', async () => {
    const child = await task('Waits', [{ uses: 'sleep', with: { seconds: 900 } }], listening);
    const calls = { id: 'calls', uses: 'tasks.run', with: { task_id: child, wait: true } };
    const parent = await task('Has a child', [calls], listening);
    const run = await sent(`/tasks/${parent}/run_now`, {}, 'details.run_id');
    await expectPausable(`runs/${run}`, /[?&]parent_run_id=/, { what: 'Child runs' });
  });

  it('is paused and resumed: the backfills of a task, which end by themselves', async () => {
    await sent('/operations/hold', { reason: 'so that it does not end' }, 'message');
    const yearly = { schedule_kind: 'cron', schedule_expr: '0 0-2 1 1 *' };
    const id = await task('Fills up', [], { ...yearly, timezone: 'UTC' });
    const span = { from: '2026-01-01T00:00:00Z', to: '2026-01-01T02:00:00Z' };
    await sent(`/tasks/${id}/backfill`, span, 'details.backfill_id');
    const { page } = browsing();
    await expectPausable(`tasks/${id}?tab=calendar`, /\/backfills\?/, { what: 'Backfills' });
    await service().client.post('/operations/release', {});
    const backfills = page.getByRole('region', { name: 'Backfills' });
    const update = async (): Promise<void> => page.clock.runFor(BEAT);
    await eventually(async () => {
      await update();
      return (await backfills.locator('.live').count()) === 0;
    });
    await backfills.getByText('completed').waitFor();
  });

  const sleeping = { uses: 'sleep', with: { seconds: 900 } };

  it('is paused and resumed: all of Overview', async () => {
    const id = await task('Ends meanwhile', [], listening);
    await expectPausable(
      'overview',
      /\/(stats\/|runs\?|tasks\/due|approvals\?|projections|health)/,
      {
        change: () => sent(`/tasks/${id}/run_now?wait=20`, {}, 'details.run_id'),
      },
    );
    await browsing().page.locator('.live[data-how=live]').waitFor();
  });

  it('is paused and resumed: the insights by task and by error', () =>
    expectPausable('insights', /\/stats\/(summary|tasks|errors)\?/));

  it('is paused and resumed: the health of the service', () =>
    expectPausable('system', /\/health$/));

  it('is paused and resumed: the quotas of a namespace', () =>
    expectPausable('namespaces/default', /\/usage$/));

  it('is paused and resumed: the tasks that use a secret', async () => {
    const secret = { value: 'x', allow_hosts: [], allow_tasks: null };
    expect((await service().client.put('/secrets/LISTED', secret)).status).to.be.below(300);
    await expectPausable('secrets/LISTED', /\/tasks\?.*secret=LISTED/);
  });

  it('is paused and resumed: the latest runs of a task', async () => {
    const id = await task('Runs meanwhile', [], listening);
    let run = '';
    await expectPausable(`tasks/${id}`, /\/runs\?|\/stats\?|\/tasks\/[^/]+$/, {
      change: async () => {
        run = await sent(`/tasks/${id}/run_now?wait=20`, {}, 'details.run_id');
      },
    });
    const { page } = browsing();
    await page.getByRole('link', { name: run.slice(0, 8), exact: true }).waitFor();
    await page.locator('.live[data-how=live]').waitFor();
  });

  it('is paused and resumed: the calendar of a task', async () => {
    const id = await task('Runs on a day', [], listening);
    const calendar = new RegExp(`/tasks/${id}/calendar|/tasks/${id}/fires|/runs\\?`);
    await expectPausable(`tasks/${id}?tab=calendar`, calendar, {
      change: () => sent(`/tasks/${id}/run_now?wait=20`, {}, 'details.run_id'),
    });
    await browsing()
      .page.getByRole('button', { name: /1 succeeded/ })
      .waitFor();
  });

  it('is paused and resumed: a run and what it waits for', async () => {
    const id = await task('Sleeps long', [sleeping], listening);
    const run = await sent(`/tasks/${id}/run_now`, {}, 'details.run_id');
    const { page } = browsing();
    await expectPausable(`runs/${run}`, new RegExp(`/runs/${run}`), {
      change: () => sent(`/runs/${run}/cancel`, {}, 'message'),
      ends: true,
    });
    await page.locator('.view-head [data-state=canceled]').waitFor();
    await page.locator('.live').waitFor({ state: 'detached' });
  });

  it('is paused and resumed: the audit, which shows afterwards what was missed', async () => {
    const { agent_id: source } = service().credentials;
    const event = { topic: 'missed.meanwhile', payload: {}, source_agent_id: source };
    await expectPausable('audit', /\/audit[?/]/, {
      change: () => sent('/events', event, 'details.event_id'),
    });
    const { page } = browsing();
    await page.getByRole('row', { name: /missed\.meanwhile/ }).waitFor();
    await page.locator('.live[data-how=live]').waitFor();
  });
});
