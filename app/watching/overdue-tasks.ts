import { fromIso, toIso, type Instant } from '../../domain/clock.ts';
import { EventStoreError, type EventStore } from '../../domain/event-store.ts';
import { nextRunOf } from '../../domain/tasks/rhythm.ts';
import { dueProjection, type DueDocument } from '../../projections/views/due.ts';
import type { ReadModel } from '../../projections/read-model.ts';
import { readRhythm } from '../../scheduler/audit/read-rhythm.ts';

/** Most tasks of which the log is asked. */
const SAMPLE = 20;

/** Times are compared as text: this is before all of them, but after one beyond the year 9999, which begins with a plus. */
const FIRST = '0';

/** Active tasks whose time has passed with no fire and no reason recorded. */
export interface OverdueTasks {
  readonly count: number;
  /** Ids of the first of them. */
  readonly names: readonly string[];
}

/**
 * Active tasks that were due before an instant and are not decided. The view says which may be, the log which are: a view
 * that is behind makes no task overdue.
 */
export async function overdueTasks(
  stores: { readonly store: EventStore; readonly readModel: ReadModel },
  before: Instant,
): Promise<OverdueTasks> {
  const { store, readModel } = stores;
  const filters = [
    { field: 'next_run_at', op: 'lt', value: toIso(before) },
    { field: 'next_run_at', op: 'gt', value: FIRST },
  ] as const;
  const sort = [{ field: 'next_run_at', direction: 'ascending' }] as const;
  const late = await readModel.find(dueProjection, { filters, sort, limit: SAMPLE });
  const names: string[] = [];
  for (const { key, document } of late) {
    if (await isOverdue(store, key, document, before)) names.push(key);
  }
  if (names.length === 0) return { count: 0, names };
  const isAll = late.length < SAMPLE;
  return { count: isAll ? names.length : await readModel.count(dueProjection, filters), names };
}

async function isOverdue(
  store: EventStore,
  taskId: string,
  { rhythm }: DueDocument,
  before: Instant,
): Promise<boolean> {
  try {
    const known = await readRhythm(store, taskId, rhythm);
    const next = known?.status === 'active' ? nextRunOf(known) : null;
    return next !== null && fromIso(next) < before;
  } catch (error) {
    // What can't be read can't be decided either.
    if (error instanceof EventStoreError && error.code === 'CORRUPT_EVENT') return true;
    throw error;
  }
}
