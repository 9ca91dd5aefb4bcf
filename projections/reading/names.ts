import type { AgentState } from '../../domain/agents/agent.ts';
import type { EventStore } from '../../domain/event-store.ts';
import { isUuid } from '../../domain/ids.ts';
import { idOf, kindOf, topicIn } from '../../domain/streams.ts';
import type { TaskState } from '../../domain/tasks/task.ts';

export interface NameSource {
  /** The name of a registered or removed agent; null for others. */
  readonly agentName: (id: string) => Promise<string | null>;
  /** null for a task that never existed. */
  readonly taskTitle: (id: string) => Promise<string | null>;
  readonly store: Pick<EventStore, 'readStream'>;
}

/** The name of an agent, or the last name of a removed one. */
export const nameOfAgent = (agent: AgentState): string | null =>
  agent.status === 'registered' || agent.status === 'removed' ? agent.name : null;

export const titleOfTask = (task: TaskState): string | null =>
  task.status === 'none' ? null : task.definition.title;

const MAX_STREAMS = 10_000;

/** Kinds of streams whose first event names their task. */
const ofTasks: ReadonlySet<string> = new Set(['run', 'backfill', 'webhook']);

/** Kinds of streams whose first event has a permanent name. */
const namedAtFirst: ReadonlySet<string> = new Set(['secret', 'worker', 'apikey']);

/**
 * Names of agents and titles of tasks, for readers of an audit or an export. These are current names, because agents
 * and tasks are found by them today; the audit has changes of names. Removed agents and canceled tasks keep their last
 * name.
 */
export class Names {
  readonly #source: NameSource;
  readonly #tasks = new Map<string, string | null>();
  readonly #subjects = new Map<string, string | null>();

  constructor(source: NameSource) {
    this.#source = source;
  }

  /** @param actor of an event; @returns null if it is not an agent, such as `service` */
  async agentName(actor: string): Promise<string | null> {
    return isUuid(actor) ? this.#source.agentName(actor) : null;
  }

  /** @returns null for a task that never existed */
  async taskTitle(taskId: string | null): Promise<string | null> {
    return taskId !== null && isUuid(taskId) ? this.#source.taskTitle(taskId) : null;
  }

  /**
   * The task that a stream belongs to: its own, or that of a run, a backfill or a delivery.
   * @returns null for other streams
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

  /**
   * The name of a stream's subject: an agent, secret, API key, worker, namespace or topic, but not a task.
   * @returns null for other streams
   */
  async subjectOf(stream: string): Promise<string | null> {
    const kind = kindOf(stream);
    if (kind === 'agent') return this.agentName(idOf(stream));
    if (kind === 'namespace') return idOf(stream);
    if (kind === 'topic') return topicIn(stream).topic;
    if (!namedAtFirst.has(kind)) return null;
    const known = this.#subjects.get(stream);
    if (known !== undefined) return known;
    const [first] = await this.#source.store.readStream(stream, { limit: 1, faulty: true });
    const name = nameInData(first?.data);
    keep(this.#subjects, stream, name);
    return name;
  }

  learn(stream: string, taskId: string | null): void {
    keep(this.#tasks, stream, taskId);
  }
}

/** Remembers something about a stream, and forgets the oldest entry if there are too many. */
function keep<T>(known: Map<string, T>, stream: string, value: T): void {
  known.set(stream, value);
  const [oldest] = known.keys();
  if (known.size > MAX_STREAMS && oldest !== undefined) known.delete(oldest);
}

function nameInData(data: unknown): string | null {
  const { name } = (data ?? {}) as { readonly name?: unknown };
  return typeof name === 'string' ? name : null;
}

/** The task that an event's data names; for a removed run, the task of its start. */
export function taskIn(data: unknown): string | null {
  const { task_id, started } = (data ?? {}) as {
    readonly task_id?: unknown;
    readonly started?: { readonly task_id?: unknown };
  };
  const found = task_id ?? started?.task_id;
  return typeof found === 'string' ? found : null;
}
