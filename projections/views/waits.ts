import type { RecordedEvent } from '../../domain/event-store.ts';
import type { DataOf } from '../../domain/events/catalogue.ts';
import type { JsonObject } from '../../domain/json.ts';
import { isAnswerable } from '../../domain/runs/run-waits.ts';
import { idOf } from '../../domain/streams.ts';
import { approvalStates, type ApprovalState } from '../../domain/vocabulary.ts';
import { within, type Reach } from '../reach.ts';
import type { Filter, Projection, Query } from '../read-model.ts';

/** A step's wait for an approval or a callback, which a call from outside ends. */
export type WaitDocument = JsonObject & {
  readonly id: string;
  /** Left out in `default`. */
  readonly namespace?: string;
  readonly run_id: string;
  readonly task_id: string;
  readonly step: string;
  readonly kind: 'approval' | 'callback';
  readonly since: string;
  readonly until: string;
  readonly ended_at: string | null;
  /** SHA-256 of a callback's tokens, in hexadecimal; empty for an approval. */
  readonly token_hashes: readonly string[];
  /** The approval: its message, its approvers, and the decision; null for a callback. */
  readonly approval: Approval | null;
  /** The state of the approval; null for a callback. */
  readonly approval_state: ApprovalState | null;
};

type Approval = JsonObject & {
  readonly message: string;
  /** Ids of agents and `scope:<name>`; null: everyone with the scope `approvals:write`. */
  readonly approvers: readonly string[] | null;
  readonly decided_by: string | null;
  readonly decided_at: string | null;
  readonly comment: string | null;
};

/**
 * The waits that calls from outside end, until retention removes their run. All other waits are only part of their run.
 * A document for each would add two useless writes to every sleep and every job.
 */
export const waitsProjection: Projection<WaitDocument> = {
  name: 'waits',
  schema: 2,
  // Schema 1 cannot be filtered by namespace.
  readsOlder: [1],
  addedFields: { namespace: 2 },
  streams: ['run-'],
  ownStreams: true,
  fields: {
    namespace: 'text',
    approval_state: 'text',
    since: 'text',
    run_id: 'text',
    task_id: 'text',
    token_hashes: 'text-list',
  },
  // One index per kind of list: approvals in a state, of a run, or of a task. Tokens have their own
  // table.
  indexes: [
    ['approval_state', 'since'],
    ['task_id', 'since'],
    ['run_id', 'since'],
    ['namespace', 'approval_state', 'since'],
  ],
  covered: [['namespace'], ['approval_state'], ['approval_state'], []],
  sparse: ['approval_state', 'namespace'],
  isFinal: ({ ended_at }) => ended_at !== null,
  keys: keysOf,
  evolve: evolveWaitDocument,
};

const answeredBy: ReadonlySet<string> = new Set(['approval', 'callback', 'timeout', 'stopped']);

function keysOf(event: RecordedEvent): readonly string[] {
  switch (event.type) {
    case 'RunStepSuspended':
      return isAnswerable(event.data.waits_for) ? [event.data.wait_id] : [];
    case 'RunStepResumed':
      return answeredBy.has(event.data.by.kind) ? [event.data.wait_id] : [];
    case 'RunRemoved':
      return event.data.waits ?? [];
    default:
      return [];
  }
}

function evolveWaitDocument(wait: WaitDocument | null, event: RecordedEvent): WaitDocument | null {
  switch (event.type) {
    case 'RunStepSuspended':
      return suspended(wait, event.data, idOf(event.stream));
    case 'RunStepResumed':
      // A wait ends once. If it is unknown here, it was neither for an approval nor for a callback.
      if (wait === null || wait.ended_at !== null) return wait;
      return resumed(wait, event.data, event.metadata.occurredAt);
    default:
      return null;
  }
}

function suspended(
  known: WaitDocument | null,
  data: DataOf<'RunStepSuspended'>,
  run_id: string,
): WaitDocument | null {
  const { wait_id: id, task_id, step, since, until, waits_for } = data;
  if (!isAnswerable(waits_for)) return known;
  const { kind } = waits_for;
  const place = data.namespace === undefined ? {} : { namespace: data.namespace };
  const wait = { id, ...place, run_id, task_id, step, kind, since, until };
  if (waits_for.kind === 'callback') {
    const { token_hashes } = waits_for;
    // The wait is recorded again when its tool returns, even if the callback arrived earlier.
    const ended_at = known?.ended_at ?? null;
    return { ...wait, ended_at, token_hashes, approval: null, approval_state: null };
  }
  const { message, approvers = null } = waits_for;
  const undecided = { decided_by: null, decided_at: null, comment: null };
  const approval = { message, approvers, ...undecided };
  return { ...wait, ended_at: null, token_hashes: [], approval, approval_state: 'pending' };
}

function resumed(wait: WaitDocument, data: DataOf<'RunStepResumed'>, at: string): WaitDocument {
  const { approval } = wait;
  const ended = { ...wait, ended_at: at };
  if (approval === null) return ended;
  const { by, result } = data;
  if (by.kind === 'timeout') return { ...ended, approval_state: 'expired' };
  if (by.kind !== 'approval') return { ...ended, approval_state: 'canceled' };
  const { approved, comment } = result as Decision;
  const decision = { decided_by: by.agent_id ?? null, decided_at: at, comment };
  const approval_state = approved ? 'approved' : 'rejected';
  return { ...ended, approval: { ...approval, ...decision }, approval_state };
}

/** The result of a step whose approval was decided. */
interface Decision {
  readonly approved: boolean;
  readonly comment: string | null;
}

/** The wait for a callback with a token, by its hash. */
export function waitOfToken(hash: string): Query {
  return { filters: [{ field: 'token_hashes', op: 'has', value: hash }], sort: [], limit: 1 };
}

/** Approvals, newest first. @param wanted of a state, a task or a run; default: all */
export function approvals(
  reach: Reach,
  wanted: {
    readonly state?: ApprovalState | undefined;
    readonly task_id?: string | undefined;
    readonly run_id?: string | undefined;
  },
): Pick<Query, 'filters' | 'sort'> {
  const { state, task_id, run_id } = wanted;
  const filters: Filter[] = [
    ...within(reach),
    state === undefined
      ? { field: 'approval_state', op: 'in', value: approvalStates }
      : { field: 'approval_state', op: 'eq', value: state },
  ];
  if (task_id !== undefined) filters.push({ field: 'task_id', op: 'eq', value: task_id });
  if (run_id !== undefined) filters.push({ field: 'run_id', op: 'eq', value: run_id });
  return { filters, sort: [{ field: 'since', direction: 'descending' }] };
}
