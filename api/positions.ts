import { BEGINNING, type EventStore, type Position } from '../domain/event-store.ts';
import type { Projection } from '../projections/read-model.ts';
import type { ApiDependencies } from './dependencies.ts';
import { badRequest, positionNotReached } from './errors.ts';

/** How long a request waits for a view. Milliseconds. */
const MAX_WAIT = 2000;

/**
 * @param field as the client knows it
 * @throws HttpError 400 for a string that is not a position of the log, or lies beyond its end
 */
export async function checkPosition(
  store: Pick<EventStore, 'isPosition' | 'reaches'>,
  field: string,
  given: string,
): Promise<void> {
  if (!store.isPosition(given)) {
    throw badRequest([{ field, issue: 'is not a position of this log' }]);
  }
  if (!(await store.reaches(given))) {
    throw badRequest([{ field, issue: "lies beyond the log's end" }]);
  }
}

/**
 * Whether views have reached a position. Waits for two seconds at most; returns no promise if the answer is known at
 * once.
 */
export function havePassed(
  { positions }: Pick<ApiDependencies, 'positions'>,
  views: readonly Projection[],
  position: Position,
): Promise<boolean> | boolean {
  if (position === BEGINNING) return true;
  const waits = views.map((view) => positions.wait(view, position, MAX_WAIT));
  const known = !waits.includes(false);
  const pending = waits.filter((wait) => wait instanceof Promise);
  if (pending.length === 0) return known;
  return Promise.all(pending).then((passed) => known && !passed.includes(false));
}

/**
 * Waits until views have passed a position.
 * @param own a position that they should also have passed. The wait does not last longer for it, and may end before it
 * @throws HttpError 503 if they have not passed the position in two seconds
 */
export async function requirePassed(
  dependencies: Pick<ApiDependencies, 'positions'>,
  views: readonly Projection[],
  position: Position,
  own: Position = BEGINNING,
): Promise<void> {
  const [passed] = await Promise.all([
    havePassed(dependencies, views, position),
    havePassed(dependencies, views, own),
  ]);
  if (!passed) throw positionNotReached(position, MAX_WAIT);
}
