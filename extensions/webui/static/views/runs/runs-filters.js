// The filters of the list of runs, and what they ask the service for.

import { call } from '../../client.js';
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

/** What a search looks in, by the parameter of the service; `''` is the id. A task is looked up by its title first. */
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

/** All names that the address may have. */
export const filterNames = [{ name: 'task_id' }, ...plain, ...custom, ...search];

/** The filters of an address, which may have a span without saying so. */
export function withDefaults(filters) {
  const hasSpan = filters.since !== '' || filters.until !== '';
  const range = filters.range === '' && hasSpan ? 'custom' : filters.range;
  return { ...filters, range, by: filters.by in searches ? filters.by : '' };
}

/** The fields that are shown; a span only where it is typed. */
export const shownFields = ({ range }) => [
  ...plain,
  ...(range === 'custom' ? custom : []),
  ...search,
];

/** The beginning of an id has so many characters at least. */
const MIN_ID = 4;
const ID = /^[0-9a-f][0-9a-f-]*$/i;

/** What is wrong with the search, as a sentence; null for nothing. */
export function searchFault({ by, q }) {
  if (q === '') return null;
  if (by === '' && !(ID.test(q) && q.length >= MIN_ID && q.length <= 36)) {
    return `A run id begins with ${MIN_ID} or more of 0-9, a-f and -.`;
  }
  if (by === 'event_id' && !(ID.test(q) && q.length === 36)) {
    return 'An event id has 36 characters: copy the whole id.';
  }
  return null;
}

/**
 * The parameters that ask the service for these runs; also those of the commands for many runs.
 * @param {string} [foundTask] the task that a search for one has found
 */
export function parametersOf({ task_id, state, trigger, range, since, until, by, q }, foundTask) {
  const quick = ranges[range];
  const from = quick === undefined ? '' : new Date(Date.now() - quick * 1000).toISOString();
  const isCustom = range === 'custom';
  const isText = q !== '' && by !== 'task';
  return {
    task_id: foundTask ?? task_id,
    state,
    trigger,
    start_time: isCustom ? isoOf(since) : from,
    end_time: isCustom ? isoOf(until) : '',
    ...(isText ? { [by || 'id']: q } : {}),
  };
}

/** Tasks that a search offers. */
const MAX_TASKS = 20;

/** The tasks whose title contains what is searched for; none for another search. */
export async function tasksFor({ by, q }, signal) {
  if (by !== 'task' || q === '') return [];
  const query = { search: q, limit: MAX_TASKS };
  return (await call('GET', 'tasks', { query, signal })).items;
}

/** The filters in words, for a question about all that match. */
export function filterWords({ state, trigger, range, by, q }) {
  return [
    state !== '' && `state ${state}`,
    trigger !== '' && `trigger ${trigger}`,
    range !== '' && (range === 'custom' ? 'the time span of the list' : rangeNames[range]),
    q !== '' && by !== 'task' && `${searches[by]} “${q}”`,
  ].filter(Boolean);
}
