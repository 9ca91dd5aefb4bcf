import type { RecordedEvent } from '../event-store.ts';
import type { DataOf } from '../events/catalogue.ts';
import { namespaceOfEvent } from '../events/metadata.ts';
import { namespaceField } from '../namespaces/namespace.ts';
import { truncateString } from '../pipeline/json-size.ts';
import { wellFormed } from '../pipeline/well-formed.ts';
import { idOf } from '../streams.ts';

/** The message about an event, without its recipient. */
export type WebhookMessage = Omit<DataOf<'WebhookScheduled'>, 'agent_id'> & {
  readonly task_id: string;
};

/** Characters. */
const MAX_ERROR_LENGTH = 2000;

const notifiableTypes: ReadonlySet<string> = new Set(['RunSucceeded', 'RunFailed', 'TaskPaused']);

/** Whether webhooks may have to be notified of an event; cheap, as it is called for every event of a run. */
export function isNotifiable(event: RecordedEvent): boolean {
  return notifiableTypes.has(event.type);
}

/**
 * The message about an event; null if webhooks are not notified. Bodies stay small, as receivers expect: a run's
 * output is available at `GET /runs/{id}`.
 */
export function webhookMessageOf(event: RecordedEvent): WebhookMessage | null {
  const { id: event_id, metadata } = event;
  const timestamp = metadata.occurredAt;
  const id = idOf(event.stream);
  const place = namespaceField(namespaceOfEvent(event));
  switch (event.type) {
    case 'RunSucceeded': {
      const { task_id, started_at, attempt } = event.data;
      const data = { run_id: id, task_id, attempt, started_at, finished_at: timestamp };
      const payload = { type: 'run.succeeded', timestamp, data } as const;
      return { event_id, task_id, run_id: id, payload, ...place };
    }
    case 'RunFailed': {
      const { task_id, started_at, attempt, step } = event.data;
      const error = truncateString(wellFormed(event.data.error), MAX_ERROR_LENGTH);
      const run = { run_id: id, task_id, attempt, started_at, finished_at: timestamp };
      const payload = { type: 'run.failed', timestamp, data: { ...run, step, error } } as const;
      return { event_id, task_id, run_id: id, payload, ...place };
    }
    case 'TaskPaused': {
      if (!event.data.by_failures) return null;
      const data = { task_id: id, reason: metadata.reason ?? null, paused_at: timestamp };
      const payload = { type: 'task.paused', timestamp, data } as const;
      return { event_id, task_id: id, run_id: null, payload, ...place };
    }
    default:
      return null;
  }
}

/** The message with which an agent tests its webhook. */
export function testMessage(
  agentId: string,
  namespace: string,
  timestamp: string,
): DataOf<'WebhookScheduled'> {
  const data = { agent_id: agentId };
  const payload = { type: 'webhook.test', timestamp, data } as const;
  const about = { event_id: null, task_id: null, run_id: null };
  return { agent_id: agentId, ...about, payload, ...namespaceField(namespace) };
}
