import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Page } from 'playwright-core';
import type { ApiClient } from '../../support/api-client.ts';
import { done, type Everything } from '../../support/little-of-everything.ts';
import { projectRoot } from '../../support/project-root.ts';

/** Ids of further things that dialogs need. */
export interface DialogThings extends Everything {
  /** A task with params, two revisions, a run that succeeded and an unfinished backfill. */
  readonly paper: string;
  readonly ran: string;
  /** An agent with a webhook. */
  readonly mailer: string;
  /** A disabled agent. */
  readonly former: string;
  /** A paused task. */
  readonly paused: string;
}

/** How a dialog is opened: an address, then buttons; `tick` names checkboxes that are ticked first. */
export interface DialogCase {
  readonly at: string;
  readonly tick?: string;
  /** The heading of the section with the buttons. */
  readonly within?: string;
  readonly click: readonly (string | RegExp)[];
  /** Changes what the page reads, for states that take long to bring about. */
  readonly pretend?: (page: Page) => Promise<void>;
}

/** Adds what dialogs need beyond a little of everything. */
export async function fillForDialogs(
  client: ApiClient,
  owner: string,
  of: Everything,
): Promise<DialogThings> {
  const made = await client.post('/tasks', {
    title: 'Order paper',
    description: 'by post',
    created_by: owner,
    schedule_kind: 'cron',
    schedule_expr: '15 5 * * *',
    params_schema: { type: 'object', properties: { sheets: { type: 'integer' } } },
    payload: { pipeline: [{ id: 'order', uses: 'echo' }] },
  });
  const paper = made.textAt('id');
  const ran = (await client.post(`/tasks/${paper}/run_now?wait=20`)).textAt('details.run_id');
  // No worker takes jobs any more, so a backfill of this tool's runs stays unfinished.
  done(await client.put(`/tasks/${paper}`, { payload: { pipeline: [{ uses: 'letters.send' }] } }));
  const span = { from: '2026-02-01T00:00:00Z', to: '2026-02-03T00:00:00Z', concurrency: 1 };
  done(await client.post(`/tasks/${paper}/backfill`, span));
  const agent = async (name: string, fields: object): Promise<string> =>
    (await client.post('/agents', { name, scopes: ['runs:read'], ...fields })).textAt('id');
  const mailer = await agent('mailer', { webhook_url: 'https://mailer.example/hook' });
  const former = await agent('former', {});
  done(await client.post(`/agents/${former}/disable`, {}));
  const paused = done(await client.get('/tasks?status=paused')).textAt('items.0.id');
  return { ...of, paper, ran, mailer, former, paused };
}

type Json = Readonly<Record<string, unknown>>;

/** Responds to a read with changed JSON. */
const changing =
  (url: string, change: (json: Json) => Json) =>
  async (page: Page): Promise<void> => {
    await page.route(url, async (route) => {
      const response = await route.fetch();
      await route.fulfill({ response, json: change((await response.json()) as Json) });
    });
  };

/** The projection of runs with other values. */
const runsView = (values: object) =>
  changing('**/projections', ({ projections }) => ({
    projections: (projections as readonly Json[]).map((each) =>
      each['name'] === 'runs' ? { ...each, ...values } : each,
    ),
  }));

const rebuild = (state: string) =>
  runsView({
    rebuild: {
      state,
      version: 2,
      progress: 0.5,
      handled: 10,
      events_per_second: 5,
      seconds_left: 2,
      detail: null,
      comparison: null,
    },
  });

const parkedKey = {
  key: 'a-key',
  stream: 'run-a-key',
  type: 'RunStarted',
  position: '12',
  error: 'data must have required property',
};

