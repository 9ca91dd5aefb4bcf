import { agentFold } from '../../domain/agents/agent.ts';
import type { EventStore } from '../../domain/event-store.ts';
import { load } from '../../domain/handle.ts';
import { streams } from '../../domain/streams.ts';
import { taskFold } from '../../domain/tasks/task.ts';
import { nameOfAgent, Names, titleOfTask } from '../../projections/reading/names.ts';

/** Names that are remembered, of agents and of tasks each. */
const MOST = 10_000;

/** What agents and tasks are called, from the log itself. */
export function storedNames(store: EventStore): Names {
  return new Names({
    store,
    agentName: remembered(async (id) =>
      nameOfAgent((await load(store, streams.agent(id), agentFold)).state),
    ),
    taskTitle: remembered(async (id) =>
      titleOfTask((await load(store, streams.task(id), taskFold)).state),
    ),
  });
}

/** A look-up that remembers what it has found last. */
function remembered(
  look: (id: string) => Promise<string | null>,
): (id: string) => Promise<string | null> {
  const known = new Map<string, string | null>();
  return async (id) => {
    const found = known.get(id) ?? (await look(id));
    known.set(id, found);
    const [oldest] = known.keys();
    if (known.size > MOST && oldest !== undefined) known.delete(oldest);
    return found;
  };
}
