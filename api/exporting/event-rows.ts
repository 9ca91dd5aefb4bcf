import { setImmediate } from 'node:timers/promises';
import type { RawEvent } from '../../domain/event-store.ts';
import type { DataOf } from '../../domain/events/catalogue.ts';
import { withExponents } from '../../domain/exact-numbers.ts';
import { contentOf, placeOf } from '../../domain/events/event-line.ts';
import type { WantedEvents } from '../../domain/log-transfer.ts';
import { kindOf } from '../../domain/streams.ts';
import { taskIn, type Names } from '../../projections/reading/names.ts';
import { csvLine } from './csv.ts';
import { PART_CHARACTERS, type ExportedPart, type ExportFormat } from './export-formats.ts';

/** Which events are exported; fields that are left out select all. */
export interface EventFilter extends WantedEvents {
  /** Events that occurred at or after `since` and before `until`; normalized. */
  readonly since?: string | undefined;
  readonly until?: string | undefined;
  /** Events of one task: its own, those of its fires and runs, and others that name it. */
  readonly taskId?: string | undefined;
  readonly stream?: string | undefined;
  /** As in the metadata. */
  readonly actor?: string | undefined;
  readonly source?: string | undefined;
  readonly correlationId?: string | undefined;
}

/** A source of events, in the log's order. */
export interface EventSource {
  /** @param wanted events that may be left out */
  parts(wanted: WantedEvents): AsyncIterable<{
    readonly events: Iterable<RawEvent>;
    /** The number of events that were read for this part. */
    readonly read: number;
    /** The share of the log that has been read, 0 to 1. */
    readonly share: number;
  }>;
}

/** The header of CSV. */
export const eventColumns = [
  'position',
  'stream',
  'revision',
  'type',
  'occurred_at',
  'actor',
  'source',
  'reason',
  'correlation_id',
  'command_id',
  'event_id',
  'schema_version',
  'data',
  'actor_name',
  'task_title',
] as const;

/** Fields of a run's event that name its task; `started` of a removed run. */
interface RunTask {
  readonly task_id?: string;
  readonly started?: { readonly task_id?: string };
}

/** The last events of a run. A failed one may be retried at any time. */
const lastEvents = new Set(['RunSucceeded', 'RunCanceled', 'RunSkipped']);

/**
 * The events that match a filter, in the log's order and in the recorded version, which `schemaVersion` names. Memory
 * holds only the failed and unfinished runs of the one task.
 */
export async function* exportEvents(
  log: EventSource,
  format: ExportFormat,
  filter: EventFilter,
  names: Names | null = null,
): AsyncGenerator<ExportedPart> {
  const matcher = new EventMatcher(filter);
  if (format === 'csv') yield { text: csvLine(eventColumns), count: 0, share: 0, read: 0 };
  // Events of other types are also read, because they tell which runs belong to a task.
  const { taskId, types, kinds } = filter;
  const parts = log.parts(taskId === undefined ? { types, kinds } : {});
  for await (const { events, read, share } of parts) {
    let text = '';
    let count = 0;
    for (const event of events) {
      if (!matcher.matches(event)) continue;
      const named = await namesOf(event, names);
      text += format === 'csv' ? csvOf(event, named) : lineOf(event, named);
      count += 1;
      if (text.length < PART_CHARACTERS) continue;
      yield { text, count, share, read: 0 };
      // Gives other requests a turn.
      await setImmediate();
      [text, count] = ['', 0];
    }
    yield { text, count, share, read };
  }
}

class EventMatcher {
  readonly #filter: EventFilter;
  readonly #types: ReadonlySet<string> | null;
  readonly #kinds: ReadonlySet<string> | null;
  readonly #ownStreams: ReadonlySet<string>;
  readonly #taskField: string;
  /** Streams of the task's unfinished runs. */
  readonly #runs = new Set<string>();

  constructor(filter: EventFilter) {
    const { types, kinds, taskId } = filter;
    this.#filter = filter;
    this.#types = types === undefined ? null : new Set(types);
    this.#kinds = kinds === undefined ? null : new Set(kinds);
    this.#ownStreams = new Set(taskId === undefined ? [] : [`task-${taskId}`, `fires-${taskId}`]);
    this.#taskField = `"task_id":"${taskId ?? ''}"`;
  }

