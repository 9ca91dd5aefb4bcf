import { artifactBytesAt } from '../../domain/artifacts/artifact-bytes.ts';
import { fromIso, type Instant } from '../../domain/clock.ts';
import type { EventStore, RecordedEvent } from '../../domain/event-store.ts';
import type { DataOf, DomainEvent } from '../../domain/events/catalogue.ts';
import type { Fold } from '../../domain/handle.ts';
import { idempotencyFold } from '../../domain/idempotency.ts';
import { MAX_REMOVED_WAITS } from '../../domain/events/run-events.ts';
import { hasEnded, runFold } from '../../domain/runs/run.ts';
import { isAnswerable } from '../../domain/runs/run-waits.ts';
import { sessionFold } from '../../domain/agents/session.ts';
import { isUnneeded } from '../../domain/topics/stored-payload.ts';
import type { RemovedKind } from '../../domain/vocabulary.ts';
import { webhookFold } from '../../domain/webhooks/webhook.ts';

/** How records of a kind are removed from the log. */
export interface RetentionRule {
  /** The prefix of their streams. */
  readonly prefix: string;
  /**
   * The event that stays in a stream whose id may come again, so that the stream is not taken for a new one. It is made
   * from all events of the stream. null if ids are random or the stream may start over.
   */
  readonly tombstone: ((events: readonly RecordedEvent[]) => DomainEvent) | null;
  /**
   * When the record ended, or when it will expire without further events. {@link ENDED}: earlier events ended it.
   * {@link LATER}: later events will. null while it is open.
   */
  readonly endsAt: (
    events: readonly RecordedEvent[],
    store: EventStore,
  ) => Instant | null | Promise<Instant | null>;
}

const ENDED: Instant = Number.NEGATIVE_INFINITY;
const LATER: Instant = Number.POSITIVE_INFINITY;

export const retentionRules: { readonly [K in RemovedKind]: RetentionRule } = {
  runs: {
    prefix: 'run-',
    tombstone: (events) => ({
      type: 'RunRemoved',
      data: { ...startIn(events), ...answerableWaitsIn(events), ...artifactsIn(events) },
    }),
    endsAt: (events) => (hasEnded(folded(runFold, events)) ? ENDED : null),
  },
  deliveries: {
    prefix: 'webhook-',
    tombstone: () => ({ type: 'WebhookRemoved', data: {} }),
    endsAt: (events) =>
      ['delivered', 'failed'].includes(folded(webhookFold, events).state) ? ENDED : null,
  },
  sessions: {
    prefix: 'session-',
    tombstone: null,
    endsAt(events) {
      const session = folded(sessionFold, events);
      if (session.status === 'none') return null;
      return session.status === 'ended' ? ENDED : fromIso(session.expires_at);
    },
  },
  // No event is added to a day that has passed.
  refusals: { prefix: 'refusals-', tombstone: null, endsAt: () => ENDED },
  requests: {
    prefix: 'idem-',
    tombstone: null,
    endsAt(events) {
      const command = folded(idempotencyFold, events);
      return command.status === 'none' ? null : fromIso(command.request.expires_at);
    },
  },
  payloads: {
    prefix: 'payload-',
    tombstone: null,
    endsAt: async (events, store) => ((await isUnneeded(store, events)) ? ENDED : LATER),
  },
};

/** The start of a run, and its task. These are kept forever. */
function startIn(events: readonly RecordedEvent[]): Pick<DataOf<'RunRemoved'>, 'started'> {
  const requested = events.find((event) => event.type === 'RunRequested');
  const started = events.find((event) => event.type === 'RunStarted');
  if (requested === undefined || started === undefined) return {};
  return { started: { task_id: requested.data.task_id, at: started.metadata.occurredAt } };
}

/** The waits that have their own document. Those documents are removed with the run. */
function answerableWaitsIn(events: readonly RecordedEvent[]): Pick<DataOf<'RunRemoved'>, 'waits'> {
  const waits = new Set<string>();
  for (const event of events) {
    if (event.type !== 'RunStepSuspended' || !isAnswerable(event.data.waits_for)) continue;
    waits.add(event.data.wait_id);
  }
  // If there are more, the other documents stay. No call can find its run through them.
  return waits.size === 0 ? {} : { waits: [...waits].slice(0, MAX_REMOVED_WAITS) };
}

/** The number of bytes that the removal of a run frees for the quota of artifacts. */
function artifactsIn(
  events: readonly RecordedEvent[],
): Pick<DataOf<'RunRemoved'>, 'artifact_bytes'> {
  const artifact_bytes = events.reduce((sum, event) => sum + artifactBytesAt(event), 0);
  return artifact_bytes === 0 ? {} : { artifact_bytes };
}

function folded<S, E extends DomainEvent>(fold: Fold<S, E>, events: readonly RecordedEvent[]): S {
  return events.reduce<S>(
    (state, event) => fold.evolve(state, event as unknown as E, event),
    fold.initial,
  );
}
