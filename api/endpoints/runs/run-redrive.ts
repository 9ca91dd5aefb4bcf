import type { Clock } from '../../../domain/clock.ts';
import type { Position } from '../../../domain/event-store.ts';
import type { PassedOver, Redriven } from '../../../domain/runs/run-redrive.ts';
import type { KeptDocument, ReadModel } from '../../../projections/read-model.ts';
import type { RunListing } from '../../../projections/reading/run-queries.ts';
import { runsProjection, type RunDocument } from '../../../projections/views/runs.ts';
import { cursorOf, parseCursor } from '../listing.ts';

/** Documents that are read at once: a run may have megabytes of results. */
const PAGE = 50;

/** Runs that are retried side by side. */
const SIDE_BY_SIDE = 10;

/** Most failed runs that one call looks at. */
const MOST_LOOKED_AT = 10_000;

/** How long one call begins retries; it answers with a cursor then. Milliseconds. */
const LONGEST = 8000;

/** What a redrive came to. */
export interface Tally {
  /** Retries made, in order; in a dry run none. */
  readonly runs: readonly {
    readonly run_id: string;
    readonly retry_of: string;
    readonly task_id: string;
    readonly skip_reason?: 'overlap';
  }[];
  /** How many runs are retried, or would be. */
  readonly count: number;
  readonly passedOver: Readonly<Record<PassedOver, number>>;
  /** Failed runs of the list that were not looked at; about, where several began in the same millisecond. */
  readonly left: number;
  /** Goes on behind the last one that was looked at; null when none is left. */
  readonly nextCursor: string | null;
  /** Of the last event appended. */
  readonly position: Position | null;
}

/**
 * Goes through a list of failed runs, oldest first, and retries them: up to a limit, and no longer than a client waits.
 *
 * @param options.fits whether a run of the list is meant
 * @param options.redrive retries one of them
 * @throws HttpError 400 for a cursor of another list; all that the stores throw
 */
export async function redriveListed(options: {
  readonly readModel: ReadModel;
  readonly clock: Clock;
  readonly listing: RunListing;
  readonly cursor: string | undefined;
  readonly limit: number;
  readonly fits: (run: RunDocument) => Promise<boolean>;
  readonly redrive: (runId: string) => Promise<Redriven>;
}): Promise<Tally> {
  const { readModel, clock, listing, cursor, limit, fits, redrive } = options;
  const until = clock.steady() + LONGEST;
  const tallying = new Tallying();
  const listed = listedRuns(readModel, listing, cursor);
  let last: Listed | null = null;
  for (let lookedAt = 0; lookedAt < MOST_LOOKED_AT && clock.steady() <= until;) {
    const some = await take(listed, Math.min(SIDE_BY_SIDE, limit - tallying.count));
    if (some.length === 0) break;
    lookedAt += some.length;
    last = some.at(-1) ?? last;
    const fitting = await Promise.all(some.map(({ document }) => fits(document)));
    const meant = some.filter((_, index) => fitting[index]).map(({ document }) => document);
    for (const one of await Promise.allSettled(meant.map(({ id }) => redrive(id)))) {
      // Only once nothing of this call is under way: it may be repeated at once.
      if (one.status === 'rejected') throw one.reason;
      tallying.add(one.value);
    }
  }
  const [next] = await take(listed, 1);
  return { ...tallying.told(), ...(await restOf(readModel, listing, last, next)) };
}

type Listed = KeptDocument<RunDocument>;

async function* listedRuns(
  readModel: ReadModel,
  { filters, sort }: RunListing,
  cursor: string | undefined,
): AsyncGenerator<Listed, void> {
  for (let at = cursor; ;) {
    const after = at === undefined ? {} : { after: parseCursor(at, sort, runsProjection) };
    const page = await readModel.find(runsProjection, { filters, sort, limit: PAGE, ...after });
    yield* page;
    const last = page.at(-1);
    if (last === undefined || page.length < PAGE) return;
    at = cursorOf(last, sort);
  }
}

async function take(
  listed: AsyncGenerator<Listed, void>,
  most: number,
): Promise<readonly Listed[]> {
  const taken: Listed[] = [];
  while (taken.length < most) {
    const { value, done } = await listed.next();
    if (done === true) break;
    taken.push(value);
  }
  return taken;
}

/**
 * How many are left, and how to go on.
 * @param last that was looked at
 * @param next the one behind it
 */
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
  /** A run may be the last retry of several that are put forward. */
  private readonly seen = new Set<string>();
  private readonly runs: Tally['runs'][number][] = [];
  private readonly passedOver = {
    succeeded: 0,
    under_way: 0,
    task_canceled: 0,
    not_owned: 0,
    not_failed: 0,
  };
  private position: Position | null = null;

  add(redriven: Redriven): void {
    if (redriven.kind === 'passed-over') {
      this.passedOver[redriven.because] += 1;
      return;
    }
    const { run, retry } = redriven;
    if (this.seen.has(run)) return;
    this.seen.add(run);
    this.count += 1;
    if (retry === null) return;
    const { runId: run_id, retryOf: retry_of, taskId: task_id, overlaps, position } = retry;
    const skipped = overlaps === null ? {} : { skip_reason: 'overlap' as const };
    this.runs.push({ run_id, retry_of, task_id, ...skipped });
    if (position !== null && position > (this.position ?? '')) this.position = position;
  }

  told(): Pick<Tally, 'runs' | 'count' | 'passedOver' | 'position'> {
    const { runs, count, passedOver, position } = this;
    return { runs, count, passedOver, position };
  }
}
