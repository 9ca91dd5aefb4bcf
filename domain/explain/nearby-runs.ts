import { fromIso, toIso, type Instant } from '../clock.ts';
import { backfillRunId } from '../ids.ts';
import { streams } from '../streams.ts';
import { explainSkip } from './decided-fires.ts';
import type { ExplainContext } from './explain-context.ts';
import { joined, note, notRun, NO_NOTE, type Note, type Verdict } from './explanation.ts';
import { readRun, runNote, skipOf, standing, type RunAccount } from './run-account.ts';
import { duration } from './words.ts';

/** How far from an instant a manual or event run counts as near it. Milliseconds. */
export const NEARBY_MS = 60_000;

/**
 * Finds the task's manual or event runs that were requested within {@link NEARBY_MS} of the instant, in a view: no
 * stream lists them. Their state is then read from their streams.
 * @returns their ids, the nearest first; null if the view is unavailable
 */
export type RunFinder = (
  triggers: readonly ('manual' | 'event')[],
) => Promise<readonly string[] | null>;

/**
 * Finds the task's backfills whose span holds a nominal time. Their runs are then read from the log.
 * @returns their ids, the latest first; null if the view is unavailable
 */
export type BackfillFinder = (nominal: Instant) => Promise<readonly string[] | null>;

/** Runs of backfills for a nominal time, regardless of the decision about its fire. */
export async function backfillNote(
  { store, taskId, now, words }: ExplainContext,
  nominal: Instant,
  find: BackfillFinder,
): Promise<Note> {
  // Backfills run only past times.
  if (nominal > now) return NO_NOTE;
  const ids = await find(nominal);
  if (ids === null) return note('Backfills could not be looked up.');
  const notes = ids.map(async (id) => {
    const run = await readRun(store, backfillRunId(taskId, toIso(nominal), id));
    if (run.first === null) return NO_NOTE;
    const [request] = await store.readStream(streams.backfill(id), { limit: 1 });
    return joined({ sentences: [], evidence: [request] }, runNote(run, words));
  });
  return joined(...(await Promise.all(notes)));
}

/** Manual and event runs near the instant, which the schedule did not request. */
export async function nearbyRunsNote(context: ExplainContext, find: RunFinder): Promise<Note> {
  const runs = await findRuns(context, find, ['manual', 'event']);
  return runs === null ? NOT_LOOKED_UP : joined(...runs.map((run) => runNote(run, context.words)));
}

const NOT_LOOKED_UP = note('Manual and event runs could not be looked up.');

async function findRuns(
  { store }: ExplainContext,
  find: RunFinder,
  triggers: Parameters<RunFinder>[0],
): Promise<readonly RunAccount[] | null> {
  const ids = await find(triggers);
  return ids === null ? null : Promise.all(ids.map((id) => readRun(store, id)));
}

/** Explains an event task: the event that triggered it near the instant, or why none did. */
export async function explainEventTask(context: ExplainContext, find: RunFinder): Promise<Verdict> {
  const { at, now, era, history, words } = context;
  // Event runs are read in a separate query, because many manual runs may be nearer.
  const triggered = (await findRuns(context, find, ['event'])) ?? [];
  const [nearest] = triggered;
  if (nearest !== undefined) return explainTriggered(context, nearest, triggered.length);
  const pattern = era.definition.schedule_expr ?? '#';
  const listens = note(
    `An event task does not fire by time. It listens to topics matching "${pattern}".`,
    era.set,
  );
  if (at - NEARBY_MS > now) {
    return notRun('not_in_schedule', note(`${words.when(at)} is still to come.`), listens);
  }
  const pause = history.pauseAt(at);
  if (pause !== null) {
    const paused = note('The task was paused, and events did not trigger it.', pause.ended);
    const by = note(words.act(pause.paused, 'paused it'), pause.paused);
    return notRun('paused', paused, by, { ...listens, evidence: [] });
  }
  const runs = await findRuns(context, find, ['manual']);
  if (runs === null) return notRun('not_in_schedule', listens, NOT_LOOKED_UP);
  const none = note(
    `No event triggered the task within ${duration(NEARBY_MS)} of ${words.when(at)}.`,
  );
  return notRun('not_in_schedule', none, listens, ...runs.map((run) => runNote(run, words)));
}

async function explainTriggered(
  context: ExplainContext,
  run: RunAccount,
  count: number,
): Promise<Verdict> {
  const { words } = context;
  const { id, first, last } = run;
  const event = first?.type === 'RunRequested' ? first.data.event : null;
  const what =
    event === null
      ? 'An event'
      : `The event ${event.id} on topic ${event.topic}, published at ${words.when(fromIso(event.published_at))},`;
  const others =
    count > 1
      ? note('Within a minute of that instant more runs were triggered; this one is the nearest.')
      : NO_NOTE;
  const skip = skipOf(run);
  if (skip === null) {
    const sentences = [`${what} triggered the task.`, `Run ${id} ${standing(run, words)}.`];
    const outcome = joined({ sentences, evidence: [first, last] }, others);
    return { fired: true, reason: 'fired', runId: id, ...outcome };
  }
  const { because, about } = await explainSkip(context, skip);
  const sentence = `${what} triggered the task, but its run was skipped because ${because}.`;
  const outcome = joined(note(sentence, first, last), about, others);
  return { fired: false, reason: skip.data.reason, runId: id, ...outcome };
}
