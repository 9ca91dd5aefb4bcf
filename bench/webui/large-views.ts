import type { Page } from 'playwright-core';
import type { Filled } from './webui-store.ts';

/** Milliseconds after which a measurement is given up. */
const TIMEOUT_MS = 15_000;
/** After this many frames without requests, everything counts as read. */
const QUIET_FRAMES = 4;

/** Milliseconds until a view has its first content, and until every part of it is there. */
export interface Opened {
  readonly first: number;
  readonly whole: number;
}

/** Something that a person does in a view. `act` and `isDone` are scripts of the page. */
interface Interaction {
  readonly name: string;
  readonly view: string;
  readonly act: string;
  /** Default: everything that it requests was read. */
  readonly isDone?: string;
  /** Milliseconds that the page waits for a further key. They are not counted. */
  readonly typing?: number;
}

/** Name and address of each view. */
export function viewsOf(tasks: Filled['tasks']): readonly (readonly [name: string, to: string])[] {
  const frequent = tasks.get('Check that the shop answers') ?? '';
  const failing = tasks.get('Rebuild the recommendations') ?? '';
  return [
    ['Overview', 'overview'],
    ['Tasks', 'tasks'],
    ['Tasks, searched', 'tasks?search=branch%2099'],
    ['Tasks, paused', 'tasks?status=paused'],
    ['Task, 21,600 runs', `tasks/${frequent}`],
    ['Task, calendar', `tasks/${failing}?tab=calendar`],
    ['Task, definition', `tasks/${failing}?tab=definition`],
    ['Task, history', `tasks/${failing}?tab=history`],
    ['Runs', 'runs'],
    ['Runs, failed', 'runs?state=failed'],
    ['Runs, last hour', 'runs?range=hour'],
    ['Runs, failed by hand in 7 days', 'runs?state=failed&trigger=manual&range=week'],
    ['Runs of a task', `runs?task_id=${frequent}`],
    ['Runs, by error', 'runs?by=error&q=branch'],
    ['Runs, by an error of none', 'runs?by=error&q=nothing%20like%20it'],
    ['Runs, by input', 'runs?by=input&q=orders'],
    ['Runs, by task', 'runs?by=task&q=shop%20answers'],
    ['Runs, by id', 'runs?q=0a1b'],
    ['Events', 'events'],
    ['Insights', 'insights'],
    ['Insights, 7 days', 'insights?period=7d'],
    ['Insights, 31 days', 'insights?period=31d&sort=time'],
    ['Insights, 365 days', 'insights?period=365d'],
    ['Insights of a task', `insights?period=31d&task=${frequent}`],
    ['Approvals', 'approvals'],
    ['Workers', 'workers'],
    ['Audit', 'audit'],
    ['Agents', 'agents'],
    ['Secrets', 'secrets'],
    ['Namespaces', 'namespaces'],
    ['System', 'system'],
    ['Read models', 'system/read-models'],
    ['Streams', 'system/streams'],
  ];
}

/** Opens a view as a click on a link does. */
export function openView(page: Page, to: string): Promise<Opened> {
  const hash = JSON.stringify(`#/${to}`);
  return page.evaluate<Opened>(`new Promise((done) => {
    const content = document.querySelector('#content');
    const before = content.querySelector('h1');
    const begun = performance.now();
    let first = -1;
    location.hash = ${hash};
    const look = () => {
      const took = performance.now() - begun;
      const heading = content.querySelector('h1');
      const parts = content.querySelectorAll('table, dl, .nothing, ul.list, form, .tile, svg');
      const isThere = heading !== null && heading !== before && parts.length > 0;
      if (isThere && first === -1) first = took;
      if ((isThere && content.querySelector('.loading') === null) || took > ${TIMEOUT_MS})
        return done({ first, whole: took });
      requestAnimationFrame(look);
    };
    requestAnimationFrame(look);
  })`);
}

const choose = (label: string, value: string): string =>
  `const field = [...document.querySelectorAll('label')].find((each) => each.textContent === '${label}').control;
   field.value = '${value}';
   field.dispatchEvent(new Event('input', { bubbles: true }));`;
