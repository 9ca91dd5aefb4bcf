import type { RecordedEvent } from '../../domain/event-store.ts';
import type { FiresEvent, TaskEvent } from '../../domain/events/catalogue.ts';
import type { JsonObject } from '../../domain/json.ts';
import { evolveRhythm, nextRunOf, type Rhythm } from '../../domain/tasks/rhythm.ts';
import { idOf } from '../../domain/streams.ts';
import type { Projection } from '../read-model.ts';

/** What the scheduler needs to know of a task. Canceled tasks are not here. */
export type DueDocument = JsonObject & {
  readonly task_id: string;
  /** When the next fire runs; null for paused and event tasks, and if none is ahead. */
  readonly next_run_at: string | null;
  readonly rhythm: Rhythm & JsonObject;
};

/** Prefixes of the streams that schedule state is folded from. */
export const rhythmStreams: readonly string[] = ['task-', 'fires-'];

/** When tasks are due: the scheduler's view. The scheduler loads it at its start and continues from its checkpoint. */
export const dueProjection: Projection<DueDocument> = {
  name: 'due',
  schema: 2,
  streams: rhythmStreams,
  fields: { next_run_at: 'text' },
  indexes: [['next_run_at']],
  keys: (event) => [idOf(event.stream)],
  evolve(document, event, taskId) {
    const rhythm = evolveRhythmOf(document?.rhythm ?? null, event);
    if (rhythm === null || rhythm.status === 'canceled') return null;
    const nextRun = rhythm.status === 'active' ? nextRunOf(rhythm) : null;
    return { task_id: taskId, next_run_at: nextRun, rhythm } as DueDocument;
  },
};

/** Folds one event of `task-` or `fires-` into schedule state. */
export function evolveRhythmOf(rhythm: Rhythm | null, event: RecordedEvent): Rhythm | null {
  // The two prefixes hold only events of these types.
  return evolveRhythm(rhythm, event as unknown as TaskEvent | FiresEvent, event);
}
