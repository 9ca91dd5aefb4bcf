import { fromIso, toIso, type Instant } from '../clock.ts';
import { Refusal } from '../errors.ts';
import type { DataOf, WebhookEvent } from '../events/catalogue.ts';
import type { EventPlace, Fold } from '../handle.ts';
import { nameBasedId } from '../ids.ts';
import type { WebhookEnd, WebhookStateName } from '../vocabulary.ts';

/**
 * A delivery to an agent's webhook.
 *
 *   none ──WebhookScheduled──► pending ──WebhookDelivered──► delivered ──WebhookRepeated──► pending
 *                                 ├──WebhookFailed (retry_at)──► pending
 *                                 └──WebhookFailed (end)──► failed ──WebhookRepeated──► pending
 *   delivered, failed ──WebhookRemoved──► removed    (its time in the log is over)
 */
export type WebhookState =
  { readonly state: 'none' } | { readonly state: 'removed' } | KnownWebhook;

export interface KnownWebhook {
  readonly state: WebhookStateName;
  readonly scheduled: DataOf<'WebhookScheduled'>;
  /** When the present round of attempts began. */
  readonly since: Instant;
  /** Attempts of the present round that are answered. */
  readonly attempts: number;
  /** Of a pending one: not before then. */
  readonly dueAt: Instant;
}

/** How long a delivery is tried, from its beginning or its repetition on. Milliseconds. */
export const WEBHOOK_LIFE = 86_400_000;

/** Pauses after the first, second … attempt that failed. Seconds; the sum is a little less than a day. */
const PAUSES = [5, 30, 120, 600, 1_800, 3_600, 7_200, 14_400, 21_600, 28_800] as const;

/** A pause is longer by up to this share of it: what failed together is not tried again together. */
const SPREAD = 0.1;

/** The id of the delivery of an event to an agent: who hears the event twice schedules the same one. */
export function webhookDeliveryId(eventId: string, agentId: string): string {
  return nameBasedId('webhook', eventId, agentId);
}

export const webhookFold: Fold<WebhookState, WebhookEvent> = {
  initial: { state: 'none' },
  evolve: evolveWebhook,
};

function evolveWebhook(state: WebhookState, event: WebhookEvent, at: EventPlace): WebhookState {
  const now = fromIso(at.metadata.occurredAt);
  const begun = { state: 'pending', since: now, attempts: 0, dueAt: now } as const;
  if (event.type === 'WebhookScheduled') return { ...begun, scheduled: event.data };
  if (event.type === 'WebhookRemoved') return { state: 'removed' };
  if (state.state === 'none' || state.state === 'removed') return state;
  switch (event.type) {
    case 'WebhookRepeated':
      return { ...begun, scheduled: state.scheduled };
    case 'WebhookDelivered':
      return { ...state, state: 'delivered', attempts: event.data.attempt };
    case 'WebhookFailed': {
      const { attempt: attempts, retry_at } = event.data;
      return retry_at === null
        ? { ...state, state: 'failed', attempts }
        : { ...state, attempts, dueAt: fromIso(retry_at) };
    }
  }
}

/** Begins a delivery; nothing where it was begun before. */
export function scheduleWebhook(
  state: WebhookState,
  scheduled: DataOf<'WebhookScheduled'>,
): readonly WebhookEvent[] {
  return state.state === 'none' ? [{ type: 'WebhookScheduled', data: scheduled }] : [];
}

/** @throws Refusal `STATE_CONFLICT` for one that is under way */
export function repeatWebhook(state: KnownWebhook): readonly WebhookEvent[] {
  if (state.state === 'pending') {
    throw new Refusal('STATE_CONFLICT', 'this delivery is under way', { state: state.state });
  }
  return [{ type: 'WebhookRepeated', data: {} }];
}

/** What came of one attempt. */
export interface WebhookAnswer {
  /** null: the agent has none any more, and nothing was sent. */
  readonly url: string | null;
  readonly secretVersion: number;
  /** null: there was no answer. */
  readonly status: number | null;
  /** The beginning of its body. */
  readonly answer: string | null;
  /** What went wrong where there was no answer. */
  readonly error: string | null;
  /** Milliseconds. */
  readonly took: number;
  /** Not again before so many milliseconds; undefined: the receiver said nothing. */
  readonly retryAfter: number | undefined;
  /** Trying again can't help. */
  readonly end: Extract<WebhookEnd, 'no_url' | 'refused'> | null;
}

/**
 * Writes down an attempt. Any answer but 2xx is a failure (a redirect too: it is not followed), and is tried again
 * within a day, for a receiver's 4xx mostly tells of a fault that somebody mends; only 410 says that nobody ever will.
 * @param id of the delivery, from which the spread of the pauses comes
 */
export function answerWebhook(
  id: string,
  { since, attempts }: KnownWebhook,
  answer: WebhookAnswer,
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
  const late = retryAt > since + WEBHOOK_LIFE ? 'expired' : null;
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

/** Milliseconds. After the last pause of the list it is that one again, which no day has room for. */
function pauseAfter(id: string, attempt: number): number {
  const seconds = PAUSES[Math.min(attempt, PAUSES.length) - 1] ?? 0;
  const chance = Number.parseInt(nameBasedId(id, String(attempt)).slice(0, 8), 16) / 2 ** 32;
  return Math.round(seconds * 1000 * (1 + SPREAD * chance));
}
