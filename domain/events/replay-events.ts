import { Type } from '@sinclair/typebox';
import { Id, Nullable, OneOf, Timestamp, closed } from './schema-parts.ts';
import { replayEnds } from '../vocabulary.ts';

/** Which of the orders of a name; each order has the next number. */
const order = {
  name: Type.String({ pattern: '^[a-z][a-z0-9_]{0,30}$' }),
  version: Type.Integer({ minimum: 1 }),
};

const count = Type.Integer({ minimum: 0 });

/** Events of `replays`: views as of a moment that were ordered under a name, and what became of them. */
export const replayEvents = {
  ReplayRequested: {
    version: 1,
    schema: closed({
      ...order,
      /** The last position that is folded. */
      until: Id,
      /** The moment that it stands for. */
      at: Timestamp,
      /** The views that are made, in this order. */
      views: Type.Array(Type.String(), { minItems: 1 }),
      /** Events a second at most; null: as fast as it goes. */
      rate: Nullable(Type.Number({ exclusiveMinimum: 0 })),
      /** When it is thrown away by itself. */
      kept_until: Timestamp,
    }),
  },
  /** All of its views can be read. */
  ReplayReady: {
    version: 1,
    schema: closed({ ...order, documents: Type.Record(Type.String(), count) }),
  },
  /** It met an event that can't be folded. */
  ReplayFailed: { version: 1, schema: closed({ ...order, error: Type.String() }) },
  /** It is not read any more, and is to be thrown away. */
  ReplayDropRequested: { version: 1, schema: closed(order) },
  /** Nothing is left of it: the name is free. */
  ReplayDropped: { version: 1, schema: closed({ ...order, cause: OneOf(replayEnds) }) },
} as const;
