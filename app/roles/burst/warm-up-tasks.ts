import { toIso, type Instant } from '../../../domain/clock.ts';
import type { RecordedEvent } from '../../../domain/event-store.ts';
import { toNewEvents } from '../../../domain/handle.ts';
import { nameBasedId, newId } from '../../../domain/ids.ts';
import { streams } from '../../../domain/streams.ts';
import {
  taskDefaults,
  withDefaults,
  type TaskDefinition,
} from '../../../domain/tasks/task-definition.ts';
import { createTask } from '../../../domain/tasks/task.ts';

/** The owner of tasks without a model. It is the same for all, because a worker keeps the owners of runs in memory. */
const OWNER = nameBasedId('warm-up', 'owner');

/** One round of a warm-up. */
export interface Round {
  /** When its tasks are due. */
  readonly at: Instant;
  readonly tasks: number;
  readonly number: number;
}

/**
 * The events of a round's tasks: each is due once and runs `echo`. Every second one resembles a real task. V8 discards
 * compiled code when it meets an object whose fields are in another order.
 *
 * @param models real tasks that are about to be due; may be empty
 */
export function tasksDue(
  { at: due, tasks, number: round }: Round,
  now: Instant,
  models: readonly TaskDefinition[],
): RecordedEvent[] {
  return Array.from({ length: tasks }, (_, number) => {
    const index = round * tasks + number;
    const id = newId(now);
    const stream = streams.task(id);
    const isOdd = index % 2 === 1;
    const model = isOdd ? undefined : models[(index / 2) % models.length];
    const definition = definitionOf(model, toIso(due), index);
    const schedule = { anchor: toIso(now), next_fire_at: toIso(due) };
    const created = createTask({ status: 'none' }, definition, schedule);
    const context = { commandId: id, actor: 'service', source: 'warm-up', correlationId: id, now };
    const [event] = toNewEvents(stream, created, context);
    if (event === undefined) throw new Error('a task begins with an event');
    // Parsed like an event of another process, or as made in this one: two hidden classes in V8.
    const read = isOdd ? event : (JSON.parse(JSON.stringify(event)) as typeof event);
    return { ...read, stream, revision: 0, position: String(index), createdAt: toIso(now) };
  });
}

/** Due once, and instant, whatever the model says. */
function definitionOf(
  model: TaskDefinition | undefined,
  at: string,
  index: number,
): TaskDefinition {
  const payload = { pipeline: [{ uses: 'echo', with: { index } }] };
  const { created_by } = model ?? { created_by: OWNER };
  const own = { schedule_kind: 'once', schedule_expr: at, payload, created_by } as const;
  if (model === undefined) return withDefaults({ title: 'warm-up', description: '', ...own });
  const { dedupe_key, concurrency_key, overlap_policy, starts_at, ends_at, max_runs } =
    taskDefaults;
  const { jitter_seconds, misfire_policy, misfire_grace_seconds } = taskDefaults;
  return {
    ...model,
    ...own,
    dedupe_key,
    concurrency_key,
    overlap_policy,
    starts_at,
    ends_at,
    max_runs,
    jitter_seconds,
    misfire_policy,
    misfire_grace_seconds,
  };
}
