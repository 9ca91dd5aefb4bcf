import { toIso, type Instant } from '../clock.ts';
import { backfillRunId } from '../ids.ts';
import { streams } from '../streams.ts';
import type { Asked } from './asked.ts';
import type { Verdict } from './explanation.ts';
import { described, eventsOf, readRun } from './run-account.ts';

/**
 * Finds the backfills of the task whose span holds a nominal time. What they made of it is then read from the streams
 * of their runs.
 * @returns their ids, the latest first; null where they can't be looked up at present
 */
export type BackfillFinder = (nominal: Instant) => Promise<readonly string[] | null>;

/** What backfills have made of a nominal time, whatever became of its fire: it may have run after all. */
export async function backfilled(
  { store, taskId, now, words }: Asked,
  nominal: Instant,
  find: BackfillFinder,
): Promise<Pick<Verdict, 'sentences' | 'evidence'>> {
  // A backfill runs times of the past.
  if (nominal > now) return { sentences: [], evidence: [] };
  const ids = await find(nominal);
  if (ids === null) {
    const lacking = 'Whether a backfill has run it could not be looked up at present.';
    return { sentences: [lacking], evidence: [] };
  }
  const each = ids.map(async (id) => {
    const run = await readRun(store, backfillRunId(taskId, toIso(nominal), id));
    if (run.first === null) return null;
    const [asked] = await store.readStream(streams.backfill(id), { limit: 1 });
    const sentence = `Beside the schedule there is ${described(run, words)}.`;
    return { sentence, evidence: [asked, ...eventsOf(run)] };
  });
  const made = (await Promise.all(each)).filter((one) => one !== null);
  return {
    sentences: made.map(({ sentence }) => sentence),
    evidence: made.flatMap(({ evidence }) => evidence),
  };
}
