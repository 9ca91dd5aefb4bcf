import { toIso } from '../../domain/clock.ts';
import type { Issue } from '../../domain/errors.ts';
import type { JsonObject } from '../../domain/json.ts';
import { checkPayload } from '../../domain/pipeline/check.ts';
import { scheduleWarnings } from '../../domain/schedule/schedule.ts';
import { zoneOf } from '../../domain/schedule/zone.ts';
import type { LiveTask } from '../../domain/tasks/task.ts';
import {
  MAX_PAYLOAD_BYTES,
  taskDefaults,
  type TaskDefinition,
} from '../../domain/tasks/task-definition.ts';
import type { ApiDependencies } from '../dependencies.ts';
import type { Call, Caller } from '../endpoint.ts';
import { HttpError, badRequest, forbidden } from '../errors.ts';
import { instantOf } from './instant.ts';

/** Instants in UTC, ids in lower case. @throws HttpError 400 */
export function normalise(definition: TaskDefinition): TaskDefinition {
  const { timezone } = definition;
  if (zoneOf(timezone) === null) {
    const issue = `"${timezone}" is not a zone of the tz database here`;
    throw badRequest([{ field: 'timezone', issue }]);
  }
  const inUtc = (field: 'starts_at' | 'ends_at'): string | null => {
    const text = definition[field];
    return text === null ? null : toIso(instantOf(field, text, timezone));
  };
  const [starts_at, ends_at] = [inUtc('starts_at'), inUtc('ends_at')];
  return { ...definition, starts_at, ends_at, created_by: definition.created_by.toLowerCase() };
}

/** What the schema can't say. @throws HttpError 400, 413 */
export function checkDefinition(
  definition: TaskDefinition,
  { tools }: Pick<ApiDependencies, 'tools'>,
): { readonly warnings: readonly string[] } {
  const issues: Issue[] = [];
  if (definition.schedule_kind !== 'event' && definition.schedule_expr === null) {
    issues.push({ field: 'schedule_expr', issue: `is required for ${definition.schedule_kind}` });
  }
  const bytes = Buffer.byteLength(JSON.stringify(definition.payload));
  if (bytes > MAX_PAYLOAD_BYTES) {
    const details = { field: 'payload', limit: MAX_PAYLOAD_BYTES };
    const message = `payload has ${bytes} bytes; it may have ${MAX_PAYLOAD_BYTES}`;
    throw new HttpError('payload_too_large', message, details);
  }
  const { issues: faults, warnings } = checkPayload(definition.payload as JsonObject, tools);
  const [first, ...rest] = [...issues, ...faults];
  if (first !== undefined) throw badRequest([first, ...rest]);
  return { warnings: [...warningsOfSchedule(definition), ...warnings] };
}

/** What holds for fires by time alone. */
const boundFields = ['starts_at', 'ends_at', 'max_runs', 'jitter_seconds'] as const;

type ScheduleFields = Pick<
  TaskDefinition,
  'schedule_kind' | 'schedule_expr' | 'timezone' | (typeof boundFields)[number]
>;

/** What may not be meant in a task: of its schedule, then of its pipeline. */
export function warningsOf(
  definition: ScheduleFields & Pick<TaskDefinition, 'payload'>,
  { tools }: Pick<ApiDependencies, 'tools'>,
): readonly string[] {
  const { warnings } = checkPayload(definition.payload as JsonObject, tools);
  return [...warningsOfSchedule(definition), ...warnings];
}

function warningsOfSchedule(definition: ScheduleFields): string[] {
  const { schedule_kind: kind, schedule_expr: expr, timezone } = definition;
  if (kind === 'event') {
    return boundFields
      .filter((field) => definition[field] !== taskDefaults[field])
      .map((field) => `${field}: says nothing here: each event on its topics triggers the task`);
  }
  const warnings = scheduleWarnings({ kind, expr, timezone });
  return warnings.map((warning) => `schedule_expr: ${warning}`);
}

/** Whoever has no `admin` changes only tasks of its own. */
export function mayChange({
  caller,
}: {
  readonly caller: Caller | null;
}): (task: LiveTask) => void {
  return (task) => {
    if (caller === null || caller.admin || task.definition.created_by === caller.agentId) return;
    throw forbidden("this is another agent's task", ['admin'], caller.scopes);
  };
}

/** Whom a task is to belong to: oneself, or for an admin any agent that exists. @throws HttpError 403, 400 */
export async function checkOwner(
  { caller, dependencies }: Pick<Call, 'caller' | 'dependencies'>,
  owner: string,
): Promise<void> {
  if (caller === null || owner === caller.agentId) return;
  if (!caller.admin) {
    throw forbidden('created_by must be the caller', ['admin'], caller.scopes);
  }
  const { state } = await dependencies.agents.get(owner);
  if (state.status !== 'registered') {
    throw badRequest([{ field: 'created_by', issue: 'is not an agent' }]);
  }
}
