import { Type, type TSchema } from '@sinclair/typebox';
import { removedKinds } from '../vocabulary.ts';
import { closed, event, Id, Namespace, Nullable, OneOf, Timestamp } from './schema-parts.ts';

const count = Type.Integer({ minimum: 0 });

/** By the number of the quarter hour in its day, 0 to 95. */
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

/** Events of `retention` and of `kept-<day>`: what was removed from the log, and what is kept of it. */
export const retentionEvents = {
  /** These records were removed from the views, and from here on from the log. */
  RecordsRemoved: event(
    {
      kind: OneOf(removedKinds),
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
