import { BEGINNING, type EventStore, type Position } from '../domain/event-store.ts';
import type { Projection } from '../projections/read-model.ts';
import type { ApiDependencies } from './dependencies.ts';
import { badRequest, notReached } from './errors.ts';

/** How long a request waits for a view. Milliseconds. */
const LIMIT = 2000;

type Waiting = Pick<ApiDependencies, 'positions'>;

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

/** Whether views have passed a position, in two seconds at the most; at once where that is known of them. */
export function havePassed(
  { positions }: Waiting,
  views: readonly Projection[],
  position: Position,
): Promise<boolean> | boolean {
  if (position === BEGINNING) return true;
  const passed = views.map((view) => positions.wait(view, position, LIMIT));
  const known = !passed.includes(false);
  const waiting = passed.filter((each) => each instanceof Promise);
  if (waiting.length === 0) return known;
  return Promise.all(waiting).then((all) => known && !all.includes(false));
}

/**
 * Waits until views have passed a position that they have to.
 * @param own what they should have passed besides: it is waited for no longer, and gone on without
 * @throws HttpError 503 when they have not passed it in two seconds
 */
export async function untilPassed(
  waiting: Waiting,
  views: readonly Projection[],
  position: Position,
  own: Position = BEGINNING,
): Promise<void> {
  const [passed] = await Promise.all([
    havePassed(waiting, views, position),
    havePassed(waiting, views, own),
  ]);
  if (!passed) throw notReached(position, LIMIT);
}
