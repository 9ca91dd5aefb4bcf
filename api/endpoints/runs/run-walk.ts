import type { Clock } from '../../../domain/clock.ts';
import type { ViewDocument, ReadModel } from '../../../projections/read-model.ts';
import type { RunListing } from '../../../projections/reading/run-queries.ts';
import { runsProjection, type RunDocument } from '../../../projections/views/runs.ts';
import { behindCursor, cursorOf } from '../listing.ts';

/** How many documents are read at a time. There are few because a run may have megabytes of results. */
const PAGE = 50;

/** The most runs changed concurrently. */
const MAX_CONCURRENT = 10;

/** The most runs that one call examines. */
const MAX_EXAMINED = 10_000;

/** After this many milliseconds, a call returns with a cursor. */
const MAX_DURATION = 8000;

/** The end of a walk. */
export interface WalkEnd {
  /** Runs not examined; approximate if several started in the same millisecond. */
  readonly left: number;
  /** The cursor after the last run examined; null if no run is left, and for named runs. */
  readonly nextCursor: string | null;
}

type Listed = ViewDocument<RunDocument>;

/**
 * Acts on the runs of a list, oldest first, up to a limit of runs and of time.
 * @param options.runIds ids of runs to act on, in place of the list
 * @param options.room how many more runs may be acted on
 * @param options.matches whether to act on a run
 * @param options.done receives the results of `act`, in the order of the list
 * @throws HttpError 400 for a cursor of another list; what `act` throws, once all concurrent calls have settled
 */
export async function walkRuns<T>(options: {
  readonly readModel: ReadModel;
  readonly clock: Pick<Clock, 'steady'>;
  readonly listing: RunListing;
  readonly runIds: readonly string[] | undefined;
  readonly cursor: string | undefined;
  readonly room: () => number;
  readonly matches: (run: RunDocument) => Promise<boolean>;
  readonly act: (run: RunDocument) => Promise<T>;
  readonly done: (result: T) => void;
}): Promise<WalkEnd> {
  const { readModel, clock, listing, cursor, room, matches, act, done } = options;
  const runIds = options.runIds && [...new Set(options.runIds.map((id) => id.toLowerCase()))];
  const until = clock.steady() + MAX_DURATION;
  const listed =
    runIds === undefined ? listedRuns(readModel, listing, cursor) : namedRuns(readModel, runIds);
  let last: Listed | null = null;
  let examined = 0;
  while (examined < MAX_EXAMINED && clock.steady() <= until) {
    const some = await take(listed, Math.min(MAX_CONCURRENT, room()));
    if (some.length === 0) break;
    examined += some.length;
    last = some.at(-1) ?? last;
    const matching = await Promise.all(some.map(({ document }) => matches(document)));
    const meant = some.filter((_, index) => matching[index]).map(({ document }) => document);
    // All calls settle first, so that a failed request may be repeated at once.
    for (const one of await Promise.allSettled(meant.map(act))) {
      if (one.status === 'rejected') throw one.reason;
      done(one.value);
    }
  }
  const [next] = await take(listed, 1);
  if (runIds !== undefined) {
    const left = next === undefined ? 0 : runIds.length - examined;
    return { left, nextCursor: null };
  }
  return restOf(readModel, listing, last, next);
}

async function* namedRuns(
  readModel: ReadModel,
  runIds: readonly string[],
): AsyncGenerator<Listed, void> {
  for (const id of runIds) {
    const found = await readModel.get(runsProjection, id);
    if (found !== null) yield found;
  }
}

async function* listedRuns(
  readModel: ReadModel,
  { filters, sort }: RunListing,
  cursor: string | undefined,
): AsyncGenerator<Listed, void> {
  for (let at = cursor; ;) {
    const start = behindCursor(at, sort, runsProjection);
    const page = await readModel.find(runsProjection, { filters, sort, limit: PAGE, ...start });
    yield* page;
    const last = page.at(-1);
    if (last === undefined || page.length < PAGE) return;
    at = cursorOf(last, sort);
  }
}

async function take(
  listed: AsyncGenerator<Listed, void>,
  limit: number,
): Promise<readonly Listed[]> {
  const taken: Listed[] = [];
  while (taken.length < limit) {
    const { value, done } = await listed.next();
    if (done === true) break;
    taken.push(value);
  }
  return taken;
}

/** How many runs are left, and the cursor. @param last the last run examined @param next the run after it */
async function restOf(
  readModel: ReadModel,
  { filters, sort }: RunListing,
  last: Listed | null,
  next: Listed | undefined,
): Promise<WalkEnd> {
  const [order] = sort;
  if (last === null || next === undefined || order === undefined) {
    return { left: 0, nextCursor: null };
  }
  const from = next.document[order.field] as string;
  const behind = [...filters, { field: order.field, op: 'gte' as const, value: from }];
  const left = await readModel.count(runsProjection, behind);
  return { left, nextCursor: cursorOf(last, sort) };
}
