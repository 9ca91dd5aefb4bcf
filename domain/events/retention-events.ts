import { Type, type TSchema } from '@sinclair/typebox';
import { removedKinds } from '../vocabulary.ts';
import { closed, event, Id, Namespace, Nullable, OneOf, Timestamp } from './schema-parts.ts';

const count = Type.Integer({ minimum: 0 });

/** Keyed by the number of the quarter hour in its day, 0 to 95. */
const quartersOf = <T extends TSchema>(quarter: T) => Type.Record(Type.String(), quarter);

const ended = {
  total: count,
  failed: count,
  execution_ms: Type.Number({ minimum: 0 }),
  histogram: Type.Record(Type.String(), count),
  /** Left out for none. */
  skipped: Type.Optional(count),
};

/** The figures of one day of one task, or of all tasks of a namespace, as in the statistics view. */
const KeptDaySchema = closed({
  scope: Type.String(),
  namespace: Namespace,
  ...ended,
  successful: count,
  last_run: Nullable(Timestamp),
  last_success: Nullable(Timestamp),
  last_failure: Nullable(Timestamp),
  /** Left out by older releases. */
  quarters: Type.Optional(quartersOf(closed(ended))),
});

/** The failures of one error on one day, as in the statistics view. */
const KeptErrorSchema = closed({
  scope: Type.Literal('errors'),
  namespace: Namespace,
  group: Type.String(),
  error: Type.String(),
  example: Type.String(),
  total: count,
  quarters: quartersOf(
    closed({
      count,
      first: Timestamp,
      last: Timestamp,
      run: Id,
      tasks: Type.Record(Type.String(), count),
      others: Type.Optional(count),
    }),
  ),
});

/** Events of `retention` and of `kept-<day>`: the removals from the log, and the figures that are kept. */
export const retentionEvents = {
  /** These records were removed from the views. They are now being removed from the log. */
  RecordsRemoved: event(
    {
      kind: OneOf(removedKinds),
      records: count,
      events: count,
      first_position: Id,
      last_position: Id,
      /** The records ended before this time. */
      older_than: Timestamp,
      /**
       * The streams, each with the revision before which it is truncated. With them, the removal can continue after a
       * crash.
       */
      streams: Type.Array(closed({ stream: Type.String(), before: count })),
      /** Positions of the records' events that the audit shows. */
      audited: Type.Array(Id),
    },
    2,
  ),
  /** The final figures of a day whose runs are about to be removed. */
  StatisticsKept: event(
    {
      /** `YYYY-MM-DD`, UTC. */
      day: Type.String({ minLength: 10, maxLength: 10 }),
      figures: Type.Array(Type.Union([KeptErrorSchema, KeptDaySchema])),
      /** The day's last event of this type. */
      complete: Type.Boolean(),
    },
    3,
  ),
} as const;
