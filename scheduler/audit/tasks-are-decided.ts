import type { ScheduleState } from '../../domain/tasks/schedule-state.ts';
import type { DueEntry } from '../fires/due-index.ts';
import { isCorrupt, type AuditCheck, type AuditParts } from './audit.ts';
import type { Findings } from './findings.ts';
import { readScheduleState } from './read-schedule-state.ts';

/** A decision is late after this long. Milliseconds. */
const OVERDUE = 60_000;

const TASKS_BEFORE_REST = 2000;
const REST_MS = 5;

const MAX_LATE = 1000;

/**
 * No active task is due without a decision, unless its agent holds it back. A task that is late in two passes without a
 * change in between is inspected. Either the index has lost its place or missed an event, or the log prevents the
 * decision. Only people can repair the log.
 */
export class TasksAreDecided implements AuditCheck {
  readonly name = 'tasks_are_decided';
  readonly #parts: AuditParts;
  /** The tasks that were late in the last pass, with their schedule state at that time. */
  #late = new Map<string, ScheduleState>();

  constructor(parts: AuditParts) {
    this.#parts = parts;
  }

  async run(findings: Findings, signal: AbortSignal): Promise<void> {
    const { index, clock } = this.#parts;
    const before = this.#late;
    const late = (this.#late = new Map<string, ScheduleState>());
    let looked = 0;
    for (const entry of index.all()) {
      looked += 1;
      if (this.#isLate(entry) && late.size < MAX_LATE) late.set(entry.taskId, entry.state);
      if (looked % TASKS_BEFORE_REST === 0) await clock.sleep(REST_MS, signal);
    }
    for (const [taskId, schedule] of late) {
      if (signal.aborted) return;
      if (before.get(taskId) !== schedule) continue;
      const entry = index.get(taskId);
      // Decided or changed since.
      if (entry === undefined || entry.state !== schedule || !this.#isLate(entry)) continue;
      await this.#inspect(entry, findings);
    }
  }

  #isLate({ dueAt, held }: DueEntry): boolean {
    const { hold, clock } = this.#parts;
    if (held !== null) return false;
    return hold?.held !== true && dueAt !== null && clock.now() - dueAt > OVERDUE;
  }

  async #inspect(entry: DueEntry, findings: Findings): Promise<void> {
    const { store, index } = this.#parts;
    const { taskId, state } = entry;
    let known: ScheduleState | null;
    try {
      known = await readScheduleState(store, taskId, state);
    } catch (error) {
      if (!isCorrupt(error)) throw error;
      // The decision in that event is unknown. A decision without it would double or lose fires.
      const reason = 'an event of its streams does not match its schema';
      findings.add('task_stuck', taskId, false, { reason, error });
      return;
    }
    if (entry.state !== state) return;
    if (known !== state) {
      index.correct(taskId, known);
      findings.add('task_behind', taskId, true);
    } else if (entry.failures > 0 || entry.deciding) {
      const reason = entry.deciding ? 'its decision is still pending' : 'it cannot be decided';
      findings.add('task_stuck', taskId, false, { reason, failures: entry.failures });
    } else {
      index.correct(taskId, state);
      findings.add('task_overdue', taskId, true);
    }
  }
}
