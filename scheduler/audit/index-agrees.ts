import type { ScheduleState } from '../../domain/tasks/schedule-state.ts';
import { streams } from '../../domain/streams.ts';
import { dueProjection, type DueDocument } from '../../projections/views/due.ts';
import { isCorrupt, type AuditCheck, type AuditParts } from './audit.ts';
import type { Findings } from './findings.ts';
import { readScheduleState } from './read-schedule-state.ts';
import { ViewComparison, type ComparedMemory } from './view-comparison.ts';

/**
 * The due index in memory agrees with the view and the log: it contains every task that is not canceled, in its present
 * state.
 */
export class IndexAgrees implements AuditCheck, ComparedMemory<DueDocument> {
  readonly name = 'index_agrees';
  readonly #parts: AuditParts;
  readonly #comparison: ViewComparison<DueDocument>;

  constructor(parts: AuditParts) {
    this.#parts = parts;
    this.#comparison = new ViewComparison(parts, dueProjection, [], this);
  }

  run(findings: Findings, signal: AbortSignal): Promise<void> {
    return this.#comparison.run(findings, signal);
  }

  *keys(): Iterable<string> {
    for (const { taskId } of this.#parts.index.all()) yield taskId;
  }

  differs(taskId: string, { rhythm: schedule }: DueDocument): boolean {
    const known = this.#parts.index.get(taskId)?.state;
    return known === undefined || isBehind(known, schedule);
  }

  async inspect(taskId: string, document: DueDocument | null, findings: Findings): Promise<true> {
    try {
      if (document === null) await this.#inspectExtra(taskId, findings);
      else if (this.differs(taskId, document)) {
        await this.#inspectMissed(taskId, document.rhythm, findings);
      }
    } catch (error) {
      if (!isCorrupt(error)) throw error;
      const reason = 'an event of its streams does not match its schema';
      findings.add('task_stuck', taskId, false, { reason, error });
    }
    return true;
  }

  async #inspectMissed(taskId: string, inView: ScheduleState, findings: Findings): Promise<void> {
    const { store, index } = this.#parts;
    // The view may be behind the index, and the index has dropped a task that was canceled.
    const schedule = await readScheduleState(store, taskId, inView);
    if (schedule === null) return;
    const known = index.get(taskId);
    const isCanceled = schedule.status === 'canceled';
    if (known === undefined ? isCanceled : !isCanceled && !isBehind(known.state, schedule)) return;
    index.correct(taskId, schedule);
    const kind = known === undefined ? 'task_missing' : isCanceled ? 'task_left' : 'task_behind';
    findings.add(kind, taskId, true);
  }

  async #inspectExtra(taskId: string, findings: Findings): Promise<void> {
    const { store, index } = this.#parts;
    const last = { direction: 'backwards', limit: 1 } as const;
    const [event] = await store.readStream(streams.task(taskId), last);
    if (event?.type !== 'TaskCanceled' || index.get(taskId) === undefined) return;
    index.correct(taskId, null);
    findings.add('task_left', taskId, true);
  }
}

function isBehind(known: ScheduleState, other: ScheduleState): boolean {
  return (
    known.task_revision < other.task_revision ||
    (known.fires?.revision ?? -1) < (other.fires?.revision ?? -1)
  );
}
