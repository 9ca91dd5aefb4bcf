import { apiKeyFold, type ApiKeyState } from '../../domain/agents/api-key.ts';
import { agentFold, type AgentState } from '../../domain/agents/agent.ts';
import type { EventStore } from '../../domain/event-store.ts';
import type {
  AgentEvent,
  ApiKeyEvent,
  SessionEvent,
  TaskEvent,
} from '../../domain/events/catalogue.ts';
import { sessionFold, type SessionState } from '../../domain/agents/session.ts';
import { taskFold, type TaskState } from '../../domain/tasks/task.ts';
import { EventPayloads } from '../../projections/reading/event-payloads.ts';
import { LiveStreams } from '../../projections/reading/live-streams.ts';
import type { ReadModel } from '../../projections/read-model.ts';
import { WorkerDirectory } from '../../projections/reading/worker-directory.ts';
import type { LiveQuotas } from '../../projections/reading/live-quotas.ts';
import { TopicIndex } from '../../projections/reading/topic-index.ts';
import { LiveOwners } from '../../scheduler/owners/owners.ts';
import { PinnedTasks } from '../../scheduler/pinned-tasks.ts';
import type { Supervisor } from './supervisor.ts';

/** Parts of the log that a process keeps in memory, live, so that requests and runs need not read it. */
export interface LiveIndexes {
  readonly agents: LiveStreams<AgentState, AgentEvent>;
  readonly sessions: LiveStreams<SessionState, SessionEvent>;
  readonly apiKeys: LiveStreams<ApiKeyState, ApiKeyEvent>;
  readonly tasks: LiveStreams<TaskState, TaskEvent>;
  readonly pinnedTasks: PinnedTasks;
  readonly eventPayloads: EventPayloads;
  readonly owners: LiveOwners;
  readonly topics: TopicIndex;
  readonly quotas: LiveQuotas;
  readonly workers: WorkerDirectory;
}

/** Starts following the log. `supervisor.notRunning` lists the parts that are not ready yet. */
export function followIndexes(
  store: EventStore,
  readModel: ReadModel,
  supervisor: Supervisor,
  quotas: LiveQuotas,
): LiveIndexes {
  const agents = new LiveStreams(store, 'agent-', agentFold, { keepsMissing: true });
  const sessions = new LiveStreams(store, 'session-', sessionFold);
  const apiKeys = new LiveStreams(store, 'apikey-', apiKeyFold);
  const tasks = new LiveStreams(store, 'task-', taskFold);
  const owners = new LiveOwners(agents);
  const topics = new TopicIndex(store, readModel, (owner) => owners.isStopped(owner));
  const workers = new WorkerDirectory(store, readModel);
  const { signal } = supervisor;
  supervisor.supervise('following agents', (started) => agents.follow(signal, started));
  supervisor.supervise('following sessions', (started) => sessions.follow(signal, started));
  supervisor.supervise('following API keys', (started) => apiKeys.follow(signal, started));
  supervisor.supervise('following tasks', (started) => tasks.follow(signal, started));
  supervisor.supervise('following topics', (started) => topics.follow(signal, started));
  supervisor.supervise('following quotas', (started) => quotas.follow(signal, started));
  supervisor.supervise('following workers', (started) => workers.follow(signal, started));
  const pinnedTasks = new PinnedTasks(store, tasks);
  const eventPayloads = new EventPayloads(store);
  const live = { agents, owners, sessions, apiKeys, tasks, topics, quotas, workers };
  return { ...live, pinnedTasks, eventPayloads };
}
