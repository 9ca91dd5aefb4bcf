import { fromIso, toIso, type Instant } from '../clock.ts';
import { RefusalError } from '../errors.ts';
import type { DataOf, WebhookEvent } from '../events/catalogue.ts';
import type { Fold } from '../handle.ts';
import { namespaceOf } from '../namespaces/namespace.ts';
import { nameBasedId } from '../ids.ts';
import type { WebhookEnd, WebhookStateName } from '../vocabulary.ts';

/**
 * A delivery to an agent's webhook.
 *
 *   none ──WebhookScheduled──► pending ──WebhookDelivered──► delivered ──WebhookRepeated──► pending
 *                                 ├──WebhookFailed (retry_at)──► pending
 *                                 └──WebhookFailed (end)──► failed ──WebhookRepeated──► pending
 *   delivered, failed ──WebhookRemoved──► removed    (retention removed it)
 */
export type WebhookState =
  | { readonly state: 'none' }
  | { readonly state: 'removed' }
  | KnownWebhook;

export interface KnownWebhook {
  readonly state: WebhookStateName;
  readonly scheduled: DataOf<'WebhookScheduled'>;
  readonly since: Instant;
  /** Recorded attempts of the current round. */
  readonly attempts: number;
  /** When the next attempt is due, while the delivery is pending. */
  readonly dueAt: Instant;
}

/** For how long a delivery is tried after it was scheduled or repeated. Milliseconds. */
export const DELIVERY_LIFETIME = 86_400_000;

/** Pauses after the first, second … failed attempt. Seconds; the sum is a little less than a day. */
const PAUSES = [5, 30, 120, 600, 1_800, 3_600, 7_200, 14_400, 21_600, 28_800] as const;

/** Each pause is longer by up to this share, so that deliveries that failed together are spread. */
const JITTER = 0.1;

/** The id of the delivery of an event to an agent: handling the event twice schedules one delivery. */
export function webhookDeliveryId(eventId: string, agentId: string): string {
  return nameBasedId('webhook', eventId, agentId);
}

export const webhookFold: Fold<WebhookState, WebhookEvent> = {
  initial: { state: 'none' },
  namespaceOf: (state) => ('scheduled' in state ? namespaceOf(state.scheduled) : undefined),
  evolve(state, event, at) {
    const now = fromIso(at.metadata.occurredAt);
    const fresh = { state: 'pending', since: now, attempts: 0, dueAt: now } as const;
    if (event.type === 'WebhookScheduled') return { ...fresh, scheduled: event.data };
    if (event.type === 'WebhookRemoved') return { state: 'removed' };
    if (state.state === 'none' || state.state === 'removed') return state;
    switch (event.type) {
      case 'WebhookRepeated':
        return { ...fresh, scheduled: state.scheduled };
      case 'WebhookDelivered':
        return { ...state, state: 'delivered', attempts: event.data.attempt };
      case 'WebhookFailed': {
        const { attempt: attempts, retry_at } = event.data;
        return retry_at === null
          ? { ...state, state: 'failed', attempts }
          : { ...state, attempts, dueAt: fromIso(retry_at) };
      }
    }
  },
};

/** Schedules a delivery, unless it was scheduled before. */
export function scheduleWebhook(
  state: WebhookState,
  scheduled: DataOf<'WebhookScheduled'>,
): readonly WebhookEvent[] {
  return state.state === 'none' ? [{ type: 'WebhookScheduled', data: scheduled }] : [];
}

/** Repeats a delivery. @throws RefusalError `STATE_CONFLICT` for one in progress */
export function repeatWebhook(state: KnownWebhook): readonly WebhookEvent[] {
  if (state.state === 'pending') {
    throw new RefusalError('STATE_CONFLICT', 'this delivery is in progress', {
      state: state.state,
    });
  }
  return [{ type: 'WebhookRepeated', data: {} }];
}

export interface AttemptResult {
  /** null: the agent no longer has a webhook, and nothing was sent. */
  readonly url: string | null;
  readonly secretVersion: number;
  /** null: no response. */
  readonly status: number | null;
  readonly answer: string | null;
  /** The error if there was no response. */
  readonly error: string | null;
  /** Milliseconds. */
  readonly took: number;
  /** Milliseconds from `Retry-After`; undefined: the receiver gave none. */
  readonly retryAfter: number | undefined;
  /** Why no retry can help. */
  readonly end: Extract<WebhookEnd, 'no_url' | 'refused'> | null;
}

/**
 * Records an attempt. Any response except 2xx is a failure, redirects included. Failures are retried for a day, because
 * a receiver's 4xx mostly comes from a fault that will be fixed. Only 410 is final.
 * @param id the id of the delivery, on which the jitter depends
 */
export function recordAttempt(
  id: string,
  { since, attempts }: KnownWebhook,
  answer: AttemptResult,
  now: Instant,
): readonly WebhookEvent[] {
  const { url, status, secretVersion: secret_version, took: took_ms } = answer;
  const attempt = attempts + 1;
  const shared = { attempt, secret_version, took_ms };
  if (url !== null && status !== null && status >= 200 && status < 300) {
    const data = { ...shared, url, status, answer: answer.answer ?? '' };
    return [{ type: 'WebhookDelivered', data }];
  }
  const retryAt = now + Math.max(pauseAfter(id, attempt), answer.retryAfter ?? 0);
  const late = retryAt > since + DELIVERY_LIFETIME ? 'expired' : null;
  const end = answer.end ?? (status === 410 ? 'gone' : late);
  const failed: DataOf<'WebhookFailed'> = {
    ...shared,
    url,
    status,
    error: answer.error ?? `the receiver answered ${String(status)}`,
    answer: answer.answer,
    retry_at: end === null ? toIso(retryAt) : null,
    end,
  };
  return [{ type: 'WebhookFailed', data: failed }];
}

/** Milliseconds. After the last pause, the delivery expires. */
function pauseAfter(id: string, attempt: number): number {
  const seconds = PAUSES[Math.min(attempt, PAUSES.length) - 1] ?? 0;
  const random = Number.parseInt(nameBasedId(id, String(attempt)).slice(0, 8), 16) / 2 ** 32;
  return Math.round(seconds * 1000 * (1 + JITTER * random));
}
