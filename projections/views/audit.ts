import type { RecordedEvent } from '../../domain/event-store.ts';
import { namespaceOfEvent } from '../../domain/events/metadata.ts';
import type { JsonObject } from '../../domain/json.ts';
import { namespaceField } from '../../domain/namespaces/namespace.ts';
import type { AuditOutcome } from '../../domain/vocabulary.ts';
import { within, type Reach } from '../reach.ts';
import type { Filter, Projection, Sort } from '../read-model.ts';
import { withinNamespaces } from './namespaced.ts';

/** The actor of an action that no agent took. */
const SERVICE = 'service';

/** One action that an agent took or was refused. Its key is the event's position. */
export type AuditDocument = JsonObject & {
  readonly position: string;
  /** The namespace of the changed record; left out in `default`. */
  readonly namespace?: string;
  readonly at: string;
  readonly actor: string;
  /** The IP address that the request came from. */
  readonly source: string;
  /**
   * The event's type. For an action that changed nothing: the endpoint, such as `POST /tasks/{id}/pause`, or the tool,
   * such as `call http.request`.
   */
  readonly action: string;
  readonly type: string;
  readonly stream: string;
  readonly revision: number;
  /** In the actor's words; null if it gave none. */
  readonly reason: string | null;
  readonly correlation_id: string;
  readonly outcome: AuditOutcome;
  /** The refusal of a refused command. */
  readonly refusal: RefusalPart | null;
  /** The direct call of a tool; missing in views of older shapes. */
  readonly call?: CallPart | null;
  /** The use of a secret; left out for other actions. */
  readonly use?: UsePart;
};

/** The refused requests; `path` is null if several were summed. */
export type RefusalPart = JsonObject & {
  readonly status: number;
  readonly code: string;
  readonly path: string | null;
  readonly count: number;
  readonly first_at: string;
  readonly last_at: string;
  /** For a call that came too late: the step whose wait had ended. Otherwise missing. */
  readonly run_id?: string;
  readonly step?: string;
};

/** The calls of one tool. */
export type CallPart = JsonObject & {
  readonly tool: string;
  /** The error code; null if there was no error. */
  readonly code: string | null;
  readonly count: number;
  readonly first_at: string;
  readonly last_at: string;
};

/** Uses of one secret. */
export type UsePart = JsonObject & {
  readonly name: string;
  readonly version: number | null;
  readonly source: string;
  readonly task_id: string | null;
  /** null for a sum, like the step. */
  readonly run_id: string | null;
  readonly step: string | null;
  readonly count: number;
  readonly first_at: string;
  readonly last_at: string;
};

const RUNS = 'run-';

/** Whether the audit of a stream is read from the log instead of the view, because the stream is short. */
export const isAuditedInLog = (stream: string): boolean => stream.startsWith(RUNS);

/**
 * The actions of agents, for auditors. The service's own actions are left out: they are most of the log, and a document
 * for each event of a run would cost more than the run. Streams that only repeat others are left out too: a name's
 * reservation, a key, the memory of a request.
 */
export const auditProjection: Projection<AuditDocument> = {
  name: 'audit',
  schema: 7,
  // Schema 6 cannot be filtered by namespace. It lacks people, keys, secrets and the tasks that the service pauses
  // because of their agents. Schema 5 lacks workers, which its release did not have. Schema 4 lacks tools that were
  // called directly, which its release did not have. Schema 3 indexes the streams of runs. Earlier ones lack orders for
  // replays and demo streams; schema 1 also lacks an index or two.
  readsOlder: [1, 2, 3, 4, 5, 6],
  addedFields: { namespace: 7 },
  streams: [
    'agent-',
    'session-',
    'person-',
    'apikey-',
    'task-',
    'run-',
    'backfill-',
    'topic-',
    'refusals-',
    'calls-',
    'reads-',
    'secret-',
    'uses-',
    'operations',
    'projection-',
    'replays',
    'demo-',
    'webhook-',
    'worker-',
    'retention',
    'namespace-',
  ],
  fields: { namespace: 'text', at: 'text', actor: 'text', stream: 'text', type: 'text' },
  // With several filters, the query uses the index of the first of these fields; its covered fields
  // decide the other filters.
  indexes: withinNamespaces([['stream', 'at'], ['actor', 'at'], ['type', 'at'], ['at']]),
  covered: [[], ['type', 'namespace'], ['namespace'], ['namespace'], [], ['type'], [], []],
  // Without this, each manual run would touch another page of the index. Such writes were half of
  // this view's writes under load.
  sparse: ['stream', 'namespace'],
  unqueried: { stream: RUNS },
  isFinal: () => true,
  keys(event) {
    if (event.type === 'RecordsRemoved') return event.data.audited;
    return isOfService(event) || isOfJob(event) ? [] : [event.position];
  },
  evolve: (document, event) =>
    event.type === 'RecordsRemoved'
      ? withoutRemoved(document, event.data.streams)
      : auditDocumentOf(event),
};

