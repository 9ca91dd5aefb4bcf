import type { EventStore } from '../event-store.ts';
import type { TaskEvent } from '../events/catalogue.ts';
import { streams } from '../streams.ts';

/** Tasks that are remembered. */
const MOST_TASKS = 10_000;

/** Most events of a task that are read at once. */
const PAGE = 1000;

/** Whom a task has belonged to up to an event of it. */
interface Known {
  readonly revision: number;
  readonly owners: ReadonlySet<string>;
}

const knownTasks = new WeakMap<EventStore, Map<string, Known>>();

/**
 * All agents that a task belongs to, or has belonged to. From the task's own stream, of which only what came since is
 * read again.
 *
 * @throws EventStoreError all that the log throws
 */
export async function ownersOf(store: EventStore, taskId: string): Promise<ReadonlySet<string>> {
  const tasks = knownTasks.get(store) ?? new Map<string, Known>();
  knownTasks.set(store, tasks);
  let known = tasks.get(taskId) ?? { revision: -1, owners: new Set<string>() };
  for (;;) {
    const part = { from: known.revision + 1, limit: PAGE, faulty: true };
    const events = await store.readStream(streams.task(taskId), part);
    const last = events.at(-1);
    if (last === undefined) break;
    const sound = events.filter(({ fault }) => fault === undefined) as readonly unknown[];
    known = {
      revision: last.revision,
      owners: new Set([...known.owners, ...(sound as readonly TaskEvent[]).flatMap(ownerIn)]),
    };
    if (events.length < PAGE) break;
  }
  if (tasks.size >= MOST_TASKS) tasks.clear();
  tasks.set(taskId, known);
  return known.owners;
}

/** Whom an event of a task makes its owner, if it does. */
function ownerIn(event: TaskEvent): readonly string[] {
  if (event.type === 'TaskCreated') return [event.data.definition.created_by];
  if (event.type !== 'TaskUpdated') return [];
  const { created_by } = event.data.changes;
  return created_by === undefined ? [] : [created_by];
}
