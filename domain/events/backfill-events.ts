import { Type } from '@sinclair/typebox';
import { backfillScopes, backfillStops } from '../vocabulary.ts';
import { Id, OneOf, Timestamp, Nullable, closed } from './schema-parts.ts';

const count = Type.Integer({ minimum: 0 });

/** Events of `backfill-<id>`: the nominal times of a span of the past, run after the fact. */
export const backfillEvents = {
  BackfillRequested: {
    version: 1,
    schema: closed({
      task_id: Id,
      /** The rule that gives the nominal times, and what its runs execute: the task at this revision. */
      task_revision: Type.Integer({ minimum: 0 }),
      /** The task's owner. */
      created_by: Id,
      /** Both ends are nominal times of the backfill where the rule has one there. */
      from: Timestamp,
      to: Timestamp,
      only: OneOf(backfillScopes),
      /** How many of its runs may be unfinished at once. */
      concurrency: Type.Integer({ minimum: 1, maximum: 100 }),
      /** Nominal times of the rule from `from` to `to`. */
      total: Type.Integer({ minimum: 1 }),
      /** Backfills of the task before it that share some of the span: what they have run is not missing. */
      earlier: Type.Array(Id),
    }),
  },
  /** All up to `up_to` is decided. Carries the progress that results; counts are from the beginning on. */
  BackfillAdvanced: {
    version: 1,
    schema: closed({
      /** The last nominal time that is decided; null for none yet. */
      up_to: Nullable(Timestamp),
      /** Nominal times that were given a run. */
      requested: count,
      /** Nominal times that were left out, as they had a run. */
      existing: count,
      /** Nominal times whose runs are not known to have ended. Some may still have to be requested. */
      unfinished: Type.Array(Timestamp),
      /** How the others ended. */
      outcomes: closed({ succeeded: count, failed: count, canceled: count, skipped: count }),
    }),
  },
  /** Every nominal time is decided, and every run has ended. */
  BackfillCompleted: { version: 1, schema: closed({}) },
  /** Requests no more; the runs that are unfinished are canceled, which `BackfillAdvanced` then says. */
  BackfillCanceled: { version: 1, schema: closed({ by: OneOf(backfillStops) }) },
} as const;
