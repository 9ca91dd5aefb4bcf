// The current problems, in one sentence and as a list of links.

import { html } from '../../preact.js';
import { call, may } from '../../client.js';
import { learnTitle, learnTitles } from '../../names.js';
import { useStore } from '../../store.js';
import { count, counted } from '../../times.js';
import { Link, Nothing, spaced } from '../../ui/elements.js';
import { Actor, RunLink, TaskLink, When } from '../../ui/names.js';
import { isLost } from '../workers/workers.js';
import { expiringProblems, readExpiring } from './expiring-secrets.js';
import { readQuotas } from './quotas.js';

/** Examples of each problem. */
const MAX_SHOWN = 3;
/** A task counts as failing if its latest run failed within these hours. */
const FAILING_HOURS = 168;
/** How late an undecided fire is overdue, and how long a run waits in the queue before it is stuck. Milliseconds. */
const OVERDUE = 60_000;
const STUCK = 300_000;
const DAY = 86_400_000;
const MAX_WORKERS = 200;
/** How many queued runs are searched for the oldest. */
const MAX_QUEUED = 100_000;

/** Reads a part of the list; null if the agent may not read it or it does not exist. */
async function readable(scope, read) {
  if (![scope].flat().some(may)) return null;
  try {
    return await read();
  } catch (error) {
    if (error.status === 403 || error.status === 404) return null;
    throw error;
  }
}

/** @returns the data of the list; null if unknown */
export async function readProblems(signal, after) {
  const get = (path, query) => call('GET', path, { query: { limit: MAX_SHOWN, ...query }, signal });
  const until = new Date(Date.now() - OVERDUE).toISOString();
  const [failing, skipping, overdue, paused, lost, queued, resent, expired, secrets, quotas] =
    await Promise.all([
      readable('runs:read', () =>
        get('stats/tasks', { sort: 'failing', hours: FAILING_HOURS, after }),
      ),
      readable('runs:read', () => get('stats/tasks', { sort: 'skipped', hours: 24, after })),
      readable('tasks:read', () => get('tasks/due', { until })),
      readable('tasks:read', () => get('tasks', { status: 'paused' })),
      readable(['jobs:work', 'ops'], () => readLost(get)),
      readable('runs:read', () => readQueue(get)),
      readable('admin', () => get('webhooks/resent', { after })),
      readable('admin', () => get('agents/keys', { until: new Date().toISOString() })),
      readable(['secrets:read', 'secrets:write', 'namespace:admin'], () => readExpiring(get)),
      readQuotas(signal),
    ]);
  for (const { task_id: id, title } of overdue?.items ?? []) learnTitle({ id, title });
  for (const task of paused?.items ?? []) learnTitle(task);
  const ids = [failing, skipping].flatMap((each) => each?.items ?? []).map(({ task_id: id }) => id);
  await learnTitles([...ids, ...(queued?.run ? [queued.run.task_id] : [])], signal);
  return { failing, skipping, overdue, paused, lost, queued, resent, expired, secrets, quotas };
}

/** The queued runs: how many, and the oldest. */
async function readQueue(get) {
  const { total, items } = await get('runs', { state: 'queued', limit: 1 });
  if (total <= 1 || total > MAX_QUEUED) return { total, run: items[0] ?? null };
  const last = await get('runs', { state: 'queued', limit: 1, offset: total - 1 });
  return { total, run: last.items[0] ?? items[0] };
}

/** Workers that have neither left nor been heard of recently. */
async function readLost(get) {
  const { items } = await get('workers', { state: 'active', limit: MAX_WORKERS });
  return items.filter(isLost);
}

const isStuck = ({ run }) =>
  run !== null && Date.now() - Math.max(Date.parse(run.queued_at), Date.parse(run.run_at)) > STUCK;

/** Whether something was sent twice in the last day. */
const isRecent = ({ items: [latest] }) =>
  latest !== undefined && Date.now() - Date.parse(latest.resent_at) < DAY;

const tasksOf = ({ items }) =>
  items.map(({ task_id: task, id = task }) => html`<${TaskLink} key=${id} id=${id} />`);

const many = (of) => of?.total ?? 0;

/**
 * The problems found, worst first: `{key, words, tone, to, links}`; `words` go into the sentence.
 * @param health the service's report; undefined until it was read
 * @param halted the names of halted projections; undefined: not known
 */
function problemsIn({ data, hold, health, halted = [] }) {
  const [expired, expiring] = data.secrets === null ? [] : expiringProblems(data.secrets);
  const all = [
    hold !== null && holdProblem(hold),
    health && healthProblem(health),
    halted.length > 0 && haltedProblem(halted),
    ...failuresIn(data),
    ...expiredKeysIn(data),
    expired,
    ...usedUpQuotasIn(data),
    ...interruptionsIn(data),
    expiring,
  ];
  return all.filter(Boolean);
}

const holdProblem = (hold) => ({
  key: 'hold',
  words: 'on hold',
  tone: 'wait',
  to: 'system',
  links: [
    html`<span>“${hold.reason}”, <${Actor} id=${hold.by} name=${hold.by_name} />, <${When} at=${hold.since} /></span>`,
  ],
});

/** The parts of the service that are not healthy. A hold is a problem of its own. */
function healthProblem({ status, checks }) {
  const bad = checks.filter((check) => check.status !== 'healthy' && !check.hold);
  if (status === 'healthy' || bad.length === 0) return false;
  const isUnhealthy = status === 'unhealthy';
  return {
    key: 'health',
    words: isUnhealthy ? 'service unhealthy' : 'service degraded',
    tone: isUnhealthy ? 'bad' : 'wait',
    to: 'system',
    links: bad.map(({ name, message }) => {
      const text = name === undefined ? message : `${spaced(name)}: ${message}`;
      return html`<span key=${text}>${text}</span>`;
    }),
  };
}

