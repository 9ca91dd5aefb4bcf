import type { RecordedEvent } from '../../../domain/event-store.ts';
import type { EventType } from '../../../domain/events/catalogue.ts';

/** What stands for a value that nobody is shown. */
export const HIDDEN = '***';

/**
 * Fields of events that are shown to nobody. No secret stands in an event; the hash of one does, and who has it may
 * try secrets against it for as long as they like.
 */
export const hiddenFields: Partial<Record<EventType, readonly string[]>> = {
  AgentCredentialsSet: ['secret_hash'],
};

/** An event of the log as an auditor sees it: whole, but for what is hidden. */
export function showEvent(event: RecordedEvent): object {
  const { stream, revision, position, id, type, data, metadata, createdAt } = event;
  const hidden = hiddenFields[type] ?? [];
  const shown = hidden.length === 0 ? data : { ...data, ...hide(hidden) };
  return {
    stream,
    revision,
    position,
    event_id: id,
    type,
    data: shown,
    metadata,
    created_at: createdAt,
  };
}

const hide = (fields: readonly string[]): Record<string, string> =>
  Object.fromEntries(fields.map((field) => [field, HIDDEN]));
