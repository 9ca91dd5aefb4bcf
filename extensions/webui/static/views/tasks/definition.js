// The definition of a task: the fields that people write, without those that the service adds. Also compares two
// definitions.

/** The fields that the service adds. */
const added = new Set(
  (
    'id namespace schedule_text status pause_reason paused snoozed created_at updated_at next_run_at last_run_at ' +
    'exhausted revision warnings created_by'
  ).split(' '),
);

/** The fields that can be changed. The owner cannot. */
export const definitionOf = (task) =>
  Object.fromEntries(Object.entries(task).filter(([name]) => !added.has(name)));

const isObject = (value) => typeof value === 'object' && value !== null && !Array.isArray(value);

/** The differences, as `{path, before, after}`; null if a side has no value. */
export function differences(before, after, path = '') {
  if (JSON.stringify(before) === JSON.stringify(after)) return [];
  const isPair =
    (isObject(before) && isObject(after)) ||
    (Array.isArray(before) && Array.isArray(after) && [...before, ...after].some(isObject));
  if (!isPair) return [{ path, before: before ?? null, after: after ?? null }];
  const names = new Set([...Object.keys(before), ...Object.keys(after)]);
  return [...names].flatMap((name) =>
    differences(before[name], after[name], path === '' ? name : `${path}.${name}`),
  );
}
