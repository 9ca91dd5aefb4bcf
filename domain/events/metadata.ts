import { Type, type Static } from '@sinclair/typebox';

/**
 * What stands beside every event's data; all text. `occurredAt` is the time that all semantics use, as
 * the store's own time changes on import.
 */
export const MetadataSchema = Type.Object({
  /** The command that caused the event. */
  commandId: Type.String(),
  /** Everything that follows from one outside cause has the same. */
  $correlationId: Type.String(),
  /** The event or command directly before. */
  $causationId: Type.Optional(Type.String()),
  /** The agent's id, or `service`. */
  actor: Type.String(),
  /** Where the command came from: an address, or the part of the service. */
  source: Type.String(),
  /** In the actor's words. */
  reason: Type.Optional(Type.String()),
  /** Version of the event type's schema. */
  schemaVersion: Type.String(),
  /** W3C trace context. */
  traceparent: Type.Optional(Type.String()),
  /** ISO 8601, UTC, milliseconds. */
  occurredAt: Type.String(),
});

export type Metadata = Readonly<Static<typeof MetadataSchema>>;
