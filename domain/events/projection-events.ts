import { Type } from '@sinclair/typebox';
import { parkedOrders, rebuildSwitches } from '../vocabulary.ts';
import { Nullable, OneOf, closed } from './schema-parts.ts';

const count = Type.Integer({ minimum: 0 });

/** Which generation of which shape of the view. Releases of different shapes share the stream. */
const generation = {
  schema: Type.Integer({ minimum: 1 }),
  version: Type.Integer({ minimum: 1 }),
};

/** How a generation in the making differs from the one that is read. */
export const ComparisonSchema = closed({
  /** Documents of the one that is read, and of the new one. */
  documents_before: count,
  documents_after: count,
  /** How many keys were looked at, in their order. */
  compared: count,
  /** How many of those differ. */
  different: count,
  /** Whether all keys were looked at. */
  complete: Type.Boolean(),
  /** The first keys that differ. */
  first: Type.Array(
    closed({
      key: Type.String(),
      difference: OneOf(['only_before', 'only_after', 'changed']),
      /** Top-level fields that differ; none where one has no document. */
      fields: Type.Array(Type.String()),
    }),
  ),
});

/** Events of `projection-<name>`: what operators ordered of a view, and what the projector made of it. */
export const projectionEvents = {
  ProjectionRebuildRequested: {
    version: 1,
    schema: closed({
      ...generation,
      /** Events a second at most; null: as fast as it goes. */
      rate: Nullable(Type.Number({ exclusiveMinimum: 0 })),
      switch: OneOf(rebuildSwitches),
    }),
  },
  ProjectionRebuildPaused: { version: 1, schema: closed(generation) },
  ProjectionRebuildResumed: { version: 1, schema: closed(generation) },
  ProjectionRebuildCanceled: { version: 1, schema: closed(generation) },
  /** It met an event that can't be folded. */
  ProjectionRebuildFailed: {
    version: 1,
    schema: closed({ ...generation, error: Type.String() }),
  },
  /** It is level with the generation that is read. */
  ProjectionRebuildReady: {
    version: 1,
    schema: closed({
      ...generation,
      /** null where there is none to compare with. */
      comparison: Nullable(ComparisonSchema),
    }),
  },
  /** Reads are to go to this generation. */
  ProjectionSwitchRequested: { version: 1, schema: closed(generation) },
  /** Reads go to this generation; the one before is fed for a while. */
  ProjectionSwitched: {
    version: 1,
    schema: closed({ ...generation, before: Nullable(generation.version) }),
  },
  /** What is to become of a key that is held back. */
  ParkedKeyOrdered: {
    version: 1,
    schema: closed({ ...generation, key: Type.String(), order: OneOf(parkedOrders) }),
  },
  /** The view in this older shape was thrown away, with its generations up to this version: nobody had fed it for long. */
  ProjectionShapeDiscarded: { version: 1, schema: closed(generation) },
  /**
   * The event that a key is held back for is left out of its document, by an order: now, and in every later generation
   * of whichever shape that can't fold it either.
   */
  ParkedEventSkipped: {
    version: 1,
    schema: closed({
      ...generation,
      key: Type.String(),
      stream: Type.String(),
      /** In its stream; null where that was not known. */
      revision: Nullable(count),
      position: Type.String(),
      event_type: Type.String(),
      /** Why it could not be folded. */
      error: Type.String(),
    }),
  },
  /** What became of it; `error` where it is held back still. */
  ParkedKeySettled: {
    version: 1,
    schema: closed({ ...generation, key: Type.String(), error: Nullable(Type.String()) }),
  },
} as const;
