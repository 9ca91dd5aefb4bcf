import { Type } from '@sinclair/typebox';
import { event, Id, Nullable, OneOf, Timestamp } from './schema-parts.ts';
import { replayEnds } from '../vocabulary.ts';

/** An order for a name; each has the next version. */
const order = {
  name: Type.String({ pattern: '^[a-z][a-z0-9_]{0,30}$' }),
  version: Type.Integer({ minimum: 1 }),
};

const count = Type.Integer({ minimum: 0 });

/** Events of `replays`: views as of an instant, ordered under a name. */
export const replayEvents = {
  ReplayRequested: event({
    ...order,
    /** The last position that is folded. */
    until: Id,
    /** The instant that it shows. */
    at: Timestamp,
    /** The views to build, in this order. */
    views: Type.Array(Type.String(), { minItems: 1 }),
    /** Maximum events a second; null: unlimited. */
    rate: Nullable(Type.Number({ exclusiveMinimum: 0 })),
    /** When it expires. */
    kept_until: Timestamp,
  }),
  /** All its views can be read. */
  ReplayReady: event({ ...order, documents: Type.Record(Type.String(), count) }),
  /** An event could not be folded. */
  ReplayFailed: event({ ...order, error: Type.String() }),
  /** The replay is no longer read, and is to be deleted. */
  ReplayDropRequested: event(order),
  /** The replay is deleted, and the name is free. */
  ReplayDropped: event({ ...order, cause: OneOf(replayEnds) }),
} as const;
