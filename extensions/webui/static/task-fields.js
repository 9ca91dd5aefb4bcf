// The fields of a task beside its title and schedule, and how all are read from the form.

import { choice, h } from './dom.js';
import { parseTyped } from './json-input.js';

export const example = {
  pipeline: [{ id: 'say', uses: 'echo', with: { text: 'Hello, it is ${now}' } }],
};

export const hints = {
  cron: 'Minute, hour, day, month, day of week: 0 9 * * MON-FRI. Or six fields, seconds first.',
  rrule:
    'FREQ=DAILY;BYHOUR=9;BYMINUTE=0;BYSECOND=0. DTSTART, EXDATE and RDATE on lines of their own.',
  once: 'A date and time: 2027-01-31T09:00:00',
  event: 'A topic: orders.created. * is one segment, # any number.',
};

/** What a new task begins with. */
export const defaults = () => ({
  ...{ schedule_kind: 'cron', schedule_expr: '0 9 * * MON-FRI', tags: [] },
  ...{ timezone: Intl.DateTimeFormat().resolvedOptions().timeZone, priority: 5, max_retries: 3 },
  ...{ backoff_strategy: 'exponential_jitter', overlap_policy: 'allow', misfire_policy: 'latest' },
  ...{ retry_delay_seconds: 1, retry_max_delay_seconds: 300, misfire_grace_seconds: 60 },
  ...{ jitter_seconds: 0, concurrency_limit: 1 },
});

/** Those that always have a value: where one is taken away, the default counts. */
const choices = ['backoff_strategy', 'overlap_policy', 'misfire_policy'];
const numbers = [
  ...['priority', 'max_retries', 'retry_delay_seconds', 'retry_max_delay_seconds'],
  ...['misfire_grace_seconds', 'jitter_seconds', 'concurrency_limit'],
];
/** Those that may have none. */
const optionalText = ['concurrency_key', 'dedupe_key', 'starts_at', 'ends_at'];
const optionalNumbers = [
  ...['dedupe_window_seconds', 'timeout_seconds', 'max_runs', 'pause_after_failures'],
];

/** @param given the task as it is, or the defaults */
export function moreFields(given) {
  const text = (name, attributes = {}) => h('input', { value: given[name] ?? '', ...attributes });
  const number = (name, min, max) => text(name, { type: 'number', min, max, step: 'any' });
  const one = (name, options) => choice(options, given[name]);
  return [
    {
      name: 'priority',
      label: 'Priority',
      hint: '1 goes first.',
      control: number('priority', 1, 9),
    },
    {
      name: 'timeout_seconds',
      label: 'Time limit of a run (s)',
      control: number('timeout_seconds', 1),
    },
    { name: 'max_retries', label: 'Retries', control: number('max_retries', 0, 50) },
    {
      name: 'backoff_strategy',
      label: 'Back-off',
      control: one('backoff_strategy', ['exponential_jitter', 'linear', 'fixed']),
    },
    {
      name: 'retry_delay_seconds',
      label: 'First back-off (s)',
      control: number('retry_delay_seconds', 0),
    },
    {
      name: 'retry_max_delay_seconds',
      label: 'Longest back-off (s)',
      control: number('retry_max_delay_seconds', 0),
    },
    {
      name: 'overlap_policy',
      label: 'While another run is unfinished',
      control: one('overlap_policy', ['allow', 'skip', 'queue', 'cancel_running']),
    },
    {
      name: 'misfire_policy',
      label: 'Of fires that are too late, run',
      control: one('misfire_policy', [
        ['latest', 'the latest'],
        ['skip', 'none'],
        ['all', 'all'],
      ]),
    },
    {
      name: 'misfire_grace_seconds',
      label: 'Too late after (s)',
      control: number('misfire_grace_seconds', 0),
    },
    {
      name: 'jitter_seconds',
      label: 'Spread over (s)',
      hint: 'Of tasks that are due together.',
      control: number('jitter_seconds', 0),
    },
    {
      name: 'starts_at',
      label: 'No fire before',
      hint: 'A date and time.',
      control: text('starts_at'),
    },
    { name: 'ends_at', label: 'No fire after', hint: 'A date and time.', control: text('ends_at') },
    { name: 'max_runs', label: 'Most fires', control: number('max_runs', 1) },
    {
      name: 'pause_after_failures',
      label: 'Pause after failures in a row',
      control: number('pause_after_failures', 1),
    },
    { name: 'concurrency_key', label: 'Concurrency key', control: text('concurrency_key') },
    {
      name: 'concurrency_limit',
      label: 'Runs with it at once',
      control: number('concurrency_limit', 1),
    },
    { name: 'dedupe_key', label: 'Dedupe key', control: text('dedupe_key') },
    {
      name: 'dedupe_window_seconds',
      label: 'Dedupe window (s)',
      control: number('dedupe_window_seconds', 0),
    },
  ];
}

/**
 * What the form says, as a body for the service.
 * @param {(name: string) => string} valueOf
 * @param {(name: string) => boolean} changed of a task that is there: what nobody has touched is not sent, as a field
 *   of the form may hold less than the task has; what is emptied is taken away from it, or is the default again. Left
 *   out: a new task, of which all is sent that is not empty
 */
export function readTask(valueOf, changed) {
  const title = valueOf('title');
  const body = {};
  const take = (name, value, empty) => {
    if (changed === undefined) {
      if (valueOf(name) !== '') body[name] = value();
    } else if (changed(name)) body[name] = valueOf(name) === '' ? empty : value();
  };
  const text = (name, empty) => take(name, () => valueOf(name), empty);
  const number = (name, empty) => take(name, () => Number(valueOf(name)), empty);
  const usual = defaults();
  text('title', '');
  text('description', title);
  if (changed === undefined) body.description ??= title;
  take('payload', () => parseTyped(valueOf('payload')));
  take('tags', () => listed(valueOf('tags')), []);
  text('schedule_kind');
  text('schedule_expr', null);
  text('timezone', 'UTC');
  for (const name of choices) text(name);
  for (const name of numbers) number(name, usual[name]);
  for (const name of optionalText) text(name, null);
  for (const name of optionalNumbers) number(name, null);
  return body;
}

const listed = (tags) =>
  tags
    .split(',')
    .map((tag) => tag.trim())
    .filter((tag) => tag !== '');
