import { Type, type Static } from '@sinclair/typebox';
import { Nullable, OneOf, closed } from '../../domain/events/schema-parts.ts';
import { count, done, id, time } from './response-schemas.ts';

/** Responses and bodies about views as of an instant. */

/** `failed`: an event could not be applied. `dropping`: about to be deleted. */
const replayStates = ['building', 'ready', 'failed', 'dropping'] as const;
export type ReplayState = (typeof replayStates)[number];

/** The name of a replay, also for `?view=`. */
export const ReplayName = Type.String({
  pattern: '^[a-z][a-z0-9_]{0,30}$',
  description: 'a name of at most 31 characters from a-z, 0-9 and _ that starts with a letter',
});

const ReplayItem = Type.Object(
  {
    name: Type.String(),
    state: OneOf(replayStates),
    until: Type.String({ description: 'the position up to which events are applied' }),
    at: Type.String({ format: 'date-time', description: 'the instant that it shows' }),
    views: Type.Array(Type.String()),
    rate: Nullable(Type.Number()),
    by: id,
    ordered_at: time,
    kept_until: time,
    progress: Type.Number({ minimum: 0, maximum: 1 }),
    events_per_second: count,
    documents: Nullable(Type.Record(Type.String(), count)),
    error: Nullable(Type.String()),
  },
  { title: 'Replay', additionalProperties: false },
);
export type ReplayItem = Static<typeof ReplayItem>;

export const ReplayList = closed({ replays: Type.Array(ReplayItem) });

export const ReplayOrdered = done({ name: Type.String(), until: Type.String(), at: time });
export const ReplayDropOrdered = done({ name: Type.String(), done: Type.Boolean() });

/** For how many hours views as of an instant are kept. */
export const KEEP_HOURS = 7 * 24;

/** Body of `POST /replays`. */
export const ReplayBody = Type.Composite(
  [
    closed({
      name: ReplayName,
      until: Type.String({
        minLength: 1,
        maxLength: 64,
        description: 'an instant (ISO 8601), or a position of the log',
      }),
    }),
    Type.Partial(
      closed({
        rate: Type.Number({ exclusiveMinimum: 0 }),
        keep_hours: Type.Integer({ minimum: 1, maximum: 720, default: KEEP_HOURS }),
      }),
    ),
  ],
  { title: 'RequestReplay', additionalProperties: false },
);
export type ReplayBody = Static<typeof ReplayBody>;
