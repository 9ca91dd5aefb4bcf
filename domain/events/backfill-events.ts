import { Type } from '@sinclair/typebox';
import { backfillScopes, backfillStops } from '../vocabulary.ts';
import {
  AnyObject,
  closed,
  event,
  Id,
  Namespace,
  Nullable,
  OneOf,
  Timestamp,
} from './schema-parts.ts';

const count = Type.Integer({ minimum: 0 });

/** Events of `backfill-<id>`: runs for the nominal times of a past span. */
export const backfillEvents = {
  BackfillRequested: event(
    {
      task_id: Id,
      /** Nominal times and runs follow the task at this revision. */
      task_revision: Type.Integer({ minimum: 0 }),
      /** The task's owner. */
      created_by: Id,
      /** Both ends are inclusive. */
      from: Timestamp,
      to: Timestamp,
      only: OneOf(backfillScopes),
      /** How many of its runs may be unfinished at once. */
      concurrency: Type.Integer({ minimum: 1, maximum: 100 }),
      /** Nominal times of the rule from `from` to `to`. */
      total: Type.Integer({ minimum: 1 }),
      /** Earlier backfills of the task that overlap the span. Times that they have run are not missing. */
      earlier: Type.Array(Id),
      /** For all its runs, as in RunRequested. */
      params: Type.Optional(AnyObject),
      namespace: Namespace,
    },
    3,
  ),
  /** All nominal times up to `up_to` are decided. Carries the resulting progress; counts are totals. */
  BackfillAdvanced: event({
    /** The last nominal time decided; null for none yet. */
    up_to: Nullable(Timestamp),
    /** Nominal times that got a run. */
    requested: count,
    /** Nominal times left out because they had a run. */
    existing: count,
    /** Nominal times whose runs are not known to have ended; some may not be requested yet. */
    unfinished: Type.Array(Timestamp),
    /** The outcomes of the other runs. */
    outcomes: closed({ succeeded: count, failed: count, canceled: count, skipped: count }),
  }),
  /** Every nominal time is decided, and every run has ended. */
  BackfillCompleted: event({}),
  /** No more runs are requested; unfinished ones are canceled, which `BackfillAdvanced` then records. */
  BackfillCanceled: event({ by: OneOf(backfillStops) }),
} as const;
