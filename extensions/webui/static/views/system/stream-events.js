// Reads the events of a stream with their changes, and builds the state after any event.

import { useRef } from '../../preact.js';
import { call } from '../../client.js';
import { useData } from '../../data.js';

/** Streams whose changes the service can show, by the prefix of their names, with the endpoint. */
export const foldedKinds = { task: 'tasks', run: 'runs', agent: 'agents' };
const PAGE = 200;

/** When an event happened. The store may have recorded it later. */
export const timeOf = ({ metadata, created_at: at }) => metadata.occurredAt ?? at;

/**
 * Reads the first page of a stream. If the service cannot show the stream's changes, reads the page with the revision
 * `at`.
 * @returns as `useData`, of `{events, changes, next, readOn}`; `next` is null at the end of the stream
 */
export function useEvents(stream, at) {
  const [kind] = stream.split('-', 1);
  const history =
    foldedKinds[kind] && `${foldedKinds[kind]}/${stream.slice(kind.length + 1)}/history`;
  const read = useRef(null);
  const result = useData(async (signal) => {
    if (read.current === null) {
      const start = history === undefined && at >= PAGE ? at - (at % PAGE) : 0;
      let first = await readPage({ stream, history, events: [], changes: [], next: start }, signal);
      // The stream ends before the requested revision.
      if (first.events.length === 0 && start > 0)
        first = await readPage({ ...first, next: 0 }, signal);
      while (history !== undefined && first.next !== null && first.events.at(-1).revision < at) {
        first = await readPage(first, signal);
      }
      read.current = first;
    }
    return read.current;
  }, []);
  const readOn = async () => {
    read.current = await readPage(read.current);
    await result.reload();
  };
  return { ...result, data: result.data && { ...result.data, readOn } };
}

/** Reads one more page. @param from the pages read before: `{stream, history, events, changes, next, cursor}` */
async function readPage(from, signal) {
  const path = `streams/${encodeURIComponent(from.stream)}`;
  const page = await call('GET', path, { query: { from: from.next, limit: PAGE }, signal });
  const events = [...from.events, ...page.items];
  const read = { ...from, events, next: page.next_from };
  return from.history === undefined
    ? { ...read, changes: [...from.changes, ...changesOf(page.items, stateAt(from.changes))] }
    : { ...read, ...(await readChanges(read, signal)) };
}

/** Reads as many changes as there are events. */
async function readChanges({ history, events, changes: before, cursor }, signal) {
  const changes = [...before];
  let next = cursor;
  while (next !== null && changes.length < events.length) {
    const page = await call('GET', history, { query: { limit: PAGE, cursor: next }, signal });
    changes.push(...page.items.map((item) => item.changes));
    next = page.next_cursor;
  }
  return { changes, cursor: next };
}

/** The changes of each event, if its data are the latest values of its fields. */
function changesOf(events, state) {
  let before = state;
  return events.map(({ data }) => {
    const after = { ...before, ...data };
    const changes = Object.keys(after)
      .map((path) => ({ path, before: before[path] ?? null, after: after[path] ?? null }))
      .filter((each) => JSON.stringify(each.before) !== JSON.stringify(each.after));
    before = after;
    return changes;
  });
}

/** The state after an event, as its fields were changed up to then. Default: the last event. */
export function stateAt(changes, index = changes.length - 1) {
  const values = new Map();
  for (const each of changes.slice(0, index + 1)) {
    for (const { path, after } of each) values.set(path, after);
  }
  const state = {};
  for (const [path, value] of values) if (value !== null) set(state, path.split('.'), value);
  return state;
}

/** Sets a value at a path: `attempts.0.worker` is a member of the first of `attempts`. */
function set(record, [first, ...rest], value) {
  if (rest.length === 0) {
    define(record, first, typeof value === 'object' ? structuredClone(value) : value);
    return;
  }
  const inner = Object.hasOwn(record, first) ? record[first] : null;
  if (typeof inner !== 'object' || inner === null) define(record, first, {});
  set(record[first], rest, value);
}

/** Not by `=`: a field may be called `__proto__`. */
const define = (record, key, value) =>
  Object.defineProperty(record, key, {
    value,
    enumerable: true,
    configurable: true,
    writable: true,
  });