const press = (text: string, among = 'button, a'): string =>
  `[...document.querySelectorAll('#content :is(${among})')].find((each) => each.textContent.trim() === '${text}').click();`;

/** The other measurements, besides opening views. */
export function interactionsOf(tasks: Filled['tasks']): readonly Interaction[] {
  const failing = tasks.get('Rebuild the recommendations') ?? '';
  return [
    { name: 'Tasks: choose a status', view: 'tasks', act: choose('Status', 'paused') },
    {
      name: 'Tasks: search',
      view: 'tasks',
      typing: 200,
      act: choose('Search in titles', 'branch 99'),
    },
    { name: 'Tasks: next page', view: 'tasks', act: press('Next') },
    { name: 'Runs: choose a state', view: 'runs', act: choose('State', 'failed') },
    { name: 'Runs: choose a range', view: 'runs', act: choose('Started', 'hour') },
    { name: 'Runs: next page', view: 'runs', act: press('Next') },
    {
      name: 'Runs: tick all',
      view: 'runs',
      act: `document.querySelector('#content thead input').click();`,
      isDone: `document.querySelector('#content tbody input:not(:checked)') === null`,
    },
    {
      name: 'Runs: open a run',
      view: 'runs?state=failed',
      act: `document.querySelector('#content tbody a[href^="#/runs/"]').click();`,
    },
    { name: 'Task: calendar', view: `tasks/${failing}`, act: press('Calendar') },
    { name: 'Task: definition', view: `tasks/${failing}`, act: press('Definition') },
    { name: 'Task: history', view: `tasks/${failing}`, act: press('History') },
    { name: 'Insights: 7 days', view: 'insights', act: choose('Period', '7d') },
    { name: 'Insights: 31 days', view: 'insights', act: choose('Period', '31d') },
    { name: 'Insights: tasks with most time', view: 'insights', act: choose('Tasks with', 'time') },
    {
      name: 'Search everywhere',
      view: 'overview',
      typing: 120,
      act: `document.querySelector('header .search').click();
        requestAnimationFrame(() => {
          const field = document.querySelector('[role=combobox]');
          field.value = 'branch 99';
          field.dispatchEvent(new Event('input', { bubbles: true }));
        });`,
      isDone: `document.querySelector('#found [role=group][aria-label=Tasks] [role=option]') !== null`,
    },
  ];
}

/** Lets a page count its requests that are under way. Must be called before the page is opened. */
export async function countRequests(page: Page): Promise<void> {
  await page.addInitScript(`{
    const send = globalThis.fetch;
    globalThis.requests = { begun: 0, open: 0 };
    globalThis.fetch = async (url, options) => {
      // A live stream does not end.
      if (String(url).includes('/live')) return send(url, options);
      requests.begun += 1;
      requests.open += 1;
      try {
        const response = await send(url, options);
        await response.clone().text();
        return response;
      } finally {
        requests.open -= 1;
      }
    };
  }`);
}

/**
 * Milliseconds from an action until its result is shown: by default, until the frame after the last of the requests
 * that it causes.
 */
export async function interact(page: Page, interaction: Interaction): Promise<number> {
  const { act, isDone = null, typing = 0 } = interaction;
  const took = await page.evaluate<number>(`new Promise((done) => {
    const before = requests.begun;
    const begun = performance.now();
    ${act}
    let quietAt = 0;
    let frames = 0;
    const look = () => {
      const took = performance.now() - begun;
      const isQuiet = ${isDone === null ? 'requests.begun > before && requests.open === 0' : isDone};
      if (!isQuiet) frames = 0;
      else if ((frames += 1) === 1) quietAt = took;
      // Further requests may follow from the response.
      if (frames === ${QUIET_FRAMES} || took > ${TIMEOUT_MS}) return done(isQuiet ? quietAt : took);
      requestAnimationFrame(look);
    };
    requestAnimationFrame(look);
  })`);
  return took - typing;
}
