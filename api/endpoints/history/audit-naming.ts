import { streams } from '../../../domain/streams.ts';
import { nameOfAgent, Names, titleOfTask } from '../../../projections/reading/names.ts';
import type { AuditDocument } from '../../../projections/views/audit.ts';
import { reaches } from '../../../projections/reach.ts';
import type { Call } from '../../endpoint.ts';
import type { AuditItem } from '../../schemas/response-schemas-audit.ts';

/** Filters that apply to items with their names. */
export interface AuditItemFilters {
  readonly source?: string | undefined;
  readonly correlation_id?: string | undefined;
  readonly outcome?: AuditItem['outcome'] | undefined;
  readonly search?: string | undefined;
}

/** Looks up the names of agents, and of tasks within the caller's reach. A refused request may name any task. */
export function namesIn({ dependencies, reach }: Pick<Call, 'dependencies' | 'reach'>): Names {
  const { agents, tasks, store } = dependencies;
  return new Names({
    agentName: async (id) => nameOfAgent((await agents.get(id)).state),
    taskTitle: async (id) => {
      const { state } = await tasks.get(id);
      const isKnown = state.status !== 'none' && reaches(reach, state.namespace);
      return isKnown ? titleOfTask(state) : null;
    },
    store,
  });
}

/** An item as auditors see it, with the names of the agent and of the task. */
export async function namedItem(document: AuditDocument, names: Names): Promise<AuditItem> {
  const { position, at, actor, call = null, ...rest } = document;
  const { source, action, type, stream, ...more } = rest;
  const [actor_name, taskId, subject] = await Promise.all([
    names.agentName(actor),
    taskOfItem(document, names),
    names.subjectOf(stream),
  ]);
  const task_title = await names.taskTitle(taskId);
  const named = { position, at, actor, actor_name, source, action, type, stream };
  return { ...named, task_title, subject, ...more, call };
}

/** A refusal is in its agent's stream. Its data or its path names the task, run or backfill. */
function taskOfItem({ refusal, stream }: AuditDocument, names: Names): Promise<string | null> {
  if (refusal?.run_id !== undefined) return names.taskOf(streams.run(refusal.run_id));
  const [, kind = '', id = ''] =
    /^\/(?:runs\/)?(tasks?|runs|backfills)\/([0-9a-f-]{36})(?:\/|$)/i.exec(refusal?.path ?? '') ??
    [];
  const prefix = { task: 'task', tasks: 'task', runs: 'run', backfills: 'backfill' }[kind];
  return names.taskOf(prefix === undefined ? stream : `${prefix}-${id.toLowerCase()}`);
}

/** Whether filters have no index, so that items must be examined one by one. */
export const needsScan = ({ source, correlation_id, outcome, search }: AuditItemFilters): boolean =>
  [source, correlation_id, outcome, search].some((each) => each !== undefined);

/** Whether an item passes the filters; `search` ignores case, and finds a string in any field. */
export function matches(item: AuditItem, filters: AuditItemFilters): boolean {
  const { source, correlation_id, outcome, search } = filters;
  if (source !== undefined && item.source !== source) return false;
  if (correlation_id !== undefined && item.correlation_id !== correlation_id) return false;
  if (outcome !== undefined && item.outcome !== outcome) return false;
  if (search === undefined) return true;
  const { actor_name, task_title, subject, action, type, stream, reason, refusal, use } = item;
  const names = [actor_name, task_title, subject, use?.name, action, type, stream];
  const wanted = search.toLowerCase();
  return [...names, reason, refusal?.path, refusal?.code].some(
    (value) => value?.toLowerCase().includes(wanted) === true,
  );
}

/** The items that pass the filters. */
export async function matchingItems(
  documents: readonly AuditDocument[],
  filters: AuditItemFilters,
  names: Names,
): Promise<AuditItem[]> {
  const items = await Promise.all(documents.map((document) => namedItem(document, names)));
  return items.filter((item) => matches(item, filters));
}
