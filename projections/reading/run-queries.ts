import { runStates, type RunState, type RunTrigger } from '../../domain/vocabulary.ts';
import type { Filter, Query, Sort } from '../read-model.ts';
import { within, type Reach } from '../reach.ts';

/** The filters of `GET /runs`. */
export interface RunFilters {
  readonly task_id?: string | undefined;
  /** Only children of this run. */
  readonly parent_run_id?: string | undefined;
  readonly success?: boolean | undefined;
  readonly state?: RunState | undefined;
  /** Only runs in one of these states, if no single state is given. */
  readonly states?: readonly RunState[] | undefined;
  readonly trigger?: RunTrigger | undefined;
  /** Only runs that were queued before this instant; as `start_time`. */
  readonly until?: string | undefined;
  /** Only runs that started after this instant; ISO 8601 as the service writes it (UTC, milliseconds). */
  readonly start_time?: string | undefined;
  readonly end_time?: string | undefined;
}

/** Filters and sort of a list of runs; the caller adds the page. */
export interface RunListing {
  readonly filters: readonly Filter[];
  readonly sort: readonly Sort[];
}

/**
 * The filters and the sort of a list of runs, newest first: by start if a span of starts is given, otherwise by the
 * time they were queued. Both orders use an index. Skipped runs are left out unless their state is requested. A filter
 * by task always uses the task's index. Otherwise, a filter by parent uses the parent's index.
 *
 * @returns null if no run can match, because state and success contradict each other
 */
export function runListing(reach: Reach, wanted: RunFilters): RunListing | null {
  const { task_id, parent_run_id, trigger, states, until, start_time, end_time } = wanted;
  const filters: Filter[] = [...within(reach)];
  // `success` stands for one of two states.
  const successState = wanted.success === undefined ? undefined : successStates(wanted.success);
  const state = wanted.state ?? successState;
  if (successState !== undefined && state !== successState) return null;
  const ofSpan = start_time !== undefined || end_time !== undefined;
  if (parent_run_id !== undefined) filters.push(equals('parent_run_id', parent_run_id));
  if (task_id !== undefined) filters.push(equals('task_id', task_id));
  if (state !== undefined) filters.push(equals('state', state));
  else if (states !== undefined) filters.push({ field: 'state', op: 'in', value: states });
  const isOfOne = task_id !== undefined || parent_run_id !== undefined;
  // The state implies `listed`. Without a task or a parent, the indexes of states are used.
  if (isOfOne) filters.push(equals('listed', state !== 'skipped'));
  else if (state === undefined && states === undefined) {
    filters.push(
      ofSpan ? { field: 'state', op: 'in', value: listedStates } : equals('listed', true),
    );
  }
  if (trigger !== undefined) filters.push(equals('trigger', trigger));
  if (until !== undefined) filters.push({ field: 'queued_at', op: 'lt', value: until });
  if (start_time !== undefined) filters.push({ field: 'started_at', op: 'gt', value: start_time });
  if (end_time !== undefined) filters.push({ field: 'started_at', op: 'lt', value: end_time });
  const field = ofSpan && !isOfOne ? 'started_at' : 'queued_at';
  return { filters, sort: [{ field, direction: 'descending' }] };
}

/** How many earlier runs of a task are compared with a run. */
const MAX_COMPARED = 50;

type Placed = { readonly id: string; readonly task_id: string; readonly queued_at: string };

/** The run of the same task that was queued just before or after a run, skipped ones left out. Constant cost. */
export function neighbourOf(run: Placed, side: 'previous' | 'next'): Query {
  return besides(run, side === 'previous' ? 'descending' : 'ascending', 1);
}

/** The runs of the same task that were queued before a run, the newest first. */
export const runsBefore = (run: Placed): Query => besides(run, 'descending', MAX_COMPARED);

function besides(
  { id, task_id, queued_at }: Placed,
  direction: Sort['direction'],
  limit: number,
): Query {
  return {
    filters: [equals('task_id', task_id), equals('listed', true)],
    sort: [{ field: 'queued_at', direction }],
    after: { values: [queued_at], key: id },
    limit,
  };
}

/** The latest run of a task that was not skipped. */
export function latestRunOf(taskId: string): Query {
  return latestRunsOf(taskId, 1);
}

/** The latest runs of a task that were not skipped, newest first. */
export function latestRunsOf(taskId: string, limit: number): Query {
  return {
    filters: [equals('task_id', taskId), equals('listed', true)],
    sort: [{ field: 'queued_at', direction: 'descending' }],
    limit,
  };
}

/** The run of a task that was queued last among those that have started: its start is the task's `last_run_at`. */
export function latestStartedRunOf(taskId: string): Query {
  const latest = latestRunOf(taskId);
  return { ...latest, filters: [...latest.filters, { field: 'started_at', op: 'gt', value: '' }] };
}

const listedStates = runStates.filter((state) => state !== 'skipped');

const successStates = (success: boolean): RunState => (success ? 'succeeded' : 'failed');

const equals = (field: string, value: string | boolean): Filter => ({ field, op: 'eq', value });
