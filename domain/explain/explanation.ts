import type { RecordedEvent } from '../event-store.ts';
import type { EventType } from '../events/catalogue.ts';

/**
 * The values of an explanation's `reason`, in addition to null (undecided): the task fired, why it did not, or that
 * nothing was due.
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
  /** The instant that was asked about. */
  readonly at: string;
  /** Whether the fire was decided to run, regardless of the result of its run. */
  readonly fired: boolean;
  /** null if a fire is undecided: due, or in the future. */
  readonly reason: ExplainReason | null;
  /** The explanation in words. */
  readonly message: string;
  /** The fire's run, even a skipped one. */
  readonly run_id: string | null;
  /** Nominal time of the fire before that instant, whether or not it ran. */
  readonly previous_fire: string | null;
  /** Nominal time of the fire after that instant. */
  readonly next_fire: string | null;
  /** The events behind the answer, in the order of the log. */
  readonly evidence: readonly Evidence[];
}

/** Identifies an event of the log. */
export interface Evidence {
  readonly stream: string;
  readonly revision: number;
  readonly position: string;
  readonly event_id: string;
  readonly type: EventType;
  /** When it occurred. */
  readonly at: string;
  /** The agent's id, or `service`. */
  readonly actor: string;
  /** Given by the actor; null for none. */
  readonly reason: string | null;
}

/** A part of an answer: sentences, and the events behind them. */
export interface Note {
  readonly sentences: readonly string[];
  readonly evidence: readonly (RecordedEvent | null | undefined)[];
}

/** An answer, before the neighbouring fires are added. */
export interface Verdict extends Note {
  readonly fired: boolean;
  readonly reason: ExplainReason | null;
  readonly runId: string | null;
}

/** The verdict on a fire that did not run and has no run. */
export function notRun(reason: ExplainReason | null, ...notes: readonly Note[]): Verdict {
  return { fired: false, runId: null, reason, ...joined(...notes) };
}

/** Joins notes in order. */
export function joined(...notes: readonly Note[]): Note {
  return {
    sentences: notes.flatMap(({ sentences }) => sentences),
    evidence: notes.flatMap(({ evidence }) => evidence),
  };
}

/** One sentence, and the events behind it. */
export function note(sentence: string, ...evidence: Note['evidence']): Note {
  return { sentences: [sentence], evidence };
}

export const NO_NOTE: Note = { sentences: [], evidence: [] };

/** A recorded event of some of the types. */
export type RecordOf<T extends EventType> = Extract<RecordedEvent, { readonly type: T }>;

/** The events, each once and in the order of the log. */
export function evidenceOf(events: Note['evidence']): readonly Evidence[] {
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
