// The filters of the list of runs, and the parameters of the service for them.

import { call } from '../../client.js';
import { errorName } from '../../names.js';
import { isoOf } from '../../times.js';

const states = [
  'queued',
  'running',
  'waiting',
  'retrying',
  'succeeded',
  'failed',
  'canceled',
  'skipped',
];

/** Seconds of each quick range. */
const ranges = { hour: 3600, day: 86_400, week: 604_800 };
const rangeNames = {
  '': 'any',
  hour: 'last hour',
  day: 'last 24 h',
  week: 'last 7 days',
  custom: 'from … to …',
};

/**
 * The data that a search looks in, by the service's parameter; `''` is the id. A task is first looked up by its title.
 */
const searches = {
  '': 'run id',
  error: 'error',
  task: 'task',
  input: 'input',
  event_id: 'event id',
};

const plain = [
  { name: 'state', label: 'State', options: ['', ...states] },
  { name: 'trigger', label: 'Trigger', options: ['', 'schedule', 'manual', 'event', 'backfill'] },
  { name: 'range', label: 'Started', options: rangeNames },
];
const custom = [
  { name: 'since', label: 'Started after', type: 'datetime-local' },
  { name: 'until', label: 'Started before', type: 'datetime-local' },
];
const search = [
  { name: 'by', label: 'Search in', options: searches },
  { name: 'q', label: 'Search for', type: 'search', maxlength: 500 },
];

/** All filters that the address may hold. */
export const filterNames = [
  { name: 'task_id' },
  { name: 'error_group' },
  ...plain,
  ...custom,
  ...search,
];

/** Completes the filters of an address. A start or an end implies the range `custom`. */
export function withDefaults(filters) {
  const hasSpan = filters.since !== '' || filters.until !== '';
  const range = filters.range === '' && hasSpan ? 'custom' : filters.range;
  return { ...filters, range, by: filters.by in searches ? filters.by : '' };
}

/** The fields that are shown. Start and end are shown only for a custom range. */
export const shownFields = ({ range }) => [
  ...plain,
  ...(range === 'custom' ? custom : []),
  ...search,
];

/** The fewest characters of an id that a search takes. */
const MIN_ID = 4;
const ID = /^[0-9a-f][0-9a-f-]*$/i;

/** What is wrong with the search, as a sentence; null for nothing. */
export function searchFault({ by, q }) {
  if (q === '') return null;
  if (by === '' && !(ID.test(q) && q.length >= MIN_ID && q.length <= 36)) {
    return `Enter at least ${MIN_ID} characters of a run id: 0-9, a-f and -.`;
  }
  if (by === 'event_id' && !(ID.test(q) && q.length === 36)) {
    return 'An event id has 36 characters. Enter the whole id.';
  }
  return null;
}

/**
 * The parameters that select these runs, both for the list and for commands on many runs.
 * @param {string} [foundTask] the id of the task that a search by title has found
 */
export function parametersOf(filters, foundTask) {
  const { task_id, error_group, state, trigger, range, since, until, by, q } = filters;
  const quick = ranges[range];
  const from = quick === undefined ? '' : new Date(Date.now() - quick * 1000).toISOString();
  const isCustom = range === 'custom';
  const isText = q !== '' && by !== 'task';
  return {
    task_id: foundTask ?? task_id,
    error_group,
    state,
    trigger,
    start_time: isCustom ? isoOf(since) : from,
    end_time: isCustom ? isoOf(until) : '',
    ...(isText ? { [by || 'id']: q } : {}),
  };
}

/** Whether runs are searched by the title of their task. */
export const isTaskSearch = ({ by, q }) => by === 'task' && q !== '';

/** The most tasks that a search suggests. */
const MAX_TASKS = 20;

/** The tasks whose title contains the search text; none for other searches. */
export async function tasksFor(filters, signal) {
  if (!isTaskSearch(filters)) return [];
  const query = { search: filters.q, limit: MAX_TASKS };
  return (await call('GET', 'tasks', { query, signal })).items;
}

/** The filters in words, for confirming a command on all matching runs. */
export function filterWords({ error_group: group, state, trigger, range, by, q }) {
  return [
    group !== '' && `error “${errorName(group)}”`,
    state !== '' && `state ${state}`,
    trigger !== '' && `trigger ${trigger}`,
    range !== '' && (range === 'custom' ? 'the time span of the list' : rangeNames[range]),
    q !== '' && by !== 'task' && `${searches[by]} “${q}”`,
  ].filter(Boolean);
}
