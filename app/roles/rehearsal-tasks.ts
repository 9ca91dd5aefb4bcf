import { toIso, type Instant } from '../../domain/clock.ts';
import type { RecordedEvent } from '../../domain/event-store.ts';
import { toNewEvents } from '../../domain/handle.ts';
import { newId } from '../../domain/ids.ts';
import type { JsonObject } from '../../domain/json.ts';
import { streams } from '../../domain/streams.ts';
import {
  taskDefaults,
  withDefaults,
  type TaskDefinition,
} from '../../domain/tasks/task-definition.ts';
import { createTask } from '../../domain/tasks/task.ts';

/** Which tasks of a rehearsal. */
export interface RehearsedTime {
  /** When they are due. */
  readonly at: Instant;
  readonly tasks: number;
  /** Which time it is. */
  readonly time: number;
}

/**
 * The tasks of a rehearsal, as the log would tell of them: each due once, with a pipeline of `echo`. In all else every
 * second one is like a real one: an object whose fields are of another order is of another form to V8, and code that it
 * has compiled for the one is thrown away when it meets the other.
 *
 * @param models real tasks that are about to be due; perhaps none
 */
export function tasksDue(
  { at: due, tasks, time }: RehearsedTime,
  now: Instant,
  models: readonly TaskDefinition[],
): RecordedEvent[] {
  const at = toIso(due);
  return Array.from({ length: tasks }, (_, number) => {
    const index = time * tasks + number;
    const id = newId(now);
    const stream = streams.task(id);
    const model = index % 2 === 0 ? models[(index / 2) % models.length] : undefined;
    const definition = definitionOf(model, at, id, {
      pipeline: [{ uses: 'echo', with: { index } }],
    });
    const rhythm = { anchor: toIso(now), next_fire_at: at };
    const created = createTask({ status: 'none' }, definition, rhythm);
    const context = {
      commandId: id,
      actor: 'service',
      source: 'rehearsal',
      correlationId: id,
      now,
    };
    const [event] = toNewEvents(stream, created, context);
    if (event === undefined) throw new Error('a task begins with an event');
    // As they come from another process, and as they are made in this one: for V8 these may be objects of two forms.
    const read = index % 2 === 0 ? (JSON.parse(JSON.stringify(event)) as typeof event) : event;
    return { ...read, stream, revision: 0, position: String(index), createdAt: toIso(now) };
  });
}

/** Due once, and at once begun and ended, whatever the model says. */
function definitionOf(
  model: TaskDefinition | undefined,
  at: string,
  id: string,
  payload: JsonObject,
): TaskDefinition {
  const own = { schedule_kind: 'once', schedule_expr: at, payload, created_by: id } as const;
  if (model === undefined) return withDefaults({ title: 'rehearsal', description: '', ...own });
  const { dedupe_key, concurrency_key, overlap_policy, starts_at, ends_at, max_runs } =
    taskDefaults;
  const { jitter_seconds, misfire_policy, misfire_grace_seconds } = taskDefaults;
  return {
    ...{ ...model, ...own, dedupe_key, concurrency_key, overlap_policy, starts_at, ends_at },
    ...{ max_runs, jitter_seconds, misfire_policy, misfire_grace_seconds },
  };
}
