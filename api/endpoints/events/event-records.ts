import type { RecordedEvent } from '../../../domain/event-store.ts';
import type { EventType } from '../../../domain/events/catalogue.ts';

/** Replaces a hidden value. */
export const HIDDEN = '***';

/** Fields of events that nobody sees: the hash of a secret would allow guessing it offline. */
export const hiddenFields: Partial<Record<EventType, readonly string[]>> = {
  AgentCredentialsSet: ['secret_hash'],
  ApiKeyCreated: ['key_hash'],
};

/** An event as an auditor sees it: complete, but for hidden fields. */
export function showEvent(event: RecordedEvent): object {
  const { stream, revision, position, id, type, data, metadata, createdAt } = event;
  const hidden = hiddenFields[type] ?? [];
  const masks = Object.fromEntries(hidden.map((field) => [field, HIDDEN]));
  const shown = hidden.length === 0 ? data : { ...data, ...masks };
  const place = { stream, revision, position };
  return { ...place, event_id: id, type, data: shown, metadata, created_at: createdAt };
}
