import { fromIso, toIso, type Instant } from '../../domain/clock.ts';
import { EventStoreError, type EventStore } from '../../domain/event-store.ts';
import { nextRunOf } from '../../domain/tasks/schedule-state.ts';
import { dueProjection, type DueDocument } from '../../projections/views/due.ts';
import type { ReadModel } from '../../projections/read-model.ts';
import { readScheduleState } from '../../scheduler/audit/read-schedule-state.ts';

/** Tasks that are checked in the log. */
const MAX_CHECKED = 20;

/**
 * Times are compared as strings: this sorts before all of them, but after a year beyond 9999, which begins with a plus.
 */
const EARLIEST = '0';

/** Active tasks whose time has passed with no fire and no reason recorded. */
export interface OverdueTasks {
  readonly count: number;
  /** Ids of the first of them. */
  readonly names: readonly string[];
}

/**
 * Active tasks that were due before an instant and are undecided. The view finds candidates and the log confirms them,
 * so a view that is behind makes no task overdue.
 */
export async function overdueTasks(
  stores: { readonly store: EventStore; readonly readModel: ReadModel },
  before: Instant,
): Promise<OverdueTasks> {
  const { store, readModel } = stores;
  const filters = [
    { field: 'next_run_at', op: 'lt', value: toIso(before) },
    { field: 'next_run_at', op: 'gt', value: EARLIEST },
  ] as const;
  const sort = [{ field: 'next_run_at', direction: 'ascending' }] as const;
  const late = await readModel.find(dueProjection, { filters, sort, limit: MAX_CHECKED });
  const names: string[] = [];
  for (const { key, document } of late) {
    if (await isOverdue(store, key, document, before)) names.push(key);
  }
  if (names.length === 0) return { count: 0, names };
  const isAll = late.length < MAX_CHECKED;
  return { count: isAll ? names.length : await readModel.count(dueProjection, filters), names };
}

async function isOverdue(
  store: EventStore,
  taskId: string,
  { rhythm: schedule }: DueDocument,
  before: Instant,
): Promise<boolean> {
  try {
    const known = await readScheduleState(store, taskId, schedule);
    const next = known?.status === 'active' ? nextRunOf(known) : null;
    return next !== null && fromIso(next) < before;
  } catch (error) {
    // A task that cannot be read cannot be decided either.
    if (error instanceof EventStoreError && error.code === 'CORRUPT_EVENT') return true;
    throw error;
  }
}
