import { setImmediate } from 'node:timers/promises';
import type { RawEvent } from '../../domain/event-store.ts';
import { withExponents } from '../../domain/exact-numbers.ts';
import { contentOf, placeOf } from '../../domain/events/event-line.ts';
import type { WantedEvents } from '../../domain/log-transfer.ts';
import { kindOf } from '../../domain/streams.ts';
import { taskIn, type Names } from '../../projections/reading/names.ts';
import { csvLine } from './csv.ts';
import { PART, type ExportedPart, type ExportFormat } from './export-formats.ts';

/** Which events are wanted; what is left out does not matter. */
export interface EventFilter extends WantedEvents {
  /** Occurred at or after it, and before the other; as the service writes instants. */
  readonly since?: string | undefined;
  readonly until?: string | undefined;
  /** Of one task: its own events, its fires, those of its runs, and what else names it. */
  readonly taskId?: string | undefined;
  readonly stream?: string | undefined;
  /** As the metadata say it. */
  readonly actor?: string | undefined;
  readonly source?: string | undefined;
  readonly correlationId?: string | undefined;
}

/** Where events are read from: a part of the log at a time, in its order. */
export interface EventSource {
  /** @param wanted what need not be given otherwise */
  parts(wanted: WantedEvents): AsyncIterable<{
    readonly events: Iterable<RawEvent>;
    /** Events that were gone through for it. */
    readonly read: number;
    /** How much of the log has been read with this part, 0 to 1. */
    readonly share: number;
  }>;
}

/** The head of CSV. */
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

/** Where an event of a run says whose it is; `started` of one that was removed. */
interface RunWords {
  readonly task_id?: string;
  readonly started?: { readonly task_id?: string };
}

/** What comes last of a run: no more of it is looked for. A failed one may be retried at any time after. */
const ends = new Set(['RunSucceeded', 'RunCanceled', 'RunSkipped']);

/**
 * The events of a log that pass a filter, in its order, as they were recorded: older versions keep their shape, which
 * `schemaVersion` names. Reads a part at a time; what is remembered is the runs of the one task that failed, or have not
 * ended.
 */
export async function* exportEvents(
  log: EventSource,
  format: ExportFormat,
  filter: EventFilter,
  names: Names | null = null,
): AsyncGenerator<ExportedPart> {
  const wanted = new Wanted(filter);
  if (format === 'csv') yield { text: csvLine(eventColumns), count: 0, share: 0, read: 0 };
  // Which runs are a task's is told by events of other types than those that are asked for.
  const { taskId, types, kinds } = filter;
  const parts = log.parts(taskId === undefined ? { types, kinds } : {});
  for await (const { events, read, share } of parts) {
    let text = '';
    let count = 0;
    for (const event of events) {
      if (!wanted.takes(event)) continue;
      const called = await calledIn(event, names);
      text += format === 'csv' ? csvOf(event, called) : lineOf(event, called);
      count += 1;
      if (text.length < PART) continue;
      yield { text, count, share, read: 0 };
      // Other requests come in between.
      await setImmediate();
      [text, count] = ['', 0];
    }
    yield { text, count, share, read };
  }
}

class Wanted {
  readonly #filter: EventFilter;
  readonly #types: ReadonlySet<string> | null;
  readonly #kinds: ReadonlySet<string> | null;
  readonly #ownStreams: ReadonlySet<string>;
  readonly #mark: string;
  /** Streams of the task's runs of which more may come. */
  readonly #runs = new Set<string>();

  constructor(filter: EventFilter) {
    const { types, kinds, taskId } = filter;
    this.#filter = filter;
    this.#types = types === undefined ? null : new Set(types);
    this.#kinds = kinds === undefined ? null : new Set(kinds);
    this.#ownStreams = new Set(taskId === undefined ? [] : [`task-${taskId}`, `fires-${taskId}`]);
    this.#mark = `"task_id":"${taskId ?? ''}"`;
  }

  takes(event: RawEvent): boolean {
    // First, as it remembers what later events are told by.
    if (this.#filter.taskId !== undefined && !this.#isOfTask(event)) return false;
    if (this.#types !== null && !this.#types.has(event.type)) return false;
    if (this.#kinds !== null && !this.#kinds.has(kindOf(event.stream))) return false;
    if (![undefined, event.stream].includes(this.#filter.stream)) return false;
    return this.#isAsTold(event);
  }

  #isOfTask({ stream, type, data }: RawEvent): boolean {
    if (this.#ownStreams.has(stream)) return true;
    if (!stream.startsWith('run-')) return data.includes(this.#mark);
    if (!this.#runs.has(stream) && !(data.includes(this.#mark) && this.#isRunOfTask(data))) {
      return false;
    }
    if (ends.has(type)) this.#runs.delete(stream);
    else this.#runs.add(stream);
    return true;
  }

  /** By what a run's event says itself: the payloads and results that it carries may name any task. */
  #isRunOfTask(data: string): boolean {
    const { task_id, started } = objectOf(data) as RunWords;
    return [task_id, started?.task_id].includes(this.#filter.taskId);
  }

  /** By what the metadata say. */
  #isAsTold({ metadata, createdAt }: RawEvent): boolean {
    const { since, until, actor, source, correlationId } = this.#filter;
    if ([since, until, actor, source, correlationId].every((each) => each === undefined)) {
      return true;
    }
    const told = objectOf(metadata) as Readonly<Record<string, string | undefined>>;
    const { occurredAt = createdAt } = told;
    return (
      (since === undefined || occurredAt >= since) &&
      (until === undefined || occurredAt < until) &&
      (actor === undefined || told['actor'] === actor) &&
      (source === undefined || told['source'] === source) &&
      (correlationId === undefined || told['$correlationId'] === correlationId)
    );
  }
}

/** The names of the agent that acted and of the task concerned. */
interface Called {
  readonly actor_name: string | null;
  readonly task_title: string | null;
}

async function calledIn(event: RawEvent, names: Names | null): Promise<Called> {
  if (names === null) return { actor_name: null, task_title: null };
  const { stream, data } = event;
  const { actor = '' } = objectOf(event.metadata) as { readonly actor?: string };
  // The event often says it itself: then its stream need not be looked at.
  const own = data.includes('"task_id"') ? taskIn(objectOf(data)) : null;
  if (own !== null && stream.startsWith('run-')) names.learn(stream, own);
  const taskId = own ?? (await names.taskOf(stream));
  return {
    actor_name: await names.agentName(actor),
    task_title: await names.taskTitle(taskId),
  };
}

function lineOf(event: RawEvent, called: Called): string {
  const { actor_name, task_title } = called;
  const names = `,"actor_name":${JSON.stringify(actor_name)},"task_title":${JSON.stringify(task_title)}`;
  return contentOf({ ...event, data: withExponents(event.data) }) + names + placeOf(event);
}

function csvOf(event: RawEvent, { actor_name, task_title }: Called): string {
  const metadata = objectOf(event.metadata) as Readonly<Record<string, string | undefined>>;
  const { occurredAt, actor, source, reason, $correlationId, commandId, schemaVersion } = metadata;
  const { position, stream, revision, type, id, data } = event;
  const told = [occurredAt, actor, source, reason, $correlationId, commandId, id, schemaVersion];
  return csvLine([
    position,
    stream,
    revision,
    type,
    ...told,
    withExponents(data),
    actor_name,
    task_title,
  ]);
}

/** What is damaged says nothing. */
function objectOf(text: string): object {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null ? value : {};
  } catch {
    return {};
  }
}
