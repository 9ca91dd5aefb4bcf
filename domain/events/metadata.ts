import { Type, type Static } from '@sinclair/typebox';
import { namespaceOf } from '../namespaces/namespace.ts';

/**
 * The metadata of an event: strings. All semantics use `occurredAt`, because the store's own time changes on import.
 */
export const MetadataSchema = Type.Object({
  /** The command that caused the event. */
  commandId: Type.String(),
  /** Shared by all events that follow from one external cause. */
  $correlationId: Type.String(),
  /** The event or command that directly caused it. */
  $causationId: Type.Optional(Type.String()),
  /** The agent's id, or `service`. */
  actor: Type.String(),
  /** The origin of the command: an address, or a part of the service. */
  source: Type.String(),
  /** Given by the actor. */
  reason: Type.Optional(Type.String()),
  /** Version of the event type's schema. */
  schemaVersion: Type.String(),
  /** W3C trace context. */
  traceparent: Type.Optional(Type.String()),
  /**
   * The depth of the chain of runs, each causing the next, that led here; left out for 0. Read it by {@link depthOf}.
   */
  depth: Type.Optional(Type.String({ pattern: '^[1-9][0-9]*$' })),
  /**
   * The namespace of the changed record, or of the actor if the record has none yet. Left out in `default`, and in some
   * events of the service itself, if the stream's first event has it. Read it by {@link namespaceOfEvent}.
   */
  namespace: Type.Optional(Type.String()),
  /** Version of the tz database by which fires were decided, for a schedule in a time zone. */
  tzVersion: Type.Optional(Type.String()),
  /** ISO 8601, UTC, milliseconds. */
  occurredAt: Type.String(),
});

export type Metadata = Readonly<Static<typeof MetadataSchema>>;

/**
 * The depth of the chain of runs, each causing the next, that led to an event. 0 if a person, a schedule or a publisher
 * caused it.
 */
export function depthOf({ depth }: Pick<Metadata, 'depth'>): number {
  return depth === undefined ? 0 : Number(depth);
}

/** The namespace that an event belongs to, if the event itself says so. */
export function namespaceOfEvent(event: {
  readonly data: unknown;
  readonly metadata: Pick<Metadata, 'namespace'>;
}): string {
  const { namespace = event.metadata.namespace } = event.data as { readonly namespace?: string };
  return namespaceOf({ namespace });
}
