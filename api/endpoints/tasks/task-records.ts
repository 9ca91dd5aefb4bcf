import { fromIso } from '../../../domain/clock.ts';
import { scheduleText } from '../../../domain/schedule/words/schedule-text.ts';
import type { LiveTask } from '../../../domain/tasks/task.ts';
import { lastRunAsOf, taskAsOf, type Moment } from '../../../projections/reading/as-of.ts';
import { latestRunOf, latestStartedRunOf } from '../../../projections/reading/run-queries.ts';
import { runsProjection } from '../../../projections/views/runs.ts';
import {
  lastDayKey,
  statisticsProjection,
  type LastDayDocument,
} from '../../../projections/views/statistics.ts';
import type { TaskDocument } from '../../../projections/views/tasks.ts';
import type { TaskDefinition } from '../../../domain/tasks/task-definition.ts';
import type { ApiDependencies } from '../../dependencies.ts';
import type { Answer } from '../../endpoint.ts';
import { notFound } from '../../errors.ts';
import { warningsOf } from './task-definitions.ts';

/** A task as its own streams tell it: right after a command, when no view is needed. */
export function showTask(
  id: string,
  task: LiveTask,
  beside: {
    readonly next_run_at: string | null;
    readonly last_run_at: string | null;
    readonly warnings: readonly string[];
  },
): object {
  const { definition, status, created_at, updated_at, revision } = task;
  const { next_run_at, last_run_at, warnings } = beside;
  const timed = definition.schedule_kind !== 'event';
  const exhausted = status === 'active' && timed && next_run_at === null;
  const dates = { created_at, updated_at, next_run_at, last_run_at };
  const schedule_text = textOf(definition, task.anchor);
  return { id, ...definition, schedule_text, status, ...dates, exhausted, revision, warnings };
}

/** A task as the view has it. */
export function showDocument(
  task: TaskDocument,
  last_run_at: string | null,
  dependencies: Pick<ApiDependencies, 'tools'>,
): object {
  const warnings = warningsOf(task, task.rhythm.anchor, dependencies);
  // A field that is undefined is none in JSON; leaving it out of the copy would take another copy.
  const schedule_text = textOf(task, task.rhythm.anchor);
  return { ...task, rhythm: undefined, schedule_text, last_run_at, warnings };
}

/** A task's schedule in words. @param anchor when its expression was last set */
export function textOf(definition: ScheduleFields, anchor: string): string {
  const { schedule_kind: kind, schedule_expr: expr, timezone } = definition;
  return scheduleText({ kind, expr, timezone, anchor: fromIso(anchor) });
}

type ScheduleFields = Pick<TaskDefinition, 'schedule_kind' | 'schedule_expr' | 'timezone'>;

/** When the task last started to run, by whatever trigger; also where none of its runs is kept any more. */
export async function lastRunAt(
  { readModel }: Pick<ApiDependencies, 'readModel'>,
  id: string,
): Promise<string | null> {
  const [latest] = await readModel.find(runsProjection, latestRunOf(id));
  if (latest !== undefined && latest.document.started_at !== null)
    return latest.document.started_at;
  // The one that was queued last has not started: one has to be looked for that has, which may take longer.
  const [started] =
    latest === undefined ? [] : await readModel.find(runsProjection, latestStartedRunOf(id));
  if (started !== undefined) return started.document.started_at;
  const removed = await readModel.get(statisticsProjection, lastDayKey(id));
  return (removed?.document as LastDayDocument | undefined)?.removed_start ?? null;
}

/**
 * A task as it was at a moment. Warnings are those of today: they depend on what is registered now.
 * @throws HttpError 404 before it was
 */
export async function pastTask(
  dependencies: ApiDependencies,
  id: string,
  moment: Moment,
): Promise<Answer> {
  const task = await taskAsOf(dependencies.store, id, moment);
  if (task === null) throw notFound('task', id);
  const last = await lastRunAsOf(dependencies, id, moment);
  return {
    body: showDocument(task, last, dependencies),
    headers: { ETag: `"${task.revision}"` },
  };
}
