// The definition of a task, which people write, apart from what the service adds to it; and how two of them differ.

/** What the service adds. */
const added = new Set(
  (
    'id namespace schedule_text status pause_reason paused snoozed created_at updated_at next_run_at last_run_at ' +
    'exhausted revision warnings created_by'
  ).split(' '),
);

/** The fields that can be written. The owner stays. */
export const definitionOf = (task) =>
  Object.fromEntries(Object.entries(task).filter(([name]) => !added.has(name)));

const isObject = (value) => typeof value === 'object' && value !== null && !Array.isArray(value);

/** What differs, as `{path, before, after}`; null where there is nothing. */
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
