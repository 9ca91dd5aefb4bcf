import { toIso } from '../../domain/clock.ts';
import { parseInstant, TimestampError } from '../../domain/schedule/timestamp.ts';
import { badRequest } from '../errors.ts';

/**
 * A moment that a client gives, as the service writes it (UTC, milliseconds); undefined where it gives none.
 * @throws HttpError 400 naming the field, for what is no timestamp with an offset
 */
export function instant(field: string, text: string | undefined): string | undefined {
  if (text === undefined) return undefined;
  try {
    return toIso(parseInstant(text, null));
  } catch (error) {
    if (error instanceof TimestampError) throw badRequest([{ field, issue: error.message }]);
    throw error;
  }
}
