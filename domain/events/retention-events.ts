import { Type } from '@sinclair/typebox';
import { retainedKinds } from '../vocabulary.ts';
import { Id, Nullable, OneOf, Timestamp, closed } from './schema-parts.ts';

const count = Type.Integer({ minimum: 0 });

/** The figures of one day of one task, or of all, as the view of statistics has them. */
const KeptDaySchema = closed({
  scope: Type.String(),
  total: count,
  successful: count,
  failed: count,
  execution_ms: Type.Number({ minimum: 0 }),
  histogram: Type.Record(Type.String(), count),
  last_run: Nullable(Timestamp),
  last_success: Nullable(Timestamp),
  last_failure: Nullable(Timestamp),
});

/** Events of `retention` and of `kept-<day>`: what was taken out of the log, and what stays of it. */
export const retentionEvents = {
  /** These are gone from the views, and from here on from the log. */
  RecordsRemoved: {
    version: 1,
    schema: closed({
      kind: OneOf(retainedKinds),
      records: count,
      events: count,
      first_position: Id,
      last_position: Id,
      /** They ended before. */
      older_than: Timestamp,
      /** Which streams, and the revision before which each is cut: so that a death between loses nothing. */
      streams: Type.Array(closed({ stream: Type.String(), before: count })),
      /** Positions of those of their events that the audit has. */
      audited: Type.Array(Id),
    }),
  },
  /** The figures of a day whose runs are about to be removed: final, whatever of them the log still shows. */
  StatisticsKept: {
    version: 1,
    schema: closed({
      /** `YYYY-MM-DD`, UTC. */
      day: Type.String({ minLength: 10, maxLength: 10 }),
      figures: Type.Array(KeptDaySchema),
      /** The last of the day's events of this type. */
      complete: Type.Boolean(),
    }),
  },
} as const;
