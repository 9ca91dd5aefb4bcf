import { taskDefaults, taskFields } from '../../../domain/tasks/task-definition.ts';
import { usageError } from '../calling/command-errors.ts';
import { isObject } from '../terminal/values.ts';

/** A task as the file defines it. */
export interface DesiredTask {
  /** Identifies the task from one application to the next. */
  readonly name: string;
  /** All fields, with defaults, and with the tags that identify the task. */
  readonly fields: Readonly<Record<string, unknown>>;
  readonly paused: boolean;
}

/** The tasks that a set should consist of. */
export interface DesiredSet {
  readonly set: string;
  readonly tasks: readonly DesiredTask[];
}

/** Names of sets and tasks become tags, and the longest tag contains both. */
const NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,39}$/;

/** The tag of all tasks of a set. */
export const setTag = (set: string): string => `apply:${set}`;

/** The tag of one task of a set. */
const taskTag = (set: string, name: string): string => `apply:${set}/${name}`;

/** A task's name in a set, from its tags; null if it does not belong to the set. */
export function nameIn(set: string, tags: readonly string[]): string | null {
  const prefix = taskTag(set, '');
  const tag = tags.find((each) => each.startsWith(prefix));
  return tag === undefined ? null : tag.slice(prefix.length);
}

/**
 * Parses a file of `svc apply`: `set`, `defaults` (fields for all tasks) and `tasks`, each with a `name`.
 * @param owner of tasks without `created_by`
 * @throws CommandError with the task and field that is wrong
 */
export function parseTaskSet(document: unknown, owner: string): DesiredSet {
  if (!isObject(document)) throw usageError('the file must be an object with set and tasks');
  const { set, tasks, defaults = {}, ...others } = document;
  const [unknown] = Object.keys(others);
  if (unknown !== undefined) {
    throw usageError(`${unknown}: unknown field; a file has set, defaults and tasks`);
  }
  const setName = nameOf(set, 'set');
  if (!isObject(defaults)) throw usageError('defaults: must be an object with fields');
  if (!Array.isArray(tasks)) throw usageError('tasks: must be a list');
  const desired = tasks.map((task: unknown, index) => {
    if (!isObject(task)) throw usageError(`tasks.${index}: must be an object with fields`);
    return desiredTask({ ...defaults, ...task }, setName, `tasks.${index}`, owner);
  });
  const names = desired.map(({ name }) => name);
  const duplicate = names.find((name, index) => names.indexOf(name) !== index);
  if (duplicate !== undefined) throw usageError(`tasks: two are named ${duplicate}`);
  return { set: setName, tasks: desired };
}

function nameOf(value: unknown, field: string): string {
  if (typeof value === 'string' && NAME.test(value)) return value;
  throw usageError(
    `${field}: must be a name of 1 to 40 letters, digits, dots, dashes and underscores`,
  );
}

function desiredTask(
  task: Readonly<Record<string, unknown>>,
  set: string,
  path: string,
  owner: string,
): DesiredTask {
  const { name: given, paused = false, tags = [], ...fields } = task;
  const name = nameOf(given, `${path}.name`);
  const unknown = Object.keys(fields).find((field) => !(field in taskFields));
  if (unknown !== undefined) throw usageError(`${path} (${name}): ${unknown} is not a task field`);
  if (typeof paused !== 'boolean') {
    throw usageError(`${path} (${name}): paused must be true or false`);
  }
  if (!Array.isArray(tags)) throw usageError(`${path} (${name}): tags must be a list`);
  const title = fields['title'] ?? name;
  const all = { ...taskDefaults, title, description: title, created_by: owner, ...fields };
  const payload = all['payload' as keyof typeof all] ?? { pipeline: [] };
  const allTags = [...(tags as readonly unknown[]), setTag(set), taskTag(set, name)];
  return { name, paused, fields: { ...all, payload, tags: allTags } };
}
