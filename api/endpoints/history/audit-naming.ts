import { nameOfAgent, Names, titleOfTask } from '../../../projections/reading/names.ts';
import type { AuditDocument } from '../../../projections/views/audit.ts';
import type { ApiDependencies } from '../../dependencies.ts';
import type { AuditItem } from '../../schemas/answer-schemas-audit.ts';

/** What can be asked of an item of the audit once it is named. */
export interface AuditLooks {
  readonly source?: string | undefined;
  readonly correlation_id?: string | undefined;
  readonly outcome?: AuditItem['outcome'] | undefined;
  readonly search?: string | undefined;
}

/** What agents and tasks are called in this process. */
export function namesIn({
  agents,
  tasks,
  store,
}: Pick<ApiDependencies, 'agents' | 'tasks' | 'store'>): Names {
  return new Names({
    agentName: async (id) => nameOfAgent((await agents.get(id)).state),
    taskTitle: async (id) => titleOfTask((await tasks.get(id)).state),
    store,
  });
}

/** An item as auditors see it: with the names of who did it and of the task that it was done to. */
export async function namedItem(document: AuditDocument, names: Names): Promise<AuditItem> {
  const { position, at, actor, call = null, ...rest } = document;
  const { source, action, type, stream, ...more } = rest;
  const [actor_name, taskId] = await Promise.all([
    names.agentName(actor),
    taskOfItem(document, names),
  ]);
  const task_title = await names.taskTitle(taskId);
  const named = { position, at, actor, actor_name, source, action, type, stream, task_title };
  return { ...named, ...more, call };
}

/** A refusal stands in a stream of its agent: its path says what it was about. */
function taskOfItem({ refusal, stream }: AuditDocument, names: Names): Promise<string | null> {
  const [, kind = '', id = ''] =
    /^\/(?:runs\/)?(tasks?|runs|backfills)\/([0-9a-f-]{36})(?:\/|$)/i.exec(refusal?.path ?? '') ??
    [];
  const of = { task: 'task', tasks: 'task', runs: 'run', backfills: 'backfill' }[kind];
  return names.taskOf(of === undefined ? stream : `${of}-${id.toLowerCase()}`);
}

/** Whether more is asked than a view has an index for: then items are looked at one by one. */
export const isLooking = ({ source, correlation_id, outcome, search }: AuditLooks): boolean =>
  [source, correlation_id, outcome, search].some((each) => each !== undefined);

/** Whether an item is as it is looked for; a search finds a text in any part of it, upper and lower case alike. */
export function looksLike(item: AuditItem, wanted: AuditLooks): boolean {
  const { source, correlation_id, outcome, search } = wanted;
  if (source !== undefined && item.source !== source) return false;
  if (correlation_id !== undefined && item.correlation_id !== correlation_id) return false;
  if (outcome !== undefined && item.outcome !== outcome) return false;
  if (search === undefined) return true;
  const { actor_name, task_title, action, type, stream, reason, refusal } = item;
  const texts = [
    actor_name,
    task_title,
    action,
    type,
    stream,
    reason,
    refusal?.path,
    refusal?.code,
  ];
  const found = search.toLowerCase();
  return texts.some((text) => text?.toLowerCase().includes(found) === true);
}

/** Items of documents, named, as far as they are as it is looked for. */
export async function namedItems(
  documents: readonly AuditDocument[],
  wanted: AuditLooks,
  names: Names,
): Promise<readonly AuditItem[]> {
  const items = await Promise.all(documents.map((document) => namedItem(document, names)));
  return items.filter((item) => looksLike(item, wanted));
}
