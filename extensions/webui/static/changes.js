// What an event changed, field by field.

import { h } from './dom.js';
import { writeJson } from './json-input.js';

const text = (value) => (value === undefined ? 'null' : writeJson(value));

/** `title: "a" → "b"` */
export const changeLine = ({ path, before, after }) =>
  h(
    'li',
    {},
    h('code', {}, path),
    ' ',
    before !== null && before !== undefined && [h('del', {}, text(before)), ' → '],
    h('ins', {}, text(after)),
  );

/** Fields that differ between two flat records, in the form of the service's own changes. */
export function differences(before, after) {
  return [...new Set([...Object.keys(before), ...Object.keys(after)])]
    .map((path) => ({ path, before: before[path] ?? null, after: after[path] ?? null }))
    .filter((each) => JSON.stringify(each.before) !== JSON.stringify(each.after));
}

/**
 * A record of values by dotted paths, one inside the other: `attempts.0.worker` is in the first of `attempts`.
 * @param {[string, unknown][]} flat in the order in which they were set
 */
export function nested(flat) {
  const record = {};
  for (const [path, value] of flat) {
    const parts = path.split('.');
    const last = parts.pop();
    let at = record;
    for (const each of parts) {
      if (!Object.hasOwn(at, each) || typeof at[each] !== 'object' || at[each] === null) {
        define(at, each, {});
      }
      at = at[each];
    }
    define(at, last, typeof value === 'object' ? structuredClone(value) : value);
  }
  return record;
}

/** Not by `=`: a field may be called `__proto__`. */
const define = (record, key, value) =>
  Object.defineProperty(record, key, {
    ...{ value, enumerable: true, configurable: true, writable: true },
  });
