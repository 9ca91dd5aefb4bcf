import { setImmediate as nextTurn } from 'node:timers/promises';
import { cutDocument } from '../../../projections/cut-document.ts';
import {
  comparePlaces,
  orderedTasks,
  type TaskPlace,
} from '../../../projections/reading/task-order.ts';
import type { Filter } from '../../../projections/read-model.ts';
import {
  tasksProjection,
  type JoinedOrder,
  type TaskDocument,
} from '../../../projections/views/tasks.ts';
import type { Call, EndpointResponse } from '../../endpoint.ts';
import { forbidden } from '../../errors.ts';
import type { TaskQuery } from '../../schemas/schemas.ts';
import { cutPayload, invalidCursor, ItemList, listJson } from '../listing.ts';
import type { ReadingPlace } from '../history/replay-reading.ts';

/** The scope that shows runs. The orders by p95 and by health reveal information about runs. */
const RUNS = 'runs:read';

/** Documents that are read before other requests get a turn. */
const TURN = 20;

/**
 * A page of all tasks that match, in an order that also depends on other views.
 * @param filters of the view of tasks
 * @param show returns the part of a task that the list shows
 * @throws HttpError 403 without the scope that shows runs; 400 for a cursor of another list
 */
export async function joinedPage(
  call: Pick<Call, 'caller' | 'reach' | 'own'>,
  { dependencies, now }: ReadingPlace,
  order: JoinedOrder,
  { limit, offset, cursor }: TaskQuery,
  filters: readonly Filter[],
  show: (task: TaskDocument) => Promise<object>,
): Promise<EndpointResponse> {
  requireScopeOf(order, call);
  const { readModel } = dependencies;
  const last = cursor === undefined ? undefined : placeIn(cursor, order);
  const asked = { readModel, reach: call.reach, filters, now };
  const all = await orderedTasks(order, asked);
  const first =
    last === undefined ? offset : all.findIndex((place) => comparePlaces(last, place) < 0);
  const left = first === -1 ? [] : all.slice(first);
  const items = new ItemList();
  let shown = 0;
  for (const { key } of left.slice(0, limit)) {
    if (shown > 0 && shown % TURN === 0) await nextTurn();
    const found = await readModel.get(tasksProjection, key);
    // The task was there a moment ago. It can only be missing while the view is being replaced.
    if (found !== null && !items.add(await show(cut(found.document)))) break;
    shown += 1;
  }
  const has_more = left.length > shown;
  const end = left[shown - 1];
  const next_cursor = has_more && end !== undefined ? cursorAfter(end, order) : null;
  const rest = { total: all.length, limit, offset, has_more, next_cursor };
  return { json: listJson('items', items.json, rest) };
}

/** The owner is shown in every task. */
function requireScopeOf(order: JoinedOrder, { caller, own }: Pick<Call, 'caller' | 'own'>): void {
  if (order === 'owner' || caller === null || caller.admin) return;
  const { scopes } = caller;
  if (scopes.includes(RUNS) || (own !== null && scopes.includes(`${RUNS}:own`))) return;
  throw forbidden(`sort=${order} needs the scope ${RUNS}`, [RUNS], scopes);
}

const cut = (task: TaskDocument): TaskDocument =>
  JSON.parse(cutDocument(JSON.stringify(task), cutPayload)) as TaskDocument;

const cursorAfter = ({ values, key }: TaskPlace, order: JoinedOrder): string =>
  Buffer.from(JSON.stringify([order, values, key])).toString('base64url');

function placeIn(cursor: string, order: JoinedOrder): TaskPlace {
  try {
    const json = Buffer.from(cursor, 'base64url').toString();
    const [of, values, key] = JSON.parse(json) as unknown[];
    const isPlace =
      of === order &&
      typeof key === 'string' &&
      Array.isArray(values) &&
      values.every((each) => typeof each === 'number');
    if (isPlace) return { values, key };
  } catch {
    // Falls through to the error, because the string is not a cursor of this service.
  }
  throw invalidCursor();
}
