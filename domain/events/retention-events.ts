import { Type } from '@sinclair/typebox';
import { retainedKinds } from '../vocabulary.ts';
import { closed, event, Id, Namespace, Nullable, OneOf, Timestamp } from './schema-parts.ts';

const count = Type.Integer({ minimum: 0 });

/** The figures of one day of one task, or of all tasks of a namespace, as in the statistics view. */
const KeptDaySchema = closed({
  scope: Type.String(),
  namespace: Namespace,
  total: count,
  successful: count,
  failed: count,
  execution_ms: Type.Number({ minimum: 0 }),
  histogram: Type.Record(Type.String(), count),
  last_run: Nullable(Timestamp),
  last_success: Nullable(Timestamp),
  last_failure: Nullable(Timestamp),
});

/** Events of `retention` and of `kept-<day>`: what was removed from the log, and what is kept of it. */
export const retentionEvents = {
  /** These records were removed from the views, and from here on from the log. */
  RecordsRemoved: event({
    kind: OneOf(retainedKinds),
    records: count,
    events: count,
    first_position: Id,
    last_position: Id,
    /** They ended before this. */
    older_than: Timestamp,
    /** The streams, and the revision before which each is truncated: a crash in between loses nothing. */
    streams: Type.Array(closed({ stream: Type.String(), before: count })),
    /** Positions of their events that the audit has. */
    audited: Type.Array(Id),
  }),
  /** The final figures of a day whose runs are about to be removed. */
  StatisticsKept: event(
    {
      /** `YYYY-MM-DD`, UTC. */
      day: Type.String({ minLength: 10, maxLength: 10 }),
      figures: Type.Array(KeptDaySchema),
      /** The day's last event of this type. */
      complete: Type.Boolean(),
    },
    2,
  ),
} as const;
