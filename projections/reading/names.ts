import type { AgentState } from '../../domain/agents/agent.ts';
import type { EventStore } from '../../domain/event-store.ts';
import { isUuid } from '../../domain/ids.ts';
import { idOf, kindOf } from '../../domain/streams.ts';
import type { TaskState } from '../../domain/tasks/task.ts';

/** Where names come from. */
export interface NameSource {
  /** Of an agent that is registered, or was; null for others. */
  readonly agentName: (id: string) => Promise<string | null>;
  /** null for a task that never was. */
  readonly taskTitle: (id: string) => Promise<string | null>;
  readonly store: Pick<EventStore, 'readStream'>;
}

/** What an agent is called, or was called last. */
export const nameOfAgent = (agent: AgentState): string | null =>
  agent.status === 'registered' || agent.status === 'removed' ? agent.name : null;

/** What a task is called. */
export const titleOfTask = (task: TaskState): string | null =>
  task.status === 'none' ? null : task.definition.title;

/** Streams whose task is remembered. */
const MOST_STREAMS = 10_000;

/** Kinds of streams whose first event says which task they are of. */
const ofTasks: ReadonlySet<string> = new Set(['run', 'backfill', 'webhook']);

/**
 * What agents and tasks are called, for people who read an audit or an export. It is the present name: by it they are
 * found today, and a change of it stands in the audit itself. What was removed or canceled has its last name.
 */
export class Names {
  readonly #source: NameSource;
  readonly #tasks = new Map<string, string | null>();

  constructor(source: NameSource) {
    this.#source = source;
  }

  /** @param actor of an event; @returns null for what is no agent, such as `service` */
  async agentName(actor: string): Promise<string | null> {
    return isUuid(actor) ? this.#source.agentName(actor) : null;
  }

  /** @returns null for a task that never was */
  async taskTitle(taskId: string | null): Promise<string | null> {
    return taskId !== null && isUuid(taskId) ? this.#source.taskTitle(taskId) : null;
  }

  /**
   * The task that a stream is of: its own, or that of a run, a backfill or a delivery.
   * @returns null for streams that are of none
   */
  async taskOf(stream: string): Promise<string | null> {
    const kind = kindOf(stream);
    if (kind === 'task' || kind === 'fires') return idOf(stream);
    if (!ofTasks.has(kind)) return null;
    const known = this.#tasks.get(stream);
    if (known !== undefined) return known;
    const [first] = await this.#source.store.readStream(stream, { limit: 1, faulty: true });
    const taskId = taskIn(first?.data);
    this.learn(stream, taskId);
    return taskId;
  }

  /** Remembers the task of a stream, as an event of it says. */
  learn(stream: string, taskId: string | null): void {
    this.#tasks.set(stream, taskId);
    const [oldest] = this.#tasks.keys();
    if (this.#tasks.size > MOST_STREAMS && oldest !== undefined) this.#tasks.delete(oldest);
  }
}

/** The task that the data of an event name; of a run that was removed, where it says what had started. */
export function taskIn(data: unknown): string | null {
  const { task_id, started } = (data ?? {}) as {
    readonly task_id?: unknown;
    readonly started?: { readonly task_id?: unknown };
  };
  const found = task_id ?? started?.task_id;
  return typeof found === 'string' ? found : null;
}
