import { fromIso, type Instant } from '../../domain/clock.ts';
import type { RecordedEvent } from '../../domain/event-store.ts';
import type { DataOf, DomainEvent } from '../../domain/events/catalogue.ts';
import type { Fold } from '../../domain/handle.ts';
import { idempotencyFold } from '../../domain/idempotency.ts';
import { hasEnded, runFold } from '../../domain/runs/run.ts';
import { sessionFold } from '../../domain/agents/session.ts';
import type { RetainedKind } from '../../domain/vocabulary.ts';
import { webhookFold } from '../../domain/webhooks/webhook.ts';

/** What is to be known of a kind of records, to take it out of the log. */
export interface RetentionRule {
  /** Of their streams. */
  readonly prefix: string;
  /**
   * What is left in the stream of a record whose id comes again, so that nobody takes it for one that never was; null
   * where ids are random, or the stream may begin anew. @param events all that is in the stream
   */
  readonly left: ((events: readonly RecordedEvent[]) => DomainEvent) | null;
  /**
   * From when on nothing can become of it any more, if nothing happens to it: of what its events have ended, ever since;
   * of what expires by itself, from then on. Null for what goes on.
   */
  readonly overFrom: (events: readonly RecordedEvent[]) => Instant | null;
}

/** Of what its own events have ended. */
const ENDED: Instant = Number.NEGATIVE_INFINITY;

/** Each kind by its name. */
export const retentionRules: { readonly [K in RetainedKind]: RetentionRule } = {
  runs: {
    prefix: 'run-',
    left: (events) => ({ type: 'RunRemoved', data: startIn(events) }),
    overFrom: (events) => (hasEnded(folded(runFold, events)) ? ENDED : null),
  },
  deliveries: {
    prefix: 'webhook-',
    left: () => ({ type: 'WebhookRemoved', data: {} }),
    overFrom: (events) =>
      ['delivered', 'failed'].includes(folded(webhookFold, events).state) ? ENDED : null,
  },
  sessions: {
    prefix: 'session-',
    left: null,
    overFrom(events) {
      const session = folded(sessionFold, events);
      if (session.status === 'none') return null;
      return session.status === 'ended' ? ENDED : fromIso(session.expires_at);
    },
  },
  // Of a day that is over nothing is added to.
  refusals: { prefix: 'refusals-', left: null, overFrom: () => ENDED },
  requests: {
    prefix: 'idem-',
    left: null,
    overFrom(events) {
      const memory = folded(idempotencyFold, events);
      return memory.status === 'none' ? null : fromIso(memory.request.expires_at);
    },
  },
};

/** When a run began, and of which task: so much is known of it for ever. */
function startIn(events: readonly RecordedEvent[]): DataOf<'RunRemoved'> {
  const asked = events.find((event) => event.type === 'RunRequested');
  const first = events.find((event) => event.type === 'RunStarted');
  if (asked === undefined || first === undefined) return {};
  return { started: { task_id: asked.data.task_id, at: first.metadata.occurredAt } };
}

function folded<S, E extends DomainEvent>(fold: Fold<S, E>, events: readonly RecordedEvent[]): S {
  // A stream holds the events of its kind alone.
  return events.reduce<S>(
    (state, event) => fold.evolve(state, event as unknown as E, event),
    fold.initial,
  );
}
