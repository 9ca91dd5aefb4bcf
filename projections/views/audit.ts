import type { RecordedEvent } from '../../domain/event-store.ts';
import type { JsonObject } from '../../domain/json.ts';
import type { AuditOutcome } from '../../domain/vocabulary.ts';
import type { Filter, Projection, Sort } from '../read-model.ts';

/** What is done by nobody in particular. */
const SERVICE = 'service';

/** One thing that an agent did, or was refused; its key is the event's position. */
export type AuditDocument = JsonObject & {
  readonly position: string;
  /** When it happened. */
  readonly at: string;
  /** The agent's id. */
  readonly actor: string;
  /** The address that it came from. */
  readonly source: string;
  /** The event's type; of what changed nothing the endpoint, as `POST /tasks/{id}/pause`, or the tool, as `call http.request`. */
  readonly action: string;
  /** Of the event. */
  readonly type: string;
  readonly stream: string;
  readonly revision: number;
  /** In the actor's words; null where it gave none. */
  readonly reason: string | null;
  readonly correlation_id: string;
  readonly outcome: AuditOutcome;
  /** Of a command that was refused. */
  readonly refusal: RefusalPart | null;
  /** Of a tool that was called directly; views of older shapes lack it. */
  readonly call?: CallPart | null;
};

/** How, and how often; `path` is null where several were summed. */
export type RefusalPart = JsonObject & {
  readonly status: number;
  readonly code: string;
  readonly path: string | null;
  readonly count: number;
  readonly first_at: string;
  readonly last_at: string;
};

/** Which tool, and how often. */
export type CallPart = JsonObject & {
  readonly tool: string;
  /** Of the error; null where there was none. */
  readonly code: string | null;
  readonly count: number;
  readonly first_at: string;
  readonly last_at: string;
};

/** How the names of the streams of runs begin. */
const RUNS = 'run-';

/** Whether what was done in a stream is read from the log, as it is short; the view is not asked for it. */
export const isAuditedInLog = (stream: string): boolean => stream.startsWith(RUNS);

/**
 * Who did what, for auditors. What the service does by itself is not here: it is most of the log, and stands there;
 * a document for each event of each run would cost more than the run. Neither are streams that only hold what others
 * say too: a name's reservation, a key, the memory of a request.
 */
export const auditProjection: Projection<AuditDocument> = {
  name: 'audit',
  schema: 5,
  // The fourth lacks tools that were called directly, of which its release had none. The third has the streams of runs
  // in its index; those before lack what was ordered of replays and said in the demonstration, the first also an index
  // or two.
  readsOlder: [1, 2, 3, 4],
  streams: [
    'agent-',
    'session-',
    'task-',
    'run-',
    'backfill-',
    'topic-',
    'refusals-',
    'calls-',
    'reads-',
    'operations',
    'projection-',
    'replays',
    'demo-',
    'webhook-',
    'retention',
  ],
  fields: { at: 'text', actor: 'text', stream: 'text', type: 'text' },
  // Of two or three that are asked for together, the first of these is gone along, and the others are looked at there.
  indexes: [['stream', 'at'], ['actor', 'at'], ['type', 'at'], ['at']],
  covered: [[], ['type'], [], []],
  // Each run by hand would add to another page of that index: half of what this view wrote under load.
  sparse: ['stream'],
  unasked: { stream: RUNS },
  isOver: () => true,
  keys(event) {
    if (event.type === 'RecordsRemoved') return event.data.audited;
    return event.metadata.actor === SERVICE ? [] : [event.position];
  },
  evolve: (document, event) =>
    event.type === 'RecordsRemoved'
      ? withoutRemoved(document, event.data.streams)
      : auditDocumentOf(event),
};

/**
 * What is removed is told by positions, and by the streams that it is of: in a log that was moved from another store,
 * something else stands at those positions, and stays.
 */
function withoutRemoved(
  document: AuditDocument | null,
  removed: readonly { readonly stream: string }[],
): AuditDocument | null {
  return removed.some(({ stream }) => stream === document?.stream) ? null : document;
}

