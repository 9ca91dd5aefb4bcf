import { Type } from '@sinclair/typebox';
import { parkedOrders, rebuildSwitches } from '../vocabulary.ts';
import { closed, event, Nullable, OneOf } from './schema-parts.ts';

const count = Type.Integer({ minimum: 0 });

/** A generation of a view under one schema version. Releases with different schemas share the stream. */
const generation = {
  schema: Type.Integer({ minimum: 1 }),
  version: Type.Integer({ minimum: 1 }),
};

/** How a new generation differs from the live one. */
export const ComparisonSchema = closed({
  /** Documents of the live generation, and of the new one. */
  documents_before: count,
  documents_after: count,
  /** How many keys were compared, in their order. */
  compared: count,
  /** How many of the compared keys differ. */
  different: count,
  /** Whether all keys were compared. */
  complete: Type.Boolean(),
  /** The first keys that differ. */
  first: Type.Array(
    closed({
      key: Type.String(),
      difference: OneOf(['only_before', 'only_after', 'changed']),
      /** Top-level fields that differ; empty if one generation has no document. */
      fields: Type.Array(Type.String()),
    }),
  ),
});

/** Events of `projection-<name>`: orders for a view, and the projector's reports. */
export const projectionEvents = {
  ProjectionRebuildRequested: event({
    ...generation,
    /** Maximum events a second; null: unlimited. */
    rate: Nullable(Type.Number({ exclusiveMinimum: 0 })),
    switch: OneOf(rebuildSwitches),
  }),
  ProjectionRebuildPaused: event(generation),
  ProjectionRebuildResumed: event(generation),
  ProjectionRebuildCanceled: event(generation),
  /** An event could not be folded. */
  ProjectionRebuildFailed: event({ ...generation, error: Type.String() }),
  /** The new generation has caught up with the live one. */
  ProjectionRebuildReady: event({
    ...generation,
    /** Null if there is none to compare with. */
    comparison: Nullable(ComparisonSchema),
  }),
  /** Reads are to switch to this generation. */
  ProjectionSwitchRequested: event(generation),
  /** Reads go to this generation; the previous one is still fed for a while. */
  ProjectionSwitched: event({ ...generation, before: Nullable(generation.version) }),
  /** An order for a parked key. */
  ParkedKeyOrdered: event({ ...generation, key: Type.String(), order: OneOf(parkedOrders) }),
  /** The view of this older schema, long unused, was deleted with its generations up to this version. */
  ProjectionShapeDiscarded: event(generation),
  /**
   * By order, a parked key's event is left out of its document. That also holds in later generations that cannot fold
   * the event.
   */
  ParkedEventSkipped: event({
    ...generation,
    key: Type.String(),
    stream: Type.String(),
    /** The revision in its stream; null if unknown. */
    revision: Nullable(count),
    position: Type.String(),
    event_type: Type.String(),
    /** Why it could not be folded. */
    error: Type.String(),
  }),
  /** The result of an order; with `error` the key is still parked. */
  ParkedKeySettled: event({ ...generation, key: Type.String(), error: Nullable(Type.String()) }),
} as const;
