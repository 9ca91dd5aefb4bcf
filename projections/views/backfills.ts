import type { RecordedEvent } from '../../domain/event-store.ts';
import type { JsonObject } from '../../domain/json.ts';
import { idOf } from '../../domain/streams.ts';
import type { BackfillScope, BackfillStateName, BackfillStop } from '../../domain/vocabulary.ts';
import type { Filter, Projection, Query, Sort } from '../read-model.ts';

/** A backfill as the API shows it, with the fields that a scheduler needs to continue it. */
export type BackfillDocument = JsonObject & {
  readonly id: string;
  /** Left out in `default`. */
  readonly namespace?: string;
  readonly task_id: string;
  readonly created_by: string;
  readonly task_revision: number;
  readonly requested_by: string;
  readonly state: BackfillStateName;
  readonly canceled_by: BackfillStop | null;
  readonly from: string;
  readonly to: string;
  readonly only: BackfillScope;
  readonly concurrency: number;
  /** Override the task's defaults in all its runs; null: none. Documents of older releases lack them. */
  readonly params?: JsonObject | null;
  /** Nominal times in the span. */
  readonly total: number;
  /** Nominal times that received a run. */
  readonly requested: number;
  /** Nominal times that were left out because they already had a run. */
  readonly existing: number;
  /** Runs that have not ended, as last recorded. */
  readonly unfinished: number;
  readonly succeeded: number;
  readonly failed: number;
  readonly canceled: number;
  readonly skipped: number;
  /** The last decided nominal time; null if there is none yet. */
  readonly up_to: string | null;
  readonly created_at: string;
  readonly updated_at: string;
  readonly finished_at: string | null;
  /** Whether work is left. Also true for a canceled backfill whose runs have not ended. */
  readonly open: boolean;
};

/** Every backfill with its progress. */
export const backfillsProjection: Projection<BackfillDocument> = {
  name: 'backfills',
  schema: 1,
  streams: ['backfill-'],
  fields: { task_id: 'text', created_at: 'text', open: 'boolean' },
  indexes: [['task_id', 'created_at'], ['open']],
  keys: (event) => [idOf(event.stream)],
  evolve: evolveBackfillDocument,
};

/** The backfills that have work left. */
export const openBackfills: readonly Filter[] = [{ field: 'open', op: 'eq', value: true }];

/** A task's backfills, newest first. */
export function backfillsOf(taskId: string): Pick<Query, 'filters' | 'sort'> {
  const sort: readonly Sort[] = [{ field: 'created_at', direction: 'descending' }];
  return { filters: [{ field: 'task_id', op: 'eq', value: taskId }], sort };
}

function evolveBackfillDocument(
  backfill: BackfillDocument | null,
  event: RecordedEvent,
  id: string,
): BackfillDocument | null {
  const at = event.metadata.occurredAt;
  if (event.type === 'BackfillRequested') {
    const { earlier: _earlier, params = null, ...request } = event.data;
    return {
      id,
      ...request,
      params: params as JsonObject | null,
      requested_by: event.metadata.actor,
      state: 'running',
      canceled_by: null,
      requested: 0,
      existing: 0,
      unfinished: 0,
      succeeded: 0,
      failed: 0,
      canceled: 0,
      skipped: 0,
      up_to: null,
      created_at: at,
      updated_at: at,
      finished_at: null,
      open: true,
    };
  }
  if (backfill === null) return null;
  const changed = { ...backfill, updated_at: at };
  switch (event.type) {
    case 'BackfillAdvanced': {
      const { up_to, requested, existing, unfinished, outcomes } = event.data;
      const open = backfill.state === 'running' || unfinished.length > 0;
      const progress = { up_to, requested, existing, unfinished: unfinished.length };
      return { ...changed, ...progress, ...outcomes, open };
    }
    case 'BackfillCompleted':
      return { ...changed, state: 'completed', finished_at: at, open: false };
    case 'BackfillCanceled': {
      const open = backfill.unfinished > 0;
      return { ...changed, state: 'canceled', canceled_by: event.data.by, finished_at: at, open };
    }
    default:
      return backfill;
  }
}
