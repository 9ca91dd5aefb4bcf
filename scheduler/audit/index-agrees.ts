import type { Clock } from '../../domain/clock.ts';
import { EventStoreError, type EventStore } from '../../domain/event-store.ts';
import type { Rhythm } from '../../domain/tasks/rhythm.ts';
import { streams } from '../../domain/streams.ts';
import { dueProjection, type DueDocument } from '../../projections/views/due.ts';
import type { ReadModel } from '../../projections/read-model.ts';
import type { DueIndex } from '../fires/due-index.ts';
import type { AuditCheck } from './audit.ts';
import type { FindingKind, Findings } from './findings.ts';
import { MemoryAgrees } from './memory-agrees.ts';
import { readRhythm } from './read-rhythm.ts';
import { ViewPages } from './view-pages.ts';

/**
 * The index of what is due, in memory, holds what the view and the log hold: every task that is not canceled, none that
 * is, and each as it stands now. Whoever follows a log goes on by what comes, and would not notice what did not.
 */
export class IndexAgrees implements AuditCheck {
  readonly name = 'index_agrees';
  private readonly store: EventStore;
  private readonly index: DueIndex;
  private readonly memory: MemoryAgrees<DueDocument>;

  constructor(options: {
    readonly store: EventStore;
    readonly readModel: ReadModel;
    readonly index: DueIndex;
    readonly clock: Clock;
  }) {
    const { store, readModel, index, clock } = options;
    this.store = store;
    this.index = index;
    const pages = new ViewPages({ readModel, clock, projection: dueProjection, filters: [] });
    this.memory = new MemoryAgrees(pages, clock);
  }

  async look(findings: Findings, signal: AbortSignal): Promise<void> {
    const { index } = this;
    await this.memory.look(
      {
        *keys() {
          for (const { taskId } of index.all()) yield taskId;
        },
        differs: (taskId, { rhythm }) => this.differs(taskId, rhythm),
        lookInto: async (taskId, document) => {
          await this.lookInto(taskId, document?.rhythm ?? null, findings);
          return true;
        },
      },
      signal,
    );
  }

  private differs(taskId: string, rhythm: Rhythm): boolean {
    const known = this.index.get(taskId)?.rhythm;
    return known === undefined || isBehind(known, rhythm);
  }

  private async lookInto(taskId: string, inView: Rhythm | null, findings: Findings): Promise<void> {
    try {
      if (inView === null) await this.lookWhetherLeft(taskId, findings);
      else await this.lookWhetherMissed(taskId, inView, findings);
    } catch (error) {
      if (!(error instanceof EventStoreError && error.code === 'CORRUPT_EVENT')) throw error;
      const reason = 'an event of its streams does not fit its schema';
      findings.add('task_stuck', taskId, false, { reason, error });
    }
  }

  private async lookWhetherMissed(
    taskId: string,
    inView: Rhythm,
    findings: Findings,
  ): Promise<void> {
    if (!this.differs(taskId, inView)) return;
    // The view may be behind the index, which has dropped the task because it is canceled.
    const rhythm = await readRhythm(this.store, taskId, inView);
    if (rhythm === null) return;
    const known = this.index.get(taskId);
    const canceled = rhythm.status === 'canceled';
    if (known === undefined ? canceled : !canceled && !isBehind(known.rhythm, rhythm)) return;
    const kind: FindingKind =
      known === undefined ? 'task_missing' : canceled ? 'task_left' : 'task_behind';
    this.index.correct(taskId, rhythm);
    findings.add(kind, taskId, true);
  }

  private async lookWhetherLeft(taskId: string, findings: Findings): Promise<void> {
    const last = { direction: 'backwards', limit: 1 } as const;
    const [event] = await this.store.readStream(streams.task(taskId), last);
    const known = this.index.get(taskId)?.rhythm;
    if (event?.type !== 'TaskCanceled' || known === undefined) return;
    this.index.correct(taskId, null);
    findings.add('task_left', taskId, true);
  }
}

function isBehind(known: Rhythm, other: Rhythm): boolean {
  return (
    known.task_revision < other.task_revision ||
    (known.fires?.revision ?? -1) < (other.fires?.revision ?? -1)
  );
}