/** An event as the audit shows it, whoever did it. */
export function auditDocumentOf(event: RecordedEvent): AuditDocument {
  const { position, type, stream, revision, metadata } = event;
  const { occurredAt: at, actor, source, reason = null, $correlationId } = metadata;
  const refusal = refusalOf(event);
  return {
    position,
    at,
    actor,
    source,
    action: actionOf(event),
    type,
    stream,
    revision,
    reason,
    correlation_id: $correlationId,
    outcome: outcomeOf(event),
    refusal,
    call: callOf(event),
  };
}

function actionOf(event: RecordedEvent): string {
  if (event.type === 'ToolCalled') return `call ${event.data.tool}`;
  const changesNothing = event.type === 'CommandRefused' || event.type === 'AuditRead';
  return changesNothing ? event.data.action : event.type;
}

function outcomeOf(event: RecordedEvent): AuditOutcome {
  if (event.type === 'ToolCalled') return event.data.outcome;
  return event.type === 'CommandRefused' ? 'refused' : 'done';
}

function callOf(event: RecordedEvent): CallPart | null {
  if (event.type !== 'ToolCalled') return null;
  const { tool, code, count, first_at, last_at } = event.data;
  return { tool, code, count, first_at, last_at };
}

function refusalOf(event: RecordedEvent): RefusalPart | null {
  if (event.type !== 'CommandRefused') return null;
  const { status, code, path, count, first_at, last_at } = event.data;
  return { status, code, path, count, first_at, last_at };
}

/** What can be asked of the audit. */
export interface AuditFilters {
  readonly actor?: string | undefined;
  readonly stream?: string | undefined;
  readonly type?: string | undefined;
  /** At or after, as the service writes instants. */
  readonly from?: string | undefined;
  /** At or before. */
  readonly to?: string | undefined;
  readonly outcome?: AuditOutcome | undefined;
}

/** Types of events that alone have another outcome than `done`. */
const typesByOutcome: Readonly<Partial<Record<AuditOutcome, readonly string[]>>> = {
  refused: ['CommandRefused', 'ToolCalled'],
  failed: ['ToolCalled'],
};

/** Newest first; of one instant what stands later in the log, as the key is the position. */
export const newestAudited: readonly Sort[] = [{ field: 'at', direction: 'descending' }];

/** The filters of a query over {@link auditProjection}, by {@link newestAudited}; not for a stream that {@link isAuditedInLog}. */
export function auditFilters(wanted: AuditFilters): readonly Filter[] {
  const filters: Filter[] = [];
  for (const field of ['actor', 'stream', 'type'] as const) {
    const value = wanted[field];
    if (value !== undefined) filters.push({ field, op: 'eq', value });
  }
  const types = wanted.outcome === undefined ? undefined : typesByOutcome[wanted.outcome];
  if (types !== undefined && wanted.type === undefined) {
    filters.push({ field: 'type', op: 'in', value: types });
  }
  if (wanted.from !== undefined) filters.push({ field: 'at', op: 'gte', value: wanted.from });
  if (wanted.to !== undefined) filters.push({ field: 'at', op: 'lte', value: wanted.to });
  return filters;
}

/** Whether an event is of whom, where, what and when is asked for; of what the service does nothing is asked. */
export function isAudited(event: RecordedEvent, wanted: AuditFilters): boolean {
  const { actor } = event.metadata;
  const { fault } = event;
  return fault === undefined && actor !== SERVICE && passes(event, wanted);
}

/** Whether an event is of whom, where, what and when is asked for. */
export function passes(event: RecordedEvent, wanted: AuditFilters): boolean {
  const { actor, stream, type, from, to } = wanted;
  const { occurredAt } = event.metadata;
  return (
    (actor === undefined || actor === event.metadata.actor) &&
    (stream === undefined || stream === event.stream) &&
    (type === undefined || type === event.type) &&
    (from === undefined || occurredAt >= from) &&
    (to === undefined || occurredAt <= to)
  );
}
