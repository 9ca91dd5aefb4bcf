import { Type, type Static } from '@sinclair/typebox';
import { AnyObject, Nullable, OneOf, closed } from '../../domain/events/schema-parts.ts';
import { taskFields } from '../../domain/tasks/task-definition.ts';
import { pauseReasons, taskStatuses } from '../../domain/vocabulary.ts';
import { scheduleText } from './response-schemas-schedules.ts';
import { count, done, id, listedPayload, pageOf, time, namespace } from './response-schemas.ts';
import { Change } from './response-schemas-audit.ts';
import { Run } from './response-schemas-runs.ts';
import { TaskPayload } from './task-payload.ts';

/** Responses about tasks. */

const warnings = Type.Array(Type.String(), { description: 'settings that may be mistakes' });

/** The agent that changed a task, with the time and the reason. */
const act = {
  at: time,
  by: Type.String({ description: 'id of the agent, or `service`' }),
  by_name: Nullable(
    Type.String({ description: 'name of the agent; null: the service, or removed' }),
  ),
  reason: Nullable(Type.String({ description: 'the reason that was given; null: none' })),
};
const paused = closed(act);
const snoozed = closed({ ...act, until: time });

export const Task = Type.Object(
  {
    ...taskFields,
    payload: TaskPayload,
    params_schema: Nullable(AnyObject),
    id,
    namespace,
    schedule_text: scheduleText,
    created_by: id,
    starts_at: Nullable(time),
    ends_at: Nullable(time),
    status: OneOf(taskStatuses),
    pause_reason: Nullable(OneOf(pauseReasons)),
    paused: Nullable(paused),
    snoozed: Nullable(snoozed),
    created_at: time,
    updated_at: time,
    next_run_at: Nullable(time),
    last_run_at: Nullable(time),
    exhausted: Type.Boolean({ description: 'active and time-based, but without a next fire' }),
    revision: count,
    warnings,
  },
  { title: 'Task', additionalProperties: false },
);
export type Task = Static<typeof Task>;

/** A task in a list. */
export const TaskItem = Type.Object(
  { ...Task.properties, payload: listedPayload },
  { title: 'TaskItem', additionalProperties: false },
);
export type TaskItem = Static<typeof TaskItem>;

export const TaskPage = pageOf('TaskPage', TaskItem);
export type TaskPage = Static<typeof TaskPage>;

export const TaskChecked = Type.Object(
  {
    schedule_text: scheduleText,
    next_fire_at: Nullable(time),
    changes: Type.Array(Change),
    warnings,
  },
  { title: 'TaskChecked', additionalProperties: false },
);
export type TaskChecked = Static<typeof TaskChecked>;

export const RunRequested = done({
  task_id: id,
  run_id: id,
  deduplicated: Type.Optional(Type.Literal(true)),
  skip_reason: Type.Optional(Type.Literal('overlap')),
  run: Type.Optional(Nullable(Run)),
});
export type RunRequested = Static<typeof RunRequested>;

export const Snoozed = done({
  task_id: id,
  delay_seconds: Type.Integer({ minimum: 1 }),
  next_run_at: Nullable(time),
});
export type Snoozed = Static<typeof Snoozed>;

const status = OneOf(taskStatuses);

export const StatusChanged = done({ task_id: id, old_status: status, new_status: status });
export type StatusChanged = Static<typeof StatusChanged>;

export const TaskCanceled = done({
  task_id: id,
  old_status: status,
  new_status: Type.Literal('canceled'),
  canceled_runs: count,
});
export type TaskCanceled = Static<typeof TaskCanceled>;
