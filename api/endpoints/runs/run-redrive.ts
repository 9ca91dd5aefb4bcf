import type { Clock } from '../../../domain/clock.ts';
import type { Position } from '../../../domain/event-store.ts';
import type { RedriveSkipReason, RedriveResult } from '../../../domain/runs/run-redrive.ts';
import type { ViewDocument, ReadModel } from '../../../projections/read-model.ts';
import type { RunListing } from '../../../projections/reading/run-queries.ts';
import { runsProjection, type RunDocument } from '../../../projections/views/runs.ts';
import { behindCursor, cursorOf } from '../listing.ts';

/** Documents that are read at a time: a run may have megabytes of results. */
const PAGE = 50;

/** Runs that are retried concurrently. */
const MAX_CONCURRENT = 10;

/** Failed runs that one call examines. */
const MAX_EXAMINED = 10_000;

/** How long one call starts retries before it answers with a cursor. Milliseconds. */
const MAX_DURATION = 8000;

/** The result of a redrive. */
export interface Tally {
  /** Retries made, in order; none in a dry run. */
  readonly runs: readonly {
    readonly run_id: string;
    readonly retry_of: string;
    readonly task_id: string;
    readonly skip_reason?: 'overlap';
  }[];
  /** Runs that are retried, or would be. */
  readonly count: number;
  readonly passedOver: Readonly<Record<RedriveSkipReason, number>>;
  /** Failed runs not examined; approximate where several began in the same millisecond. */
  readonly left: number;
  /** Continues behind the last run examined; null when none is left. */
  readonly nextCursor: string | null;
  /** Of the last event appended. */
  readonly position: Position | null;
}

/**
 * Retries the failed runs of a list, oldest first, up to a limit of runs and of time.
 * @param options.matches whether a run of the list is meant
 * @throws HttpError 400 for a cursor of another list
 */
export async function redriveListed(options: {
  readonly readModel: ReadModel;
  readonly clock: Clock;
  readonly listing: RunListing;
  readonly cursor: string | undefined;
  readonly limit: number;
  readonly matches: (run: RunDocument) => Promise<boolean>;
  readonly redrive: (runId: string) => Promise<RedriveResult>;
}): Promise<Tally> {
  const { readModel, clock, listing, cursor, limit, matches, redrive } = options;
  const until = clock.steady() + MAX_DURATION;
  const tally = new Tallying();
  const listed = listedRuns(readModel, listing, cursor);
  let last: Listed | null = null;
  for (let examined = 0; examined < MAX_EXAMINED && clock.steady() <= until;) {
    const some = await take(listed, Math.min(MAX_CONCURRENT, limit - tally.count));
    if (some.length === 0) break;
    examined += some.length;
    last = some.at(-1) ?? last;
    const matching = await Promise.all(some.map(({ document }) => matches(document)));
    const meant = some.filter((_, index) => matching[index]).map(({ document }) => document);
    // All settle first, so that a failed call may be repeated at once.
    for (const one of await Promise.allSettled(meant.map(({ id }) => redrive(id)))) {
      if (one.status === 'rejected') throw one.reason;
      tally.add(one.value);
    }
  }
  const [next] = await take(listed, 1);
  const { runs, count, passedOver, position } = tally;
  const rest = await restOf(readModel, listing, last, next);
  return { runs, count, passedOver, position, ...rest };
}

type Listed = ViewDocument<RunDocument>;

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

/** How many runs are left, and the cursor. @param last the last one examined @param next the one behind it */
async function restOf(
  readModel: ReadModel,
  { filters, sort }: RunListing,
  last: Listed | null,
  next: Listed | undefined,
): Promise<Pick<Tally, 'left' | 'nextCursor'>> {
  const [order] = sort;
  if (last === null || next === undefined || order === undefined) {
    return { left: 0, nextCursor: null };
  }
  const from = next.document[order.field] as string;
  const behind = [...filters, { field: order.field, op: 'gte' as const, value: from }];
  const left = await readModel.count(runsProjection, behind);
  return { left, nextCursor: cursorOf(last, sort) };
}

class Tallying {
  count = 0;
  readonly runs: Tally['runs'][number][] = [];
  readonly passedOver = {
    succeeded: 0,
    under_way: 0,
    task_canceled: 0,
    not_owned: 0,
    not_failed: 0,
    invalid_params: 0,
  };
  position: Position | null = null;
  /** The last retry of several runs of the list may be the same. */
  readonly #seen = new Set<string>();

  add(redriven: RedriveResult): void {
    if (redriven.kind === 'passed-over') {
      this.passedOver[redriven.because] += 1;
      return;
    }
    const { run, retry } = redriven;
    if (this.#seen.has(run)) return;
    this.#seen.add(run);
    this.count += 1;
    if (retry === null) return;
    const { runId: run_id, retryOf: retry_of, taskId: task_id, overlaps, position } = retry;
    const skipped = overlaps === null ? {} : { skip_reason: 'overlap' as const };
    this.runs.push({ run_id, retry_of, task_id, ...skipped });
    if (position !== null && position > (this.position ?? '')) this.position = position;
  }
}
