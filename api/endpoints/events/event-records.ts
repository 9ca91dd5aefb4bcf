import type { RecordedEvent } from '../../../domain/event-store.ts';
import type { EventType } from '../../../domain/events/catalogue.ts';

/** Replaces a hidden value. */
export const HIDDEN = '***';

/**
 * Fields of events that are never shown: encrypted secrets, and hashes, from which a secret could be guessed offline.
 */
export const hiddenFields: Partial<Record<EventType, readonly string[]>> = {
  AgentCredentialsSet: ['secret_hash'],
  ApiKeyCreated: ['key_hash'],
  SecretSet: ['sealed'],
  SecretResealed: ['data_key'],
};

/** An event as an auditor sees it: complete except for hidden fields. */
export function showEvent(event: RecordedEvent): object {
  const { stream, revision, position, id, type, data, metadata, createdAt } = event;
  const hidden = hiddenFields[type] ?? [];
  const masks = Object.fromEntries(hidden.map((field) => [field, HIDDEN]));
  const shown = hidden.length === 0 ? data : { ...data, ...masks };
  const place = { stream, revision, position };
  return { ...place, event_id: id, type, data: shown, metadata, created_at: createdAt };
}
