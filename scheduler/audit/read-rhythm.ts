import type { EventStore, RecordedEvent } from '../../domain/event-store.ts';
import type { Rhythm } from '../../domain/tasks/rhythm.ts';
import { streams } from '../../domain/streams.ts';
import { evolveRhythmOf } from '../../projections/views/due.ts';

const PAGE = 500;

/**
 * A task's rhythm as the log says it: what is known, brought up to date by what stands in its two streams after that.
 *
 * @param known null: from the beginning
 * @returns null where the task was never created
 * @throws EventStoreError `CORRUPT_EVENT` where an event does not fit its schema, and all that the log throws
 */
export async function readRhythm(
  store: EventStore,
  taskId: string,
  known: Rhythm | null,
): Promise<Rhythm | null> {
  let rhythm = known;
  const changes = await readAfter(store, streams.task(taskId), known?.task_revision ?? -1);
  // In the order of the log: what a change makes owed depends on the fires before it.
  const takeChanges = (upTo?: RecordedEvent): void => {
    for (let next = changes[0]; next !== undefined; next = changes[0]) {
      if (upTo !== undefined && next.position > upTo.position) return;
      changes.shift();
      rhythm = evolveRhythmOf(rhythm, next);
    }
  };
  for (let from = (known?.fires?.revision ?? -1) + 1; ;) {
    const page = await store.readStream(streams.fires(taskId), { from, limit: PAGE });
    for (const event of page) {
      takeChanges(event);
      rhythm = evolveRhythmOf(rhythm, event);
    }
    from = (page.at(-1)?.revision ?? from) + 1;
    if (page.length < PAGE) break;
  }
  takeChanges();
  return rhythm;
}

async function readAfter(
  store: EventStore,
  stream: string,
  revision: number,
): Promise<RecordedEvent[]> {
  const events: RecordedEvent[] = [];
  for (;;) {
    const from = (events.at(-1)?.revision ?? revision) + 1;
    const page = await store.readStream(stream, { from, limit: PAGE });
    events.push(...page);
    if (page.length < PAGE) return events;
  }
}
