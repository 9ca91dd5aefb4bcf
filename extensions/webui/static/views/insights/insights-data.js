// Reads the data of the insights for the choices in the address.

import { call } from '../../client.js';
import { learnErrors, learnTitles } from '../../names.js';
import { shownZone } from '../../zones.js';

/** The periods, each with its query parameters. */
export const periods = {
  '24h': { name: 'last 24 hours', query: { hours: 24 }, by: 'hour' },
  '7d': { name: 'last 7 days', query: { days: 7 }, by: 'day' },
  '31d': { name: 'last 31 days', query: { days: 31 }, by: 'day' },
  '365d': { name: 'last 365 days', query: { days: 365 }, by: 'day' },
};

export const orders = {
  failed: 'most failures',
  failing: 'failing now',
  runs: 'most runs',
  time: 'most time',
  skipped: 'most skipped runs',
};

/** How many tasks are ranked. The figures of each need all its days. */
const MAX_RANKED = 25;

/** The longest period of statistics by hour, by task and by error. */
const MAX_FINE_PERIOD = '31d';

/**
 * @param {Record<string, string>} filters of the address @returns the filters with defaults for missing and unknown
 *   values
 */
export function chosen({ period, by, task, error, sort }) {
  const known = Object.hasOwn(periods, period) ? period : '24h';
  const hasHours = known !== '365d';
  const interval =
    ['hour', 'day'].includes(by) && (by === 'day' || hasHours) ? by : periods[known].by;
  return {
    period: known,
    by: interval,
    task,
    error,
    sort: Object.hasOwn(orders, sort) ? sort : 'failed',
  };
}

/** The statistics of all tasks, or of one, as `rows` by hour or day. */
export async function readFigures({ period, by, task }, signal) {
  const query = { ...periods[period].query, timezone: shownZone(), interval: by };
  const path = task === '' ? 'stats/summary' : `task/${task}/stats`;
  const all = await call('GET', path, { query, signal });
  if (task !== '') await learnTitles([task], signal);
  return { ...all, by, rows: by === 'hour' ? all.by_hour : all.by_day };
}

const fine = (period) => periods[period === '365d' ? MAX_FINE_PERIOD : period];

/** The name of the period that figures by task and error cover. */
export const finePeriod = (period) => fine(period).name;

export async function readTasks({ period, sort }, signal) {
  const query = { ...fine(period).query, timezone: shownZone(), sort, limit: MAX_RANKED };
  const ranking = await call('GET', 'stats/tasks', { query, signal });
  const ids = ranking.items.map(({ task_id: id }) => id);
  await learnTitles(ids, signal);
  return ranking;
}

export async function readErrors({ period, by, task }, signal) {
  const interval = period === '365d' ? 'day' : by;
  const query = {
    ...fine(period).query,
    timezone: shownZone(),
    interval,
    task_id: task,
    limit: 200,
  };
  const found = await call('GET', 'stats/errors', { query, signal });
  const ids = found.items.flatMap(({ tasks }) => tasks.map((each) => each.task_id));
  await learnTitles(ids.slice(0, 200), signal);
  learnErrors(found.items);
  return { ...found, by: interval, task };
}
