import { taskDefaults, taskFields } from '../../../domain/tasks/task-definition.ts';
import { usageFault } from '../calling/faults.ts';
import { isObject } from '../terminal/values.ts';

/** A task as a file wants it. */
export interface WantedTask {
  /** What it is known by from one application to the next. */
  readonly name: string;
  /** All fields, those that the file leaves out with their defaults; tags with those that mark it. */
  readonly fields: Readonly<Record<string, unknown>>;
  readonly paused: boolean;
}

/** What a file wants: that the tasks of its set are these and no others. */
export interface WantedSet {
  readonly set: string;
  readonly tasks: readonly WantedTask[];
}

/** Names of sets and tasks become tags, of which the longest holds both. */
const NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,39}$/;

/** The tag of all tasks of a set. */
export const setTag = (set: string): string => `apply:${set}`;

/** The tag of one task of a set. */
const taskTag = (set: string, name: string): string => `apply:${set}/${name}`;

/** The name by which a task is known in a set, as its tags say; null for one that is of no such set. */
export function nameIn(set: string, tags: readonly string[]): string | null {
  const prefix = taskTag(set, '');
  const tag = tags.find((each) => each.startsWith(prefix));
  return tag === undefined ? null : tag.slice(prefix.length);
}

/**
 * Reads what `svc apply` is given: `set`, `defaults` (fields for all tasks) and `tasks`, each with a `name`.
 *
 * @param owner of the tasks that name none
 * @throws CommandFault that says of which task which field is wrong
 */
export function readWanted(document: unknown, owner: string): WantedSet {
  if (!isObject(document)) throw usageFault('the file holds no object with set and tasks');
  const { set, tasks, defaults = {}, ...unknown } = document;
  const [stray] = Object.keys(unknown);
  if (stray !== undefined) throw usageFault(`${stray}: a file has set, defaults and tasks`);
  const setName = nameOf(set, 'set');
  if (!isObject(defaults)) throw usageFault('defaults: is no object with fields');
  if (!Array.isArray(tasks)) throw usageFault('tasks: is no list');
  const wanted = tasks.map((task: unknown, index) => {
    if (!isObject(task)) throw usageFault(`tasks.${index}: is no object with fields`);
    return wantedTask({ ...defaults, ...task }, setName, `tasks.${index}`, owner);
  });
  const names = wanted.map(({ name }) => name);
  const twice = names.find((name, index) => names.indexOf(name) !== index);
  if (twice !== undefined) throw usageFault(`tasks: two are named ${twice}`);
  return { set: setName, tasks: wanted };
}

function nameOf(value: unknown, field: string): string {
  if (typeof value === 'string' && NAME.test(value)) return value;
  throw usageFault(
    `${field}: must be a name of 1 to 40 letters, digits, dots, dashes and underscores`,
  );
}

function wantedTask(
  task: Readonly<Record<string, unknown>>,
  set: string,
  where: string,
  owner: string,
): WantedTask {
  const { name: given, paused = false, tags = [], ...fields } = task;
  const name = nameOf(given, `${where}.name`);
  const stray = Object.keys(fields).find((field) => !(field in taskFields));
  if (stray !== undefined) throw usageFault(`${where} (${name}): ${stray} is no field of a task`);
  if (typeof paused !== 'boolean') throw usageFault(`${where} (${name}): paused is true or false`);
  if (!Array.isArray(tags)) throw usageFault(`${where} (${name}): tags is no list`);
  const title = fields['title'] ?? name;
  // A topic pattern that is left out is kept as `#` or as nothing; a file without one does not mean a change.
  const full = { ...taskDefaults, title, description: title, created_by: owner, ...fields };
  const marked = [...(tags as readonly unknown[]), setTag(set), taskTag(set, name)];
  const payload = full['payload' as keyof typeof full] ?? { pipeline: [] };
  return { name, paused, fields: { ...full, payload, tags: marked } };
}
