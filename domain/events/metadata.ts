import { Type, type Static } from '@sinclair/typebox';
import { namespaceOf } from '../namespaces/namespace.ts';

/** The metadata of an event: strings. All semantics use `occurredAt`, as the store's own time changes on import. */
export const MetadataSchema = Type.Object({
  /** The command that caused the event. */
  commandId: Type.String(),
  /** Shared by everything that follows from one external cause. */
  $correlationId: Type.String(),
  /** The event or command that directly caused it. */
  $causationId: Type.Optional(Type.String()),
  /** The agent's id, or `service`. */
  actor: Type.String(),
  /** Where the command came from: an address, or the part of the service. */
  source: Type.String(),
  /** Given by the actor. */
  reason: Type.Optional(Type.String()),
  /** Version of the event type's schema. */
  schemaVersion: Type.String(),
  /** W3C trace context. */
  traceparent: Type.Optional(Type.String()),
  /** How many runs led here, each causing the next; left out for none. Read it by {@link depthOf}. */
  depth: Type.Optional(Type.String({ pattern: '^[1-9][0-9]*$' })),
  /**
   * Of what the command changed; where that has none yet, of the actor. Left out in `default`, and in
   * some of the service's own events: the stream's first event has it. Read it by {@link namespaceOfEvent}.
   */
  namespace: Type.Optional(Type.String()),
  /** Version of the tz database by which fires were decided, for a schedule in a time zone. */
  tzVersion: Type.Optional(Type.String()),
  /** ISO 8601, UTC, milliseconds. */
  occurredAt: Type.String(),
});

export type Metadata = Readonly<Static<typeof MetadataSchema>>;

/** How many runs led to an event, each causing the next; 0 for one that a person, a schedule or a publisher caused. */
export function depthOf({ depth }: Pick<Metadata, 'depth'>): number {
  return depth === undefined ? 0 : Number(depth);
}

/** The namespace that an event belongs to, as far as it says itself. */
export function namespaceOfEvent(event: {
  readonly data: unknown;
  readonly metadata: Pick<Metadata, 'namespace'>;
}): string {
  const { namespace = event.metadata.namespace } = event.data as { readonly namespace?: string };
  return namespaceOf({ namespace });
}
