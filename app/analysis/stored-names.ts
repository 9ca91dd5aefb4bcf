import { agentFold } from '../../domain/agents/agent.ts';
import type { EventStore } from '../../domain/event-store.ts';
import { load } from '../../domain/handle.ts';
import { streams } from '../../domain/streams.ts';
import { taskFold } from '../../domain/tasks/task.ts';
import { nameOfAgent, Names, titleOfTask } from '../../projections/reading/names.ts';

const MAX_NAMES = 10_000;

/** Names of agents and tasks, read from the log. */
export function storedNames(store: EventStore): Names {
  return new Names({
    store,
    agentName: cached(async (id) =>
      nameOfAgent((await load(store, streams.agent(id), agentFold)).state),
    ),
    taskTitle: cached(async (id) =>
      titleOfTask((await load(store, streams.task(id), taskFold)).state),
    ),
  });
}

function cached(
  look: (id: string) => Promise<string | null>,
): (id: string) => Promise<string | null> {
  const known = new Map<string, string | null>();
  return async (id) => {
    const found = known.get(id) ?? (await look(id));
    known.set(id, found);
    const [oldest] = known.keys();
    if (known.size > MAX_NAMES && oldest !== undefined) known.delete(oldest);
    return found;
  };
}
