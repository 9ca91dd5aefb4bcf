import type { Clock } from '../../domain/clock.ts';
import { EventStoreError, type EventStore } from '../../domain/event-store.ts';
import type { Rhythm } from '../../domain/tasks/rhythm.ts';
import type { DueEntry, DueIndex } from '../fires/due-index.ts';
import { neverHeld, type HoldView } from '../hold.ts';
import type { AuditCheck } from './audit.ts';
import type { Findings } from './findings.ts';
import { readRhythm } from './read-rhythm.ts';

/** A decision is late by now. Milliseconds. */
const OVERDUE = 60_000;

/** Tasks in memory looked at in one go. */
const AT_ONCE = 2000;

/** Milliseconds after that. */
const REST = 5;

/** Most tasks that are remembered as late, and most that one pass looks into. */
const MOST_LATE = 1000;

/**
 * No active task's time has passed without a decision. One that stands as late in two passes, with nothing written in
 * between, is looked into: its place in the index was lost, the index has missed what the log says, or the log
 * itself keeps it from being decided, which only people can mend.
 */
export class TasksAreDecided implements AuditCheck {
  readonly name = 'tasks_are_decided';
  private readonly store: EventStore;
  private readonly index: DueIndex;
  private readonly clock: Clock;
  private readonly hold: HoldView;
  /** Late in the last pass, with the rhythm as it was then. */
  private late = new Map<string, Rhythm>();

  constructor(options: {
    readonly store: EventStore;
    readonly index: DueIndex;
    readonly clock: Clock;
    /** While it is held, nothing is late. Default: never. */
    readonly hold?: HoldView;
  }) {
    this.store = options.store;
    this.index = options.index;
    this.clock = options.clock;
    this.hold = options.hold ?? neverHeld;
  }

  async look(findings: Findings, signal: AbortSignal): Promise<void> {
    const before = this.late;
    const late = (this.late = new Map<string, Rhythm>());
    let looked = 0;
    for (const entry of this.index.all()) {
      looked += 1;
      if (this.isLate(entry) && late.size < MOST_LATE) late.set(entry.taskId, entry.rhythm);
      if (looked % AT_ONCE === 0) await this.clock.sleep(REST, signal);
    }
    for (const [taskId, rhythm] of late) {
      if (signal.aborted) return;
      if (before.get(taskId) !== rhythm) continue;
      const entry = this.index.get(taskId);
      // Decided since, or changed: the log goes on.
      if (entry === undefined || entry.rhythm !== rhythm || !this.isLate(entry)) continue;
      await this.lookInto(entry, findings);
    }
  }

  private isLate({ dueAt }: DueEntry): boolean {
    return !this.hold.held && dueAt !== null && this.clock.now() - dueAt > OVERDUE;
  }

  private async lookInto(entry: DueEntry, findings: Findings): Promise<void> {
    const { taskId, rhythm } = entry;
    let known: Rhythm | null;
    try {
      known = await readRhythm(this.store, taskId, rhythm);
    } catch (error) {
      if (!(error instanceof EventStoreError && error.code === 'CORRUPT_EVENT')) throw error;
      // What that event decided can't be known: deciding by what is known would double or lose fires.
      const reason = 'an event of its streams does not fit its schema';
      findings.add('task_stuck', taskId, false, { reason, error });
      return;
    }
    if (entry.rhythm !== rhythm) return;
    if (known !== rhythm) {
      this.index.correct(taskId, known);
      findings.add('task_behind', taskId, true);
    } else if (entry.failures > 0 || entry.deciding) {
      const reason = entry.deciding ? 'its decision is not answered' : 'it can not be decided';
      findings.add('task_stuck', taskId, false, { reason, failures: entry.failures });
    } else {
      this.index.correct(taskId, rhythm);
      findings.add('task_overdue', taskId, true);
    }
  }
}
