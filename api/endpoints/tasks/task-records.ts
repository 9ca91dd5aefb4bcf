import { fromIso } from '../../../domain/clock.ts';
import { namespaceField } from '../../../domain/namespaces/namespace.ts';
import { scheduleText } from '../../../domain/schedule/words/schedule-text.ts';
import type { Act, LiveTask, Snooze } from '../../../domain/tasks/task.ts';
import { lastRunAsOf, taskAsOf, type PointInTime } from '../../../projections/reading/as-of.ts';
import { latestRunOf, latestStartedRunOf } from '../../../projections/reading/run-queries.ts';
import { agentsProjection } from '../../../projections/views/agents.ts';
import { runsProjection } from '../../../projections/views/runs.ts';
import { lastDayKey, type LastDayDocument } from '../../../projections/views/statistics-tasks.ts';
import { statisticsProjection } from '../../../projections/views/statistics.ts';
import type { TaskDocument } from '../../../projections/views/tasks.ts';
import type { TaskDefinition } from '../../../domain/tasks/task-definition.ts';
import type { ApiDependencies } from '../../dependencies.ts';
import { etag, type Call, type EndpointResponse } from '../../endpoint.ts';
import { inReach } from '../lookup.ts';
import { warningsOf } from './task-definitions.ts';

/** The actor of changes that the service makes by itself. */
const SERVICE = 'service';

/** A task read from its own streams, directly after a command. */
export async function showTask(
  id: string,
  task: LiveTask,
  {
    next_run_at,
    last_run_at,
    warnings,
  }: {
    readonly next_run_at: string | null;
    readonly last_run_at: string | null;
    readonly warnings: readonly string[];
  },
  dependencies: Pick<ApiDependencies, 'readModel'>,
): Promise<object> {
  const { definition, status, pause_reason, created_at, updated_at, revision } = task;
  const timed = definition.schedule_kind !== 'event';
  const exhausted = status === 'active' && timed && next_run_at === null;
  const dates = { created_at, updated_at, next_run_at, last_run_at };
  const schedule_text = wordsOf(definition, task.anchor);
  const { params_schema = null } = definition;
  const acts = await showActs({ ...task, next_run_at }, dependencies);
  return {
    id,
    ...namespaceField(task.namespace),
    ...definition,
    params_schema,
    schedule_text,
    status,
    pause_reason,
    ...acts,
    ...dates,
    exhausted,
    revision,
    warnings,
  };
}

/** A task from the view. */
export async function showDocument(
  task: TaskDocument,
  last_run_at: string | null,
  dependencies: Pick<ApiDependencies, 'tools' | 'readModel'>,
): Promise<object> {
  const warnings = warningsOf(task, task.rhythm.anchor, dependencies);
  const schedule_text = wordsOf(task, task.rhythm.anchor);
  // Documents of an older shape lack it.
  const { params_schema = null, pause_reason = null } = task;
  const acts = await showActs(task, dependencies);
  const shown = {
    ...task,
    params_schema,
    pause_reason,
    ...acts,
    rhythm: undefined,
    secrets: undefined,
  };
  return { ...shown, schedule_text, last_run_at, warnings };
}

/** The agents that paused a task and snoozed its next run; null if it is not paused or snoozed now. */
async function showActs(
  task: {
    readonly paused?: Act | null;
    readonly snoozed?: Snooze | null;
    readonly next_run_at: string | null;
  },
  { readModel }: Pick<ApiDependencies, 'readModel'>,
): Promise<object> {
  const { paused = null, snoozed = null, next_run_at } = task;
  const named = async <T extends Act>(act: T | null) => {
    if (act === null) return null;
    const agent = act.by === SERVICE ? null : await readModel.get(agentsProjection, act.by);
    return { ...act, by_name: agent?.document.name ?? null };
  };
  return {
    paused: await named(paused),
    snoozed: await named(snoozed?.until === next_run_at ? snoozed : null),
  };
}

/** A task's schedule in words. @param anchor when its expression was last set */
export function wordsOf(definition: ScheduleFields, anchor: string): string {
  const { schedule_kind: kind, schedule_expr: expr, timezone } = definition;
  return scheduleText({ kind, expr, timezone, anchor: fromIso(anchor) });
}

type ScheduleFields = Pick<TaskDefinition, 'schedule_kind' | 'schedule_expr' | 'timezone'>;

/** When a run of the task last started, even if that run was removed. */
export async function lastRunAt(
  { readModel }: Pick<ApiDependencies, 'readModel'>,
  id: string,
): Promise<string | null> {
  const [latest] = await readModel.find(runsProjection, latestRunOf(id));
  if (latest !== undefined) {
    if (latest.document.started_at !== null) return latest.document.started_at;
    // A slower query, needed if the latest run has not started.
    const [started] = await readModel.find(runsProjection, latestStartedRunOf(id));
    if (started !== undefined) return started.document.started_at;
  }
  const removed = await readModel.get(statisticsProjection, lastDayKey(id));
  return (removed?.document as LastDayDocument | undefined)?.removed_start ?? null;
}

/**
 * A task in its state at an instant or a position. Its warnings are the present ones, because they depend on the
 * registered tools.
 * @throws HttpError 404 before its creation
 */
export async function pastTask(
  call: Pick<Call, 'dependencies' | 'reach' | 'own'>,
  id: string,
  past: PointInTime,
): Promise<EndpointResponse> {
  const { dependencies } = call;
  const task = inReach(call, 'task', id, await taskAsOf(dependencies.store, id, past));
  const last = await lastRunAsOf(dependencies, id, past);
  return { body: await showDocument(task, last, dependencies), headers: etag(task.revision) };
}
