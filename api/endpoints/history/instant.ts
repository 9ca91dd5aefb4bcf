import { toIso, type Instant } from '../../../domain/clock.ts';
import type { Issue } from '../../../domain/errors.ts';
import {
  parseInstant,
  readTimestamp,
  TimestampError,
  type DayEdge,
} from '../../../domain/schedule/timestamp.ts';
import type { ApiDependencies } from '../../dependencies.ts';
import { HttpError, badRequest } from '../../errors.ts';

/**
 * A moment that a client gives, as the service writes it (UTC, milliseconds); undefined where it gives none.
 * @throws HttpError 400 naming the field, for what is no timestamp with an offset
 */
export function instant(field: string, text: string | undefined): string | undefined {
  return text === undefined ? undefined : toIso(instantOf(field, text, null));
}

/**
 * The same where there is a task: without an offset it is wall time of the task's zone.
 * @param zoneOf looks that up; null where there is no such task. Asked only for what names no offset
 * @param edge what a date without a time means
 * @throws HttpError 400 naming the field, and what `zoneOf` throws
 */
export async function instantOfTask(
  field: string,
  text: string | undefined,
  zoneOf: () => Promise<string | null>,
  edge: DayEdge = 'first',
): Promise<string | undefined> {
  if (text === undefined) return undefined;
  // First: what is no timestamp in any zone is a fault of the request, whatever becomes of the task.
  const inUtc = instantOf(field, text, 'UTC');
  if (readTimestamp(withPlus(text)).offset !== null) return toIso(inUtc);
  return toIso(instantOf(field, text, await zoneOf(), edge));
}

/**
 * Reads the two bounds of the runs that are asked for: those that started after `start_time` and before `end_time`. A
 * date without a time takes in that whole day of the task's zone.
 * @param zoneOf as of {@link instantOfTask}
 * @throws HttpError as {@link instantOfTask}
 */
export function readSpanOf(
  zoneOf: () => Promise<string | null>,
): (field: string, text: string | undefined) => Promise<string | undefined> {
  return (field, text) =>
    instantOfTask(field, text, zoneOf, field === 'end_time' ? 'after' : 'first');
}

/**
 * Several moments, by their fields, each read by one of the two above.
 * @throws HttpError 400 listing all that are at fault
 */
export async function instantsOf<Field extends string>(
  given: Readonly<Record<Field, string | undefined>>,
  read: (
    field: string,
    text: string | undefined,
  ) => Promise<string | undefined> | string | undefined,
): Promise<Readonly<Record<Field, string | undefined>>> {
  const issues: Issue[] = [];
  const found: Record<string, string | undefined> = {};
  for (const [field, text] of Object.entries<string | undefined>(given)) {
    try {
      found[field] = await read(field, text);
    } catch (error) {
      if (!(error instanceof HttpError) || error.code !== 'bad_request') throw error;
      issues.push(...(error.details['issues'] as readonly Issue[]));
    }
  }
  const [first, ...rest] = issues;
  if (first !== undefined) throw badRequest([first, ...rest]);
  return found as Record<Field, string | undefined>;
}

/** The zone of a task; null where there is none, or none was named. */
export async function zoneOfTask(
  { tasks }: Pick<ApiDependencies, 'tasks'>,
  taskId: string | undefined,
): Promise<string | null> {
  if (taskId === undefined) return null;
  const { state } = await tasks.get(taskId.toLowerCase());
  return state.status === 'none' ? null : state.definition.timezone;
}

/**
 * A timestamp of a client. The plus of an offset that was not percent-encoded in a query has become a space on its
 * way, and is taken as a plus.
 * @param zone without an offset it is wall time of this zone; null: it must have one
 * @param edge what a date without a time means
 * @throws HttpError 400 naming the field
 */
export function instantOf(
  field: string,
  text: string,
  zone: string | null,
  edge?: DayEdge,
): Instant {
  const found = readInstant(text, zone, edge);
  if (typeof found === 'number') return found;
  throw badRequest([{ field, issue: found.issue }]);
}

/** The same, or what is wrong with it. */
export function readInstant(
  text: string,
  zone: string | null,
  edge?: DayEdge,
): Instant | { readonly issue: string } {
  try {
    const found = parseInstant(withPlus(text), zone, edge);
    // What lies before the year 1 or after 9999 has no text of its own.
    if (/^(?!0000)\d{4}-/.test(toIso(found))) return found;
    return { issue: 'lies outside of the years 1 to 9999' };
  } catch (error) {
    if (!(error instanceof TimestampError)) throw error;
    return { issue: error.message };
  }
}

const withPlus = (text: string): string => text.replace(/(:\d\d(?:\.\d+)?) (\d\d:?\d\d)$/, '$1+$2');
