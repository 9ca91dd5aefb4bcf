import { BEGINNING, type EventStore, type RecordedEvent } from '../../../domain/event-store.ts';
import type { Rhythm } from '../../../domain/tasks/rhythm.ts';
import { idOf } from '../../../domain/streams.ts';
import { dueProjection, evolveRhythmOf, rhythmStreams } from '../../../projections/views/due.ts';
import { isOfLog } from '../../../projections/of-log.ts';
import type { ReadModel } from '../../../projections/read-model.ts';
import { BrokenOff } from '../calling/faults.ts';

const PAGE = 500;

/**
 * The rhythm of every task that is not canceled, each once, as the log has it now: the view `due`, and over it what
 * the log says after the view. In memory are a page of the view and the tasks that changed since; where there is no
 * view, or one of another log, all tasks.
 *
 * @throws EventStoreError `UNAVAILABLE`, ReadModelError; BrokenOff when the signal is aborted
 */
export async function* presentRhythms(
  store: EventStore,
  readModel: ReadModel,
  signal: AbortSignal,
): AsyncGenerator<{ readonly taskId: string; readonly rhythm: Rhythm }> {
  // Who follows a log that is away waits until it is back: whoever asks here waits for an answer.
  await store.head();
  const isThere = (await readModel.liveGeneration(dueProjection)) !== null;
  const seen = isThere && (await isOfLog(dueProjection, store, readModel));
  const checkpoint = seen ? await readModel.checkpoint(dueProjection) : null;
  const changed = new Map<string, Rhythm | null>();
  const kept = async (taskId: string): Promise<Rhythm | null> =>
    (await readModel.get(dueProjection, taskId))?.document.rhythm ?? null;
  const after = checkpoint ?? BEGINNING;
  const prefixes = rhythmStreams;
  for await (const message of store.subscribe({ after, prefixes, once: true, signal })) {
    if (message.kind === 'caught-up') break;
    for (const event of message.events) {
      if (event.fault !== undefined) continue;
      const taskId = idOf(event.stream);
      const rhythm = changed.get(taskId) ?? (checkpoint === null ? null : await kept(taskId));
      changed.set(taskId, isKnown(rhythm, event) ? rhythm : evolveRhythmOf(rhythm, event));
    }
  }
  if (signal.aborted) throw new BrokenOff(signal.reason);
  for (const [taskId, rhythm] of changed) {
    if (rhythm !== null && rhythm.status !== 'canceled') yield { taskId, rhythm };
  }
  let key: string | null = checkpoint === null ? null : '';
  while (key !== null) {
    const page: readonly { readonly key: string; readonly document: { rhythm: Rhythm } }[] =
      await readModel.find(dueProjection, {
        filters: [],
        sort: [],
        limit: PAGE,
        ...(key === '' ? {} : { after: { values: [], key } }),
      });
    for (const { key: taskId, document } of page) {
      if (!changed.has(taskId)) yield { taskId, rhythm: document.rhythm };
    }
    key = page.length < PAGE ? null : (page.at(-1)?.key ?? null);
  }
}

/** The view may have gone on since its checkpoint was asked for. */
function isKnown(rhythm: Rhythm | null, event: RecordedEvent): boolean {
  if (rhythm === null) return false;
  return event.stream.startsWith('task-')
    ? event.revision <= rhythm.task_revision
    : event.revision <= (rhythm.fires?.revision ?? -1);
}
