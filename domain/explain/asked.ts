import type { Instant } from '../clock.ts';
import type { EventStore, RecordedEvent } from '../event-store.ts';
import type { Decisions } from './decisions.ts';
import type { Era, TaskHistory } from './task-history.ts';
import type { Words } from './words.ts';

/** What was asked, and what all answers to it need. */
export interface Asked {
  readonly store: EventStore;
  readonly taskId: string;
  readonly at: Instant;
  readonly now: Instant;
  readonly history: TaskHistory;
  /** The rule in force at the instant. */
  readonly era: Era;
  /** What is decided about the instant's second. */
  readonly decisions: Decisions;
  /** What operators ordered of the whole service, the newest first. */
  readonly orders: readonly RecordedEvent[];
  readonly words: Words;
}
