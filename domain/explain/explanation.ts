import type { RecordedEvent } from '../event-store.ts';
import type { EventType } from '../events/catalogue.ts';

/**
 * What an explanation's `reason` can be, beside null: that it fired; why it did not (section 4 of the
 * decisions: spans of fires, and single runs); or that nothing was due. null: not decided yet.
 */
export const explainReasons = [
  'fired',
  'missed',
  'paused',
  'snoozed',
  'bounds',
  'overlap',
  'duplicate',
  'not_in_schedule',
] as const;
export type ExplainReason = (typeof explainReasons)[number];

/** Why a task did or did not fire at or about an instant: `GET /tasks/{id}/explain`. */
export interface Explanation {
  readonly task_id: string;
  /** The instant that was asked for. */
  readonly at: string;
  /** Whether a fire of about that instant was requested to run, whatever became of its run. */
  readonly fired: boolean;
  /** null where a fire was due, or will be, and nothing has decided it yet. */
  readonly reason: ExplainReason | null;
  /** The same in words, for a person. */
  readonly message: string;
  /** The run that the fire became; of a fire that was skipped as a single run, the record of that. */
  readonly run_id: string | null;
  /** Nominal time of the schedule's fire before that instant, whether or not it ran. */
  readonly previous_fire: string | null;
  /** Nominal time of the schedule's fire after that instant. */
  readonly next_fire: string | null;
  /** The events that the answer rests on, in the order of the log. */
  readonly evidence: readonly Evidence[];
}

/** An event of the log, by its place; what it says is to be read there. */
export interface Evidence {
  readonly stream: string;
  readonly revision: number;
  readonly position: string;
  readonly event_id: string;
  readonly type: EventType;
  /** When it happened. */
  readonly at: string;
  /** The agent's id, or `service`. */
  readonly actor: string;
  /** In the actor's words; null where none were given. */
  readonly reason: string | null;
}

/** What was found out, before it is put together with the fires around it. */
export interface Verdict {
  readonly fired: boolean;
  readonly reason: ExplainReason | null;
  readonly sentences: readonly string[];
  readonly runId: string | null;
  readonly evidence: readonly (RecordedEvent | null | undefined)[];
}

/** A recorded event of some of the types. */
export type RecordOf<T extends EventType> = Extract<RecordedEvent, { readonly type: T }>;

/** The events that something rests on, each once and in the order of the log. */
export function evidenceOf(
  events: readonly (RecordedEvent | null | undefined)[],
): readonly Evidence[] {
  const byPosition = new Map<string, Evidence>();
  for (const event of events) {
    if (event === null || event === undefined) continue;
    const { stream, revision, position, id, type, metadata } = event;
    const { occurredAt, actor, reason = null } = metadata;
    const place = { stream, revision, position, event_id: id, type };
    byPosition.set(position, { ...place, at: occurredAt, actor, reason });
  }
  return [...byPosition.values()].sort((a, b) => (a.position < b.position ? -1 : 1));
}
