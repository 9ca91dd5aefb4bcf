import { toIso, type Instant } from '../../domain/clock.ts';
import type { RecordedEvent } from '../../domain/event-store.ts';
import { catalogue, type DataOf, type EventType } from '../../domain/events/catalogue.ts';
import type { JsonObject } from '../../domain/json.ts';
import { nameBasedId } from '../../domain/ids.ts';
import { taskDefaults, type TaskDefinition } from '../../domain/tasks/task-definition.ts';
import type { ViewDocument, Projection } from '../../projections/read-model.ts';

/** A log in memory. Each event gets a revision, a position and a time, one second after the one before. */
export class LogOfTest {
  readonly events: RecordedEvent[] = [];
  #now: Instant = Date.parse('2026-03-01T08:00:00.000Z');
  readonly #revisions = new Map<string, number>();

  /** Lets time pass before the next event. */
  pass(milliseconds: number): this {
    this.#now += milliseconds;
    return this;
  }

  /** Adds an event and returns it. */
  add<T extends EventType>(stream: string, type: T, data: DataOf<T>): RecordedEvent {
    const revision = (this.#revisions.get(stream) ?? -1) + 1;
    this.#revisions.set(stream, revision);
    this.#now += 1000;
    const occurredAt = toIso(this.#now);
    const event = {
      id: nameBasedId('test', stream, String(revision)),
      stream,
      revision,
      position: String(this.events.length + 1).padStart(16, '0'),
      type,
      data,
      metadata: {
        commandId: 'command',
        $correlationId: 'correlation',
        actor: 'service',
        source: 'test',
        schemaVersion: String(catalogue[type].version),
        occurredAt,
      },
      createdAt: occurredAt,
    } as unknown as RecordedEvent;
    this.events.push(event);
    return event;
  }
}

/** Folds events into documents by key, without a store. */
export function folded<D extends JsonObject>(
  projection: Projection<D>,
  events: readonly RecordedEvent[],
): ReadonlyMap<string, D> {
  const kept = new Map<string, ViewDocument>();
  const documents = new Map<string, D>();
  for (const event of events) {
    if (!projection.streams.some((prefix) => event.stream.startsWith(prefix))) continue;
    for (const key of projection.keys(event)) {
      if ((kept.get(key)?.position ?? '') >= event.position) continue;
      const document = projection.evolve(documents.get(key) ?? null, event, key);
      kept.set(key, { key, position: event.position, document: {} });
      if (document === null) documents.delete(key);
      else documents.set(key, document);
    }
  }
  return documents;
}

/** A definition with all defaults. */
export function definition(fields: Partial<TaskDefinition> = {}): TaskDefinition {
  return {
    ...taskDefaults,
    title: 'Sweep the floor',
    description: 'With a broom',
    schedule_kind: 'cron',
    schedule_expr: '0 9 * * *',
    payload: { pipeline: [] },
    created_by: 'agent-1',
    ...fields,
  };
}

/** Data of a RunRequested. */
export function request(fields: Partial<DataOf<'RunRequested'>> = {}): DataOf<'RunRequested'> {
  return {
    task_id: 'task-1',
    task_revision: 0,
    created_by: 'agent-1',
    trigger: 'schedule',
    scheduled_for: '2026-03-01T09:00:00.000Z',
    priority: 5,
    run_at: '2026-03-01T09:00:00.000Z',
    event: null,
    retry_of: null,
    prior_steps: [],
    overlap_policy: 'allow',
    ...fields,
  };
}

/** Data of the end of one step. */
export function stepEnd(
  step: string,
  fields: Partial<DataOf<'RunStepCompleted'>> = {},
): DataOf<'RunStepCompleted'> {
  return {
    step,
    status: 'succeeded',
    result: { done: step },
    error: null,
    started_at: '2026-03-01T09:00:01.000Z',
    finished_at: '2026-03-01T09:00:02.000Z',
    attempt: 1,
    log: [],
    ...fields,
  };
}

/** Data of a RunSucceeded. */
export function success(fields: Partial<DataOf<'RunSucceeded'>> = {}): DataOf<'RunSucceeded'> {
  const started_at = '2026-03-01T08:00:02.000Z';
  return { task_id: 'task-1', started_at, attempt: 1, steps: [], output: {}, ...fields };
}

/** Data of a RunFailed. */
export function failure(fields: Partial<DataOf<'RunFailed'>> = {}): DataOf<'RunFailed'> {
  return { ...success(), error: 'it broke', step: null, ...fields };
}
