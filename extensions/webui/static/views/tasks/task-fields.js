// The fields of a task, and how they become the body of a request.

import { parseTyped, writeJson } from '../../json.js';

const example = {
  pipeline: [{ id: 'say', uses: 'echo', with: { text: 'Hello, it is ${now}' } }],
};

export const scheduleHints = {
  cron: 'Minute, hour, day, month, day of week: 0 9 * * MON-FRI. Or six fields, seconds first.',
  rrule:
    'FREQ=DAILY;BYHOUR=9;BYMINUTE=0;BYSECOND=0. DTSTART, EXDATE and RDATE go on separate lines.',
  once: 'A date and time: 2027-01-31T09:00:00',
  event: 'A topic: orders.created. * matches one segment, # any number.',
};

const strategies = ['exponential_jitter', 'linear', 'fixed'];
const misfires = { latest: 'the latest', skip: 'none', all: 'all' };
const number = (name, label, initial, min, max) =>
  Object.assign({ type: 'number', step: 'any' }, { name, label, initial, min, max });
const choice = (name, label, initial, options) => ({ name, label, initial, options });
const overlaps = ['allow', 'skip', 'queue', 'cancel_running'];
const dateHint = 'A date and time, in the task’s time zone unless it has an offset.';

/** The fields beside title, schedule and pipeline. `initial` is the service's default. */
export const moreFields = [
  { ...number('priority', 'Priority', 5, 1, 9), hint: '1 goes first.' },
  number('timeout_seconds', 'Time limit of a run (s)', null, 1),
  number('max_retries', 'Retries', 3, 0, 50),
  choice('backoff_strategy', 'Backoff', 'exponential_jitter', strategies),
  number('retry_delay_seconds', 'First backoff (s)', 1, 0),
  number('retry_max_delay_seconds', 'Longest backoff (s)', 300, 0),
  choice('overlap_policy', 'While another run is unfinished', 'allow', overlaps),
  choice('misfire_policy', 'Missed fires to run', 'latest', misfires),
  number('misfire_grace_seconds', 'Missed after (s)', 60, 0),
  { ...number('jitter_seconds', 'Jitter (s)', 0, 0), hint: 'Spreads tasks that are due together.' },
  { name: 'starts_at', label: 'No fire before', hint: dateHint },
  { name: 'ends_at', label: 'No fire after', hint: dateHint },
  number('max_runs', 'Fires at most', null, 1),
  number('pause_after_failures', 'Pause after failures in a row', null, 1),
  { name: 'concurrency_key', label: 'Concurrency key' },
  number('concurrency_limit', 'Runs with this key at once', 1, 1),
  { name: 'dedupe_key', label: 'Dedupe key' },
  number('dedupe_window_seconds', 'Dedupe window (s)', null, 0),
  {
    name: 'params_schema',
    label: 'Schema of params',
    type: 'textarea',
    hint: 'JSON Schema. It checks the params of a run, and makes the form for them.',
  },
];

/** A new task: the service's defaults, and an example. */
const defaults = {
  ...Object.fromEntries(moreFields.map(({ name, initial }) => [name, initial])),
  schedule_kind: 'cron',
  schedule_expr: '0 9 * * MON-FRI',
  timezone: Intl.DateTimeFormat().resolvedOptions().timeZone,
  tags: [],
  payload: example,
};

const listed = (tags) =>
  tags
    .split(',')
    .map((tag) => tag.trim())
    .filter((tag) => tag !== '');

/** How the text of a field becomes a value; the text itself for others. */
const parsers = {
  payload: parseTyped,
  params_schema: parseTyped,
  tags: listed,
  ...Object.fromEntries(
    moreFields.filter(({ type }) => type === 'number').map(({ name }) => [name, Number]),
  ),
};

/** The initial values of the fields, as strings. @param task null for a new one */
export function fieldsOf(task) {
  const given = task ?? defaults;
  const names = ['title', 'description', 'schedule_kind', 'schedule_expr', 'timezone'];
  const texts = [...names, ...moreFields.map(({ name }) => name)].map((name) => [
    name,
    String(given[name] ?? ''),
  ]);
  const written = { payload: writeJson(given.payload, 2), tags: given.tags.join(', '), reason: '' };
  const schema = given.params_schema ? { params_schema: writeJson(given.params_schema, 2) } : {};
  return { ...Object.fromEntries(texts), ...written, ...schema };
}

/** The value of an emptied field of an existing task: the default, or none. */
function emptyValue(name, values) {
  if (name === 'title') return '';
  if (name === 'description') return values.title;
  if (name === 'timezone') return 'UTC';
  return name === 'schedule_expr' ? null : (defaults[name] ?? null);
}

/**
 * The body of a request.
 * @param values the present values of the fields
 * @param before the initial values, for an existing task. Only changed fields are sent, as a field may hold less than
 *   the task. Null for a new task, of which every field that is not empty is sent
 */
export function bodyOf({ reason: _reason, ...fields }, before) {
  const values = Object.fromEntries(
    Object.entries(fields).map(([name, each]) => [name, each.trim()]),
  );
  const body = {};
  for (const [name, text] of Object.entries(values)) {
    if (before === null ? text === '' : text === before[name].trim()) continue;
    body[name] = text === '' ? emptyValue(name, values) : (parsers[name] ?? String)(text);
  }
  if (before === null) body.description ??= values.title;
  return body;
}