  matches(event: RawEvent): boolean {
    // Evaluated first, because it remembers the task's runs.
    if (this.#filter.taskId !== undefined && !this.#isOfTask(event)) return false;
    if (this.#types !== null && !this.#types.has(event.type)) return false;
    if (this.#kinds !== null && !this.#kinds.has(kindOf(event.stream))) return false;
    if (![undefined, event.stream].includes(this.#filter.stream)) return false;
    return this.#matchesMetadata(event);
  }

  #isOfTask({ stream, type, data }: RawEvent): boolean {
    if (this.#ownStreams.has(stream)) return true;
    if (type === 'PayloadStored') return this.#hasTriggered(data);
    if (!stream.startsWith('run-')) return data.includes(this.#taskField);
    if (!this.#runs.has(stream) && !(data.includes(this.#taskField) && this.#isRunOfTask(data))) {
      return false;
    }
    if (lastEvents.has(type)) this.#runs.delete(stream);
    else this.#runs.add(stream);
    return true;
  }

  /** Decided by the event's own field, because payloads and results may name any task. */
  #isRunOfTask(data: string): boolean {
    const { task_id, started } = objectIn(data) as RunTask;
    return [task_id, started?.task_id].includes(this.#filter.taskId);
  }

  /** Requests of runs leave out a payload that is stored once. */
  #hasTriggered(data: string): boolean {
    const { taskId = '' } = this.#filter;
    const { triggered_tasks = [] } = objectIn(data) as Partial<DataOf<'PayloadStored'>>;
    return triggered_tasks.includes(taskId);
  }

  #matchesMetadata({ metadata, createdAt }: RawEvent): boolean {
    const { since, until, actor, source, correlationId } = this.#filter;
    if ([since, until, actor, source, correlationId].every((each) => each === undefined)) {
      return true;
    }
    const found = objectIn(metadata) as Readonly<Record<string, string | undefined>>;
    const { occurredAt = createdAt } = found;
    return (
      (since === undefined || occurredAt >= since) &&
      (until === undefined || occurredAt < until) &&
      (actor === undefined || found['actor'] === actor) &&
      (source === undefined || found['source'] === source) &&
      (correlationId === undefined || found['$correlationId'] === correlationId)
    );
  }
}

/** The names of the event's agent and of its task. */
interface EventNames {
  readonly actor_name: string | null;
  readonly task_title: string | null;
}

async function namesOf(event: RawEvent, names: Names | null): Promise<EventNames> {
  if (names === null) return { actor_name: null, task_title: null };
  const { stream, data } = event;
  const { actor = '' } = objectIn(event.metadata) as { readonly actor?: string };
  // Most events name their task, so their stream need not be read.
  const own = data.includes('"task_id"') ? taskIn(objectIn(data)) : null;
  if (own !== null && stream.startsWith('run-')) names.learn(stream, own);
  const taskId = own ?? (await names.taskOf(stream));
  return { actor_name: await names.agentName(actor), task_title: await names.taskTitle(taskId) };
}

function lineOf(event: RawEvent, { actor_name, task_title }: EventNames): string {
  const names = `,"actor_name":${JSON.stringify(actor_name)},"task_title":${JSON.stringify(task_title)}`;
  return contentOf({ ...event, data: withExponents(event.data) }) + names + placeOf(event);
}

function csvOf(event: RawEvent, { actor_name, task_title }: EventNames): string {
  const metadata = objectIn(event.metadata) as Readonly<Record<string, string | undefined>>;
  const { occurredAt, actor, source, reason, $correlationId, commandId, schemaVersion } = metadata;
  const { position, stream, revision, type, id, data } = event;
  const place = [position, stream, revision, type, occurredAt, actor, source, reason];
  const ids = [$correlationId, commandId, id, schemaVersion];
  return csvLine([...place, ...ids, withExponents(data), actor_name, task_title]);
}

/** The object in a JSON string; empty if the string is damaged. */
function objectIn(json: string): object {
  try {
    const value: unknown = JSON.parse(json);
    return typeof value === 'object' && value !== null ? value : {};
  } catch {
    return {};
  }
}
