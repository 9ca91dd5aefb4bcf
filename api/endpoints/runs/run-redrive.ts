import type { Position } from '../../../domain/event-store.ts';
import type { RedriveSkipReason, RedriveResult } from '../../../domain/runs/run-redrive.ts';
import { walkRuns, type WalkEnd } from './run-walk.ts';

/** The result of a redrive. */
export interface Tally extends WalkEnd {
  /** The retries that were requested, in order; none in a dry run. */
  readonly runs: readonly {
    readonly run_id: string;
    readonly retry_of: string;
    readonly task_id: string;
    readonly skip_reason?: 'overlap';
  }[];
  /** How many runs are retried, or would be. */
  readonly count: number;
  readonly passedOver: Readonly<Record<RedriveSkipReason, number>>;
  /** The position of the last event appended. */
  readonly position: Position | null;
}

/**
 * Retries the failed runs of a list, oldest first, up to a limit of runs and of time.
 * @param walk selects the runs, as for {@link walkRuns}
 * @throws HttpError 400 for a cursor of another list
 */
export async function redriveListed({
  limit,
  redrive,
  ...walk
}: Omit<Parameters<typeof walkRuns<RedriveResult>>[0], 'room' | 'act' | 'done'> & {
  readonly limit: number;
  readonly redrive: (runId: string) => Promise<RedriveResult>;
}): Promise<Tally> {
  const tally = new Tallying();
  const end = await walkRuns({
    ...walk,
    room: () => limit - tally.count,
    act: ({ id }) => redrive(id),
    done: (redriven) => tally.add(redriven),
  });
  const { runs, count, passedOver, position } = tally;
  return { runs, count, passedOver, position, ...end };
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
