import type { Instant } from '../clock.ts';
import type { EventStore, RecordedEvent } from '../event-store.ts';
import type { Decisions } from './decisions.ts';
import type { Era, TaskHistory } from './task-history.ts';
import type { Words } from './words.ts';

/** The question, and the data that every answer needs. */
export interface ExplainContext {
  readonly store: EventStore;
  readonly taskId: string;
  readonly at: Instant;
  readonly now: Instant;
  readonly history: TaskHistory;
  /** The rule in force at the instant. */
  readonly era: Era;
  /** The decisions about the instant's second. */
  readonly decisions: Decisions;
  /** Orders for the whole service, the newest first. */
  readonly orders: readonly RecordedEvent[];
  /** The events that disabled and enabled the task's agent, newest first. */
  readonly disablings: readonly RecordedEvent[];
  readonly words: Words;
}
