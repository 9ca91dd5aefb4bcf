// How many runs ended in each of the last 24 hours, compared with the day before.

import { html } from '../../preact.js';
import { call } from '../../client.js';
import { count, counted, percent } from '../../times.js';
import { Bars } from '../../ui/bars.js';
import { shownZone } from '../../zones.js';
import { bucketLabel, bucketName } from '../insights/buckets.js';

const HOURS = 24;

/** Reads three days by hour: enough for the last 24 hours and the 24 before them. */
export async function readStrip(signal, after) {
  const query = { days: 3, interval: 'hour', timezone: shownZone(), after };
  const { by_hour: hours, timezone } = await call('GET', 'stats/summary', { query, signal });
  const now = Date.now();
  const past = hours.filter(({ start }) => Date.parse(start) <= now);
  const latest = past.slice(-HOURS);
  const before = past.slice(-2 * HOURS, -HOURS);
  return { timezone, latest, before };
}

const sumOf = (hours, field) => hours.reduce((sum, { [field]: each }) => sum + each, 0);

const columns = [
  ['Hour', ({ name }) => name],
  ['Runs', ({ all }) => count(all), 'num'],
  ['Failed', ({ bad }) => count(bad), 'num'],
  ['A day before', ({ before }) => count(before ?? null), 'num'],
];

export function Strip({ timezone, latest, before }) {
  const items = latest.map(({ start, total_runs: all, failed_runs: bad }, n) => {
    const name = bucketName(start, 'hour', timezone);
    const earlier = before[n]?.total_runs;
    const about = `${name}: ${counted(all, 'run')}, ${count(bad)} failed; ${count(earlier ?? null)} a day before`;
    const label = bucketLabel(start, 'hour', timezone);
    return { key: start, label, name, about, all, bad, before: earlier };
  });
  const [all, bad] = [sumOf(latest, 'total_runs'), sumOf(latest, 'failed_runs')];
  const [allBefore, badBefore] = [sumOf(before, 'total_runs'), sumOf(before, 'failed_runs')];
  return html`<p class="hint">
      <strong>${counted(all, 'run')}</strong>, <strong class=${bad > 0 ? 'fault' : ''}>${count(bad)} failed</strong>
      ${all > 0 && ` (${percent(bad / all)})`}
      <span class="key before"> the day before: ${count(allBefore)}, ${count(badBefore)} failed</span>
    </p>
    <${Bars} title="Runs of the last 24 hours by hour" items=${items} columns=${columns} format=${count} />`;
}