const haltedProblem = (halted) => ({
  key: 'halted',
  words: `${counted(halted.length, 'projection')} halted`,
  tone: 'bad',
  to: 'system/read-models',
  links: halted.map((name) => html`<span key=${name}>${name}</span>`),
});

/** Tasks, runs and workers that do not do what they should. */
const failuresIn = ({ failing, overdue, queued, lost }) => [
  many(failing) > 0 && {
    key: 'failing',
    words: `${counted(failing.total, 'task')} failing`,
    tone: 'bad',
    to: `insights?sort=failing&period=7d`,
    links: tasksOf(failing),
  },
  many(overdue) > 0 && {
    key: 'overdue',
    words: `${count(overdue.total)} overdue`,
    tone: 'bad',
    // The overdue ones are the first to be due.
    to: 'tasks?status=active&sort=next',
    links: tasksOf(overdue),
  },
  queued !== null &&
    isStuck(queued) && {
      key: 'queue',
      words: `${counted(queued.total, 'run')} stuck in the queue`,
      tone: 'bad',
      to: 'runs?state=queued',
      links: [
        html`<span>the oldest, <${RunLink} id=${queued.run.id} />, <${When} at=${queued.run.queued_at} /></span>`,
      ],
    },
  lost !== null &&
    lost.length > 0 && {
      key: 'lost',
      words: `${counted(lost.length, 'worker')} lost`,
      tone: 'bad',
      to: 'workers',
      links: lost
        .slice(0, MAX_SHOWN)
        .map(
          ({ id, name, last_seen_at: at }) =>
            html`<span key=${id}>${name}, last seen <${When} at=${at} /></span>`,
        ),
    },
];

const expiredKeysIn = ({ expired }) => [
  many(expired) > 0 && {
    key: 'expired',
    words: `${counted(expired.total, 'API key')} expired`,
    tone: 'bad',
    to: 'agents/keys?days=0',
    links: expired.items.map(
      ({ id, agent_id: agent, name }) => html`<${Link} key=${id} to="agents/${agent}">${name}<//>`,
    ),
  },
];

const usedUpQuotasIn = ({ quotas }) => [
  quotas.length > 0 && {
    key: 'quotas',
    words: `${counted(quotas.length, 'quota')} used up`,
    tone: 'bad',
    to: 'namespaces',
    links: quotas.map(({ namespace, quota, used, limit }) => {
      const text = `${spaced(quota)}: ${count(used)} of ${count(limit)} in ${namespace}`;
      return html`<${Link} key=${text} to="namespaces/${namespace}">${text}<//>`;
    }),
  },
];

/** What someone may have intended: skipped runs, messages sent twice, paused tasks. */
const interruptionsIn = ({ skipping, resent, paused }) => [
  many(skipping) > 0 && {
    key: 'skipping',
    words: `${counted(skipping.total, 'task')} skipping runs`,
    tone: 'wait',
    to: 'runs?state=skipped',
    links: skipping.items.map(
      ({ task_id: id, skipped_runs: skipped }) =>
        html`<span key=${id}><${TaskLink} id=${id} /> <a href="#/runs?state=skipped&task_id=${id}">${counted(skipped, 'skipped run')}</a></span>`,
    ),
  },
  resent !== null &&
    isRecent(resent) && {
      key: 'resent',
      words: 'webhook messages sent twice',
      tone: 'wait',
      to: 'agents/resent',
      links: resent.items.map(
        ({ id, agent_id: agent, type, attempts }) =>
          html`<${Link} key=${id} to="agents/${agent}">${type}, ${counted(attempts.length, 'attempt')}<//>`,
      ),
    },
  many(paused) > 0 && {
    key: 'paused',
    words: `${counted(paused.total, 'task')} paused`,
    tone: 'idle',
    to: 'tasks?status=paused',
    links: tasksOf(paused),
  },
];

/** Without `admin`, some problems are hidden from the agent that is logged in. */
const limits = () => (may('admin') ? '' : ' as far as you may see');

/**
 * `3 tasks failing, 2 overdue, all else normal`
 * @param of the problems as `useUpdates` returns them; `health` and `halted` as they go into the problems
 */
export function Sentence({ of: { data }, health, halted }) {
  const hold = useStore((state) => state.hold);
  if (data === undefined) return html`<p class="sentence soft">Looking for problems …</p>`;
  const all = problemsIn({ data, hold, health, halted });
  const found = all.filter(({ tone }) => tone !== 'idle');
  if (found.length === 0) return html`<p class="sentence">All normal${limits()}.</p>`;
  return html`<p class="sentence">
    ${found.map(({ key, words, tone }) => html`<span key=${key} class=${tone}>${words}</span>, `)}all else normal${limits()}.
  </p>`;
}

export function Problems({ data, health, halted }) {
  const hold = useStore((state) => state.hold);
  const found = problemsIn({ data, hold, health, halted });
  if (found.length === 0) return html`<${Nothing} text="Nothing needs attention." />`;
  return html`<ul class="list problems">
    ${found.map(
      ({ key, words, tone, to, links = [] }) => html`<li key=${key} class=${tone}>
        <strong><${Link} to=${to}>${words}<//></strong>
        ${links}
      </li>`,
    )}
  </ul>`;
}
