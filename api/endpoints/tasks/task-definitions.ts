import { fromIso, toIso, type Instant } from '../../../domain/clock.ts';
import { RefusalError, type Issue } from '../../../domain/errors.ts';
import type { JsonObject } from '../../../domain/json.ts';
import { namespaceOf } from '../../../domain/namespaces/namespace.ts';
import { checkPayload } from '../../../domain/pipeline/check-payload.ts';
import { requiredParams, type ParamsRules } from '../../../domain/pipeline/params.ts';
import { MAX_COMPILE_STEPS, scheduleWarnings } from '../../../domain/schedule/schedule.ts';
import { unknownZoneMessage } from '../../../domain/schedule/zone-names.ts';
import { zoneOf } from '../../../domain/schedule/zone.ts';
import { anchorAt } from '../../../domain/tasks/task.ts';
import { scheduleOf } from '../../../domain/tasks/task-schedule.ts';
import {
  MAX_PARAMS_SCHEMA_BYTES,
  MAX_PAYLOAD_BYTES,
  taskDefaults,
  type TaskDefinition,
} from '../../../domain/tasks/task-definition.ts';
import type { ApiDependencies } from '../../dependencies.ts';
import { HttpError, badRequest } from '../../errors.ts';
import { paramsRulesIssues } from '../../params/params-check.ts';
import { readInstant } from '../history/instant.ts';

/** A definition with its instants in UTC and its ids in lower case, and warnings about likely mistakes. */
export interface CheckedDefinition {
  readonly definition: TaskDefinition;
  readonly warnings: readonly string[];
}

/**
 * Checks the rules that the schema cannot express. The command checks that the schedule will fire.
 * @param at.namespace the namespace whose workers' tools can be used
 * @throws HttpError 400 listing every issue, 413
 */
export function checkDefinition(
  given: TaskDefinition,
  { tools }: Pick<ApiDependencies, 'tools'>,
  { namespace, now }: { readonly namespace: string; readonly now: Instant },
): CheckedDefinition {
  checkSize('payload', given.payload, MAX_PAYLOAD_BYTES);
  checkSize('params_schema', given.params_schema ?? null, MAX_PARAMS_SCHEMA_BYTES);
  const issues: Issue[] = [];
  const definition = normalize(given, issues);
  const { schedule_kind: kind, schedule_expr: expr } = definition;
  if (kind !== 'event' && expr === null) {
    issues.push({ field: 'schedule_expr', issue: `is required for ${kind}` });
  }
  const payload = checkPayload(definition.payload as JsonObject, tools.of(namespace));
  issues.push(...payload.issues.slice(0, MAX_ISSUES));
  // Scheduled runs have only the default params. An event task may be intended for manual runs,
  // which can have other params.
  issues.push(...paramsRulesIssues(definition, kind === 'event'));
  // If the expression is the only issue, the command reports it: compiling it here, too, would take twice the time.
  if (issues.length > 0) issues.push(...scheduleIssues(definition, issues, now));
  const [first, ...rest] = issues;
  if (first !== undefined) throw badRequest([first, ...rest]);
  const warnings = scheduleWarningsOf(definition, anchorAt(now), MAX_COMPILE_STEPS);
  return {
    definition,
    warnings: [...warnings, ...payload.warnings, ...paramsWarnings(definition)],
  };
}

/** @throws HttpError 413 */
function checkSize(field: string, value: object | null, limit: number): void {
  const bytes = Buffer.byteLength(JSON.stringify(value));
  if (bytes <= limit) return;
  const message = `${field}: must have at most ${limit} bytes, got ${bytes}`;
  throw new HttpError('payload_too_large', message, { field, limit });
}

/** Issues of a payload that an error lists. */
const MAX_ISSUES = 100;

/**
 * Converts instants to UTC and ids to lower case.
 * @param issues receives the issues; defaults replace the faulty values
 */
function normalize(definition: TaskDefinition, issues: Issue[]): TaskDefinition {
  let { timezone } = definition;
  if (zoneOf(timezone) === null) {
    issues.push({ field: 'timezone', issue: unknownZoneMessage(timezone) });
    timezone = taskDefaults.timezone;
  }
  const inUtc = (field: 'starts_at' | 'ends_at'): string | null => {
    const given = definition[field];
    if (given === null) return null;
    const found = readInstant(given, timezone, field === 'ends_at' ? 'last' : 'first');
    if (typeof found === 'number') return toIso(found);
    issues.push({ field, issue: found.issue });
    return null;
  };
  const [starts_at, ends_at] = [inUtc('starts_at'), inUtc('ends_at')];
  const created_by = definition.created_by.toLowerCase();
  return { ...definition, timezone, starts_at, ends_at, created_by };
}

/** The issues of the schedule, in fields without a known issue. */
function scheduleIssues(
  definition: TaskDefinition,
  known: readonly Issue[],
  now: Instant,
): readonly Issue[] {
  try {
    scheduleOf(definition, anchorAt(now));
    return [];
  } catch (error) {
    if (!(error instanceof RefusalError)) throw error;
    const found = error.details['issues'] as readonly Issue[];
    return found.filter(({ field }) => known.every((other) => other.field !== field));
  }
}

/** Fields that only limit fires by time. */
const boundFields = ['starts_at', 'ends_at', 'max_runs', 'jitter_seconds'] as const;

type ScheduleFields = Pick<
  TaskDefinition,
  'schedule_kind' | 'schedule_expr' | 'timezone' | (typeof boundFields)[number]
>;

/**
 * Warnings about likely mistakes in a task: in its schedule, then in its pipeline.
 * @param anchor when its expression was last set
 */
export function warningsOf(
  definition: ScheduleFields & ParamsRules & { readonly namespace?: string },
  anchor: string,
  { tools }: Pick<ApiDependencies, 'tools'>,
): readonly string[] {
  const warnings = scheduleWarningsOf(definition, anchor);
  // Lists leave out large payloads.
  if (!('pipeline' in definition.payload)) return warnings;
  const own = tools.of(namespaceOf(definition));
  const payload = checkPayload(definition.payload as JsonObject, own);
  return [...warnings, ...payload.warnings, ...paramsWarnings(definition)];
}

/** Warns of an event task whose runs would fail when an event triggers them. */
function paramsWarnings(definition: ParamsRules & Pick<TaskDefinition, 'schedule_kind'>): string[] {
  if (definition.schedule_kind !== 'event') return [];
  return requiredParams(definition).map(
    (key) =>
      `payload.params.${key}: is required by params_schema and has no default, so runs triggered by events will fail`,
  );
}

/** @param maxSteps bounds the work of counting fires; default: a limit that suits lists */
function scheduleWarningsOf(
  definition: ScheduleFields,
  anchor: string,
  maxSteps?: number,
): string[] {
  const { schedule_kind: kind, schedule_expr: expr, timezone } = definition;
  if (kind === 'event') {
    return boundFields
      .filter((field) => definition[field] !== taskDefaults[field])
      .map((field) => `${field}: has no effect, as events on its topics trigger the task`);
  }
  const instantOf = (time: string | null) => (time === null ? null : fromIso(time));
  const [startsAt, endsAt] = [instantOf(definition.starts_at), instantOf(definition.ends_at)];
  const spec = { kind, expr, timezone, anchor: fromIso(anchor), startsAt, endsAt };
  return scheduleWarnings(spec, maxSteps).map((warning) => `schedule_expr: ${warning}`);
}
