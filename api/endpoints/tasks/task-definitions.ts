import { fromIso, toIso, type Instant } from '../../../domain/clock.ts';
import { Refusal, type Issue } from '../../../domain/errors.ts';
import type { JsonObject } from '../../../domain/json.ts';
import { checkPayload } from '../../../domain/pipeline/check.ts';
import { MOST_STEPS, scheduleWarnings } from '../../../domain/schedule/schedule.ts';
import { unknownZone } from '../../../domain/schedule/zone-names.ts';
import { zoneOf } from '../../../domain/schedule/zone.ts';
import { anchorAt } from '../../../domain/tasks/task.ts';
import { scheduleOf } from '../../../domain/tasks/task-schedule.ts';
import {
  MAX_PAYLOAD_BYTES,
  taskDefaults,
  type TaskDefinition,
} from '../../../domain/tasks/task-definition.ts';
import type { ApiDependencies } from '../../dependencies.ts';
import { HttpError, badRequest } from '../../errors.ts';
import { readInstant } from '../history/instant.ts';

/** A definition with its instants in UTC and its ids in lower case, and what may not be meant in it. */
export interface CheckedDefinition {
  readonly definition: TaskDefinition;
  readonly warnings: readonly string[];
}

/**
 * What the schema can't say. That an expression has a fire ahead is said by the command.
 * @throws HttpError 400 listing every fault, 413
 */
export function checkDefinition(
  given: TaskDefinition,
  { tools }: Pick<ApiDependencies, 'tools'>,
  now: Instant,
): CheckedDefinition {
  const bytes = Buffer.byteLength(JSON.stringify(given.payload));
  if (bytes > MAX_PAYLOAD_BYTES) {
    const details = { field: 'payload', limit: MAX_PAYLOAD_BYTES };
    const message = `payload has ${bytes} bytes; it may have ${MAX_PAYLOAD_BYTES}`;
    throw new HttpError('payload_too_large', message, details);
  }
  const issues: Issue[] = [];
  const definition = normalise(given, issues);
  const { schedule_kind: kind, schedule_expr: expr } = definition;
  if (kind !== 'event' && expr === null) {
    issues.push({ field: 'schedule_expr', issue: `is required for ${kind}` });
  }
  const { issues: faults, warnings } = checkPayload(definition.payload as JsonObject, tools);
  issues.push(...faults.slice(0, MOST_ISSUES));
  // Of an expression that is the only fault the command tells: most have none, and would be compiled twice.
  if (issues.length > 0) issues.push(...faultsOfSchedule(definition, issues, now));
  const [first, ...rest] = issues;
  if (first !== undefined) throw badRequest([first, ...rest]);
  return {
    definition,
    warnings: [...warningsOfSchedule(definition, anchorAt(now), MOST_STEPS), ...warnings],
  };
}

/** Most faults of a payload that an answer lists. */
const MOST_ISSUES = 100;

/** Instants in UTC, ids in lower case. @param issues takes what is wrong; what it is wrong with becomes the default */
function normalise(definition: TaskDefinition, issues: Issue[]): TaskDefinition {
  let { timezone } = definition;
  if (zoneOf(timezone) === null) {
    issues.push({ field: 'timezone', issue: unknownZone(timezone) });
    timezone = taskDefaults.timezone;
  }
  const inUtc = (field: 'starts_at' | 'ends_at'): string | null => {
    const text = definition[field];
    if (text === null) return null;
    const found = readInstant(text, timezone, field === 'ends_at' ? 'last' : 'first');
    if (typeof found === 'number') return toIso(found);
    issues.push({ field, issue: found.issue });
    return null;
  };
  const [starts_at, ends_at] = [inUtc('starts_at'), inUtc('ends_at')];
  const created_by = definition.created_by.toLowerCase();
  return { ...definition, timezone, starts_at, ends_at, created_by };
}

/** What is wrong with the schedule of a definition, in fields that are not known to be at fault. */
function faultsOfSchedule(
  definition: TaskDefinition,
  known: readonly Issue[],
  now: Instant,
): readonly Issue[] {
  try {
    scheduleOf(definition, anchorAt(now));
    return [];
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    const found = error.details['issues'] as readonly Issue[];
    return found.filter(({ field }) => known.every((other) => other.field !== field));
  }
}

/** What holds for fires by time alone. */
const boundFields = ['starts_at', 'ends_at', 'max_runs', 'jitter_seconds'] as const;

type ScheduleFields = Pick<
  TaskDefinition,
  'schedule_kind' | 'schedule_expr' | 'timezone' | (typeof boundFields)[number]
>;

/**
 * What may not be meant in a task: of its schedule, then of its pipeline.
 * @param anchor when its expression was last set
 */
export function warningsOf(
  definition: ScheduleFields & Pick<TaskDefinition, 'payload'>,
  anchor: string,
  { tools }: Pick<ApiDependencies, 'tools'>,
): readonly string[] {
  // A list leaves out large payloads.
  if (!('pipeline' in definition.payload)) return warningsOfSchedule(definition, anchor);
  const { warnings } = checkPayload(definition.payload as JsonObject, tools);
  return [...warningsOfSchedule(definition, anchor), ...warnings];
}

/** @param most steps of work of counting; default: as many as a list can afford */
function warningsOfSchedule(definition: ScheduleFields, anchor: string, most?: number): string[] {
  const { schedule_kind: kind, schedule_expr: expr, timezone } = definition;
  if (kind === 'event') {
    return boundFields
      .filter((field) => definition[field] !== taskDefaults[field])
      .map((field) => `${field}: says nothing here: each event on its topics triggers the task`);
  }
  const instantOf = (text: string | null) => (text === null ? null : fromIso(text));
  const [startsAt, endsAt] = [instantOf(definition.starts_at), instantOf(definition.ends_at)];
  const spec = { kind, expr, timezone, anchor: fromIso(anchor), startsAt, endsAt };
  const warnings = scheduleWarnings(spec, most);
  return warnings.map((warning) => `schedule_expr: ${warning}`);
}