/** Each dialog of the page. */
export function dialogCases(of: DialogThings): readonly DialogCase[] {
  const { task, failed, waiting, agent, namespace, paper, ran, mailer, former, paused } = of;
  const system = 'system/read-models';
  const bulk = ['Pause …', 'Resume …', 'Run …', 'Tag …', 'Cancel …'];
  return [
    ...['Pause', 'Snooze', 'Cancel', /^Backfill/].map((name) => ({
      at: `tasks/${task}`,
      click: [name],
    })),
    { at: `tasks/${paused}`, click: ['Resume'] },
    { at: `tasks/${paper}`, click: ['Run now'] },
    ...bulk.map((name) => ({ at: 'tasks', tick: 'Select Print the labels', click: [name] })),
    { at: 'tasks?status=active', click: ['Save this view …'] },
    { at: `tasks/${paper}?tab=calendar`, within: 'Backfills', click: ['Cancel'] },
    { at: `tasks/${paper}?tab=definition`, click: ['Restore this revision … 0'] },
    { at: 'runs', click: ['Retry failed runs …'] },
    { at: 'runs', click: ['Cancel unfinished runs …'] },
    { at: 'runs', tick: 'Tick all runs of this page', click: [/^Retry .* ticked/] },
    { at: `runs/${waiting}`, click: ['Cancel the run'] },
    { at: `runs/${failed}`, click: ['Retry …'] },
    { at: `runs/${ran}`, click: ['Run again …'] },
    { at: 'overview', click: ['Retry no paper in the printer'] },
    { at: 'events', click: ['Publish test event'] },
    { at: 'approvals', click: [/^Approve: /] },
    { at: 'approvals', click: [/^Reject: /] },
    { at: 'workers', click: ['Drain post-office'] },
    ...['New secret …', 'Disable …', 'Remove …', 'Revoke wall-screen'].map((name) => ({
      at: `agents/${agent}`,
      click: [name],
    })),
    { at: `agents/${mailer}`, click: ['New webhook secret …'] },
    { at: `agents/${mailer}`, click: ['Send a test message'] },
    {
      at: `agents/${mailer}`,
      click: [/^Send again/],
      pretend: changing('**/webhooks/deliveries?*', (page) => ({
        ...page,
        items: [
          {
            id: 'x',
            created_at: '2026-02-01T00:00:00.000Z',
            type: 'run.failed',
            run_id: null,
            state: 'failed',
            end: 'gave_up',
            next_attempt_at: null,
            attempts: [],
            payload: {},
          },
        ],
      })),
    },
    { at: `agents/${former}`, click: ['Enable …'] },
    { at: 'secrets', click: ['Delete PRINTER_TOKEN'] },
    { at: 'secrets', click: ['Rotate the key …'] },
    { at: `namespaces/${namespace}`, click: ['Delete …'] },
    { at: 'system', click: ['Hold the service …'] },
    { at: system, click: ['Rebuild runs'] },
    { at: system, click: ['Pause runs'], pretend: rebuild('filling') },
    { at: system, click: ['Resume runs'], pretend: rebuild('paused') },
    { at: system, click: ['Switch runs'], pretend: rebuild('ready') },
    { at: system, click: ['Discard runs'], pretend: rebuild('failed') },
    {
      at: system,
      click: ['Roll back runs'],
      pretend: runsView({ previous: { version: 1, until: '2036-02-01T00:00:00.000Z' } }),
    },
    ...['Retry', 'Skip'].map((name) => ({
      at: `${system}?parked=runs`,
      click: [name],
      pretend: changing('**/projections/runs/parked?*', (page) => ({
        ...page,
        items: [parkedKey],
        total: 1,
      })),
    })),
  ];
}

/** Titles in the source that belong to no dialog. */
const otherTitles = ['Say hello', 'name', '-'];
const TITLE = /\btitle: (?:\w+ \? )?(`[^`]*`|'[^']*')(?: : kind\.title)?,?/g;

/** The titles of all dialogs in the page's source, with `${…}` for the parts that vary. */
export function dialogTitles(): readonly string[] {
  const folder = join(projectRoot, 'extensions/webui/static');
  const names = readdirSync(folder, { recursive: true, encoding: 'utf8' });
  const found = names
    .filter((name) => name.endsWith('.js'))
    .flatMap((name) => [...readFileSync(join(folder, name), 'utf8').matchAll(TITLE)])
    .map(([, title = '']) => title.slice(1, -1));
  return [...new Set(found)].filter(
    (title) => !otherTitles.includes(title) && !title.startsWith('Copy of'),
  );
}

/** Whether a shown title is one of a title in the source. */
export function isTitle(source: string, shown: string): boolean {
  const parts = source
    .split(/\$\{[^}]*\}/)
    .map((part) => part.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&'));
  return new RegExp(`^${parts.join('.*')}$`).test(shown);
}