/**
 * Actions that the service takes by itself. Pausing a task because of its agent is not among them, because it follows
 * from a person's action.
 */
function isOfService(event: RecordedEvent): boolean {
  if (event.type === 'TaskPaused' && event.data.cause !== undefined) return false;
  return event.metadata.actor === SERVICE;
}

/** Reports of workers about their jobs are just as frequent, and are left out too. */
function isOfJob(event: RecordedEvent): boolean {
  if (event.type === 'RunStepProgressed') return true;
  return event.type === 'RunStepResumed' && event.data.by.kind === 'job';
}

/**
 * Removed events are identified by position and stream. In a log imported from another store, another event may have
 * that position and must stay.
 */
function withoutRemoved(
  document: AuditDocument | null,
  removed: readonly { readonly stream: string }[],
): AuditDocument | null {
  return removed.some(({ stream }) => stream === document?.stream) ? null : document;
}

/** An event as the audit shows it, for any actor. */
export function auditDocumentOf(event: RecordedEvent): AuditDocument {
  const { position, type, stream, revision, metadata } = event;
  const place = namespaceField(namespaceOfEvent(event));
  const { occurredAt: at, actor, source, reason = null, $correlationId: correlation_id } = metadata;
  const known = {
    position,
    ...place,
    at,
    actor,
    source,
    type,
    stream,
    revision,
    reason,
    correlation_id,
  };
  const done = { ...known, action: type, outcome: 'done', refusal: null, call: null } as const;
  if (event.type === 'AuditRead') return { ...done, action: event.data.action };
  if (event.type === 'CommandRefused') {
    const { action, agent_id: _agent, ...refusal } = event.data;
    return { ...done, action, outcome: 'refused', refusal };
  }
  if (event.type === 'ToolCalled') {
    const { tool, outcome, code, count, first_at, last_at } = event.data;
    const call = { tool, code, count, first_at, last_at };
    return { ...done, action: `call ${tool}`, outcome, call };
  }
  if (event.type === 'SecretUsed') {
    const { name, secret_version, source, task_id, run_id, step } = event.data;
    const { count, first_at, last_at } = event.data;
    const secret = { name, version: secret_version, source, task_id, run_id, step };
    const use = { ...secret, count, first_at, last_at };
    return { ...done, action: `use secret ${name}`, use };
  }
  return done;
}

export interface AuditFilters {
  readonly reach: Reach;
  readonly actor?: string | undefined;
  readonly stream?: string | undefined;
  readonly type?: string | undefined;
  /** Only events at or after this instant; ISO 8601 as the service writes it. */
  readonly from?: string | undefined;
  /** Only events at or before this instant. */
  readonly to?: string | undefined;
  readonly outcome?: AuditOutcome | undefined;
}

/** The filters that are checked event by event. */
export type EventFilters = Omit<AuditFilters, 'reach'>;

/** Only these event types can have another outcome than `done`. */
const typesByOutcome: Readonly<Partial<Record<AuditOutcome, readonly string[]>>> = {
  refused: ['CommandRefused', 'ToolCalled'],
  failed: ['ToolCalled'],
};

/** Newest first; at the same instant by log order, as the key is the position. */
export const newestAudited: readonly Sort[] = [{ field: 'at', direction: 'descending' }];

/**
 * The filters of a query over {@link auditProjection}, sorted by {@link newestAudited}. Not for a stream that {@link
 * isAuditedInLog}.
 */
export function auditFilters(wanted: AuditFilters): readonly Filter[] {
  const filters: Filter[] = [...within(wanted.reach)];
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

/** Whether an event belongs to the audit and passes the filters. The caller must check its namespace. */
export function isAudited(event: RecordedEvent, wanted: EventFilters): boolean {
  return event.fault === undefined && !isOfService(event) && passes(event, wanted);
}

/** Whether an event passes the filters. */
export function passes(event: RecordedEvent, wanted: EventFilters): boolean {
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
