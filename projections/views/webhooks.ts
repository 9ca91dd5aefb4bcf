import { fromIso } from '../../domain/clock.ts';
import type { RecordedEvent } from '../../domain/event-store.ts';
import type { JsonObject, JsonValue } from '../../domain/json.ts';
import { idOf } from '../../domain/streams.ts';
import type { WebhookEnd, WebhookStateName, WebhookType } from '../../domain/vocabulary.ts';
import { within, type Reach } from '../reach.ts';
import type { Filter, Projection, Query } from '../read-model.ts';

export type WebhookAttemptDocument = JsonObject & {
  readonly at: string;
  readonly attempt: number;
  readonly url: string | null;
  readonly secret_version: number;
  readonly status: number | null;
  readonly error: string | null;
  /** The beginning of the response body. */
  readonly answer: string | null;
  readonly took_ms: number;
};

/** A delivery as the API shows it, with the fields that the sender needs at its start. */
export type WebhookDocument = JsonObject & {
  readonly id: string;
  /** Left out in `default`. */
  readonly namespace?: string;
  readonly agent_id: string;
  readonly type: WebhookType;
  readonly event_id: string | null;
  readonly task_id: string | null;
  readonly run_id: string | null;
  readonly payload: JsonObject;
  readonly state: WebhookStateName;
  /** Why a failed delivery is not retried. */
  readonly end: WebhookEnd | null;
  /** The attempts of all rounds, the latest last. Of many attempts, only the latest are shown. */
  readonly attempts: readonly WebhookAttemptDocument[];
  readonly repeats: number;
  /**
   * The latest attempt if it was not the first, because the receiver may have got the message twice. Left out
   * otherwise.
   */
  readonly resent_at?: string;
  readonly created_at: string;
  readonly updated_at: string;
  /** The earliest time of the next attempt of a pending delivery. */
  readonly next_attempt_at: string | null;
  readonly finished_at: string | null;
};

/** Attempts that are shown: more than two rounds. Earlier ones stay in the stream. */
const KEPT_ATTEMPTS = 25;

export const webhooksProjection: Projection<WebhookDocument> = {
  name: 'webhooks',
  schema: 2,
  // Schema 1 cannot be filtered by namespace or for resent deliveries.
  readsOlder: [1],
  addedFields: { namespace: 2, resent_at: 2 },
  streams: ['webhook-'],
  fields: {
    namespace: 'text',
    agent_id: 'text',
    created_at: 'text',
    state: 'text',
    type: 'text',
    resent_at: 'text',
  },
  indexes: [
    ['agent_id', 'created_at'],
    ['agent_id', 'state', 'created_at'],
    ['state'],
    ['resent_at'],
    ['namespace', 'resent_at'],
  ],
  sparse: ['namespace', 'resent_at'],
  keys: (event) => [idOf(event.stream)],
  evolve: evolveWebhookDocument,
};

/** The deliveries that are still to be sent. */
export const pendingWebhooks: readonly Filter[] = [{ field: 'state', op: 'eq', value: 'pending' }];

/** When a pending delivery is due. */
export function webhookDueAt({ next_attempt_at, created_at }: WebhookDocument): number {
  return fromIso(next_attempt_at ?? created_at);
}

/** An agent's deliveries, newest first. */
export function webhooksOf(
  agentId: string,
  wanted: { readonly state?: string | undefined; readonly type?: string | undefined } = {},
): Pick<Query, 'filters' | 'sort'> {
  const filters: Filter[] = [{ field: 'agent_id', op: 'eq', value: agentId }];
  for (const field of ['state', 'type'] as const) {
    const value = wanted[field];
    if (value !== undefined) filters.push({ field, op: 'eq', value });
  }
  return { filters, sort: [{ field: 'created_at', direction: 'descending' }] };
}

/** The deliveries that were sent more than once, latest first. */
export function resentWebhooks(reach: Reach): Pick<Query, 'filters' | 'sort'> {
  return {
    filters: [...within(reach), { field: 'resent_at', op: 'gt', value: '' }],
    sort: [{ field: 'resent_at', direction: 'descending' }],
  };
}

function evolveWebhookDocument(
  webhook: WebhookDocument | null,
  event: RecordedEvent,
  id: string,
): WebhookDocument | null {
  const at = event.metadata.occurredAt;
  const begun = { state: 'pending', end: null, next_attempt_at: at, finished_at: null } as const;
  if (event.type === 'WebhookScheduled') {
    const { agent_id, event_id, task_id, run_id, payload, namespace } = event.data;
    return {
      id,
      ...(namespace === undefined ? {} : { namespace }),
      agent_id,
      type: payload.type,
      event_id,
      task_id,
      run_id,
      // Validated when it was written: an object of JSON values.
      payload: payload as JsonObject,
      ...begun,
      attempts: [],
      repeats: 0,
      created_at: at,
      updated_at: at,
    };
  }
  if (webhook === null || event.type === 'WebhookRemoved') return null;
  const changed = { ...webhook, updated_at: at };
  const after = (attempt: Record<string, JsonValue>): readonly WebhookAttemptDocument[] =>
    [...webhook.attempts, { at, ...attempt } as WebhookAttemptDocument].slice(-KEPT_ATTEMPTS);
  const sent = webhook.attempts.length > 0 ? { ...changed, resent_at: at } : changed;
  switch (event.type) {
    case 'WebhookRepeated':
      return { ...changed, ...begun, repeats: webhook.repeats + 1 };
    case 'WebhookDelivered': {
      const attempts = after({ ...event.data, error: null });
      return { ...sent, state: 'delivered', attempts, next_attempt_at: null, finished_at: at };
    }
    case 'WebhookFailed': {
      const { retry_at, end, ...attempt } = event.data;
      const attempts = after(attempt);
      return retry_at === null
        ? { ...sent, state: 'failed', end, attempts, next_attempt_at: null, finished_at: at }
        : { ...sent, attempts, next_attempt_at: retry_at };
    }
    default:
      return webhook;
  }
}
