import { toIso, type Instant } from '../../../domain/clock.ts';
import type { Issue } from '../../../domain/errors.ts';
import {
  parseInstant,
  parseTimestamp,
  TimestampError,
  type DayEdge,
} from '../../../domain/schedule/timestamp.ts';
import { reaches } from '../../../projections/reach.ts';
import type { Call } from '../../endpoint.ts';
import { HttpError, badRequest } from '../../errors.ts';

/**
 * A client's timestamp, normalized (UTC, milliseconds); undefined if the client gave none.
 * @throws HttpError 400 naming the field, for a string that is not a timestamp with an offset
 */
export function instant(field: string, given: string | undefined): string | undefined {
  return given === undefined ? undefined : toIso(instantOf(field, given, null));
}

/**
 * Like {@link instant}, but a timestamp without an offset is wall time in a task's zone.
 * @param zoneOf called only for a timestamp without an offset; null if there is no such task
 * @param edge the meaning of a date without a time
 * @throws HttpError 400 naming the field, and what `zoneOf` throws
 */
export async function instantOfTask(
  field: string,
  given: string | undefined,
  zoneOf: () => Promise<string | null>,
  edge: DayEdge = 'first',
): Promise<string | undefined> {
  if (given === undefined) return undefined;
  // An invalid timestamp is reported before an unknown task.
  const inUtc = instantOf(field, given, 'UTC');
  if (parseTimestamp(withPlus(given)).offset !== null) return toIso(inUtc);
  return toIso(instantOf(field, given, await zoneOf(), edge));
}

/** Reads `start_time` and `end_time` of runs. A date without a time includes that day in the task's zone. */
export function spanReader(
  call: Pick<Call, 'dependencies' | 'reach'>,
  taskId: string | undefined,
): (field: string, given: string | undefined) => Promise<string | undefined> {
  const zoneOf = () => zoneOfTask(call, taskId);
  return (field, given) =>
    instantOfTask(field, given, zoneOf, field === 'end_time' ? 'after' : 'first');
}

/** Several timestamps by their fields. @throws HttpError 400 listing all invalid ones */
export async function instantsOf<Field extends string>(
  given: Readonly<Record<Field, string | undefined>>,
  read: (
    field: string,
    value: string | undefined,
  ) => Promise<string | undefined> | string | undefined,
): Promise<Readonly<Record<Field, string | undefined>>> {
  const issues: Issue[] = [];
  const found: Record<string, string | undefined> = {};
  for (const [field, value] of Object.entries<string | undefined>(given)) {
    try {
      found[field] = await read(field, value);
    } catch (error) {
      if (!(error instanceof HttpError) || error.code !== 'bad_request') throw error;
      issues.push(...(error.details['issues'] as readonly Issue[]));
    }
  }
  const [first, ...rest] = issues;
  if (first !== undefined) throw badRequest([first, ...rest]);
  return found as Record<Field, string | undefined>;
}

/** The time zone of a task; null without a task. */
export async function zoneOfTask(
  { dependencies: { tasks }, reach }: Pick<Call, 'dependencies' | 'reach'>,
  taskId: string | undefined,
): Promise<string | null> {
  if (taskId === undefined) return null;
  const { state } = await tasks.get(taskId.toLowerCase());
  if (state.status === 'none' || !reaches(reach, state.namespace)) return null;
  return state.definition.timezone;
}

/**
 * A client's timestamp. The plus of an offset may be a space, as in a query that was not percent-encoded.
 * @param zone of wall time without an offset; null: an offset is required
 * @param edge the meaning of a date without a time
 * @throws HttpError 400 naming the field
 */
export function instantOf(
  field: string,
  given: string,
  zone: string | null,
  edge?: DayEdge,
): Instant {
  const found = readInstant(given, zone, edge);
  if (typeof found === 'number') return found;
  throw badRequest([{ field, issue: found.issue }]);
}

/** Like {@link instantOf}, but returns the fault instead of throwing it. */
export function readInstant(
  given: string,
  zone: string | null,
  edge?: DayEdge,
): Instant | { readonly issue: string } {
  try {
    const found = parseInstant(withPlus(given), zone, edge);
    if (/^(?!0000)\d{4}-/.test(toIso(found))) return found;
    return { issue: 'lies outside of the years 1 to 9999' };
  } catch (error) {
    if (!(error instanceof TimestampError)) throw error;
    return { issue: error.message };
  }
}

const withPlus = (given: string): string =>
  given.replace(/(:\d\d(?:\.\d+)?) (\d\d:?\d\d)$/, '$1+$2');
