import type { EventStore } from '../domain/event-store.ts';
import { badRequest } from './errors.ts';

/**
 * @param field as the client knows it
 * @throws HttpError 400 for a text that is no position of the log, or one that the log has not come to
 */
export async function checkPosition(
  store: Pick<EventStore, 'isPosition' | 'reaches'>,
  field: string,
  text: string,
): Promise<void> {
  if (!store.isPosition(text)) {
    throw badRequest([{ field, issue: 'is not a position of this log' }]);
  }
  if (!(await store.reaches(text))) {
    throw badRequest([{ field, issue: "lies beyond the log's end" }]);
  }
}
