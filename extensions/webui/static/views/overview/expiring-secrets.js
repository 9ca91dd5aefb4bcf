// Secrets that have expired, or will soon.

import { html } from '../../preact.js';
import { may } from '../../client.js';
import { counted } from '../../times.js';
import { Link } from '../../ui/elements.js';
import { When } from '../../ui/names.js';
import { EXPIRY_WARNING_MS, addressOf } from '../secrets/secret-address.js';

/** The most secrets that are named as about to expire, and the most that are searched for them. */
const MAX_SHOWN = 3;
const MAX_READ = 20;

/**
 * The secrets that have expired, and those that expire soon, the first one first.
 * @param {(path: string, query: object) => Promise<object>} get
 */
export async function readExpiring(get) {
  const now = new Date();
  const soon = new Date(now.getTime() + EXPIRY_WARNING_MS);
  const [expired, both] = await Promise.all([
    get('secrets', { until: now.toISOString() }),
    get('secrets', { until: soon.toISOString(), limit: MAX_READ }),
  ]);
  const ahead = both.items.filter(({ expires_at: at }) => Date.parse(at) > now.getTime());
  const withTasks = (items) => Promise.all(items.map((secret) => withCount(secret, get)));
  const [expiredItems, soonItems] = await Promise.all([
    withTasks(expired.items),
    withTasks(ahead.slice(0, MAX_SHOWN)),
  ]);
  return {
    expired: { total: expired.total, items: expiredItems },
    soon: { total: both.total - expired.total, items: soonItems },
  };
}

/** A secret with the number of tasks that use it; null for agents that see no tasks. */
async function withCount(secret, get) {
  if (!may('tasks:read')) return { ...secret, tasks: null };
  const { name, namespace } = secret;
  const { total } = await get('tasks', { secret: name, namespace, limit: 1 });
  return { ...secret, tasks: total };
}

/** The entries for the list of problems. */
export function expiringProblems({ expired, soon }) {
  return [
    expired.total > 0 && {
      key: 'expired-secrets',
      words: `${counted(expired.total, 'secret')} expired`,
      tone: 'bad',
      to: 'secrets',
      links: expired.items.map((each) => linksOf(each, 'expired')),
    },
    soon.total > 0 && {
      key: 'expiring-secrets',
      tone: 'idle',
      to: 'secrets',
      words: `${counted(soon.total, 'secret')} about to expire`,
      links: soon.items.map((each) => linksOf(each, 'expires')),
    },
  ];
}

function linksOf(secret, verb) {
  const { name, expires_at: at, tasks } = secret;
  const address = addressOf(secret);
  return html`<span key=${address}>
    <${Link} to=${address}>${name}<//> ${verb} <${When} at=${at} />${
      tasks > 0 && html`, used by <${Link} to="tasks?secret=${name}">${counted(tasks, 'task')}<//>`
    }
  </span>`;
}
