import type { Clock } from '../../domain/clock.ts';
import { EventStoreError, type EventStore } from '../../domain/event-store.ts';
import { load } from '../../domain/handle.ts';
import { hasEnded, runFold, type KnownRun } from '../../domain/runs/run.ts';
import { streams } from '../../domain/streams.ts';
import type { ReadModel } from '../../projections/read-model.ts';
import { runsProjection, type RunDocument } from '../../projections/views/runs.ts';
import type { RunQueue } from '../runs/run-queue.ts';
import type { AuditCheck } from './audit.ts';
import type { Findings } from './findings.ts';
import { MemoryAgrees } from './memory-agrees.ts';
import { ViewPages } from './view-pages.ts';

/**
 * The queue of a worker, in memory, holds what the view and the log hold: every unfinished run, none that has ended, and
 * each as it stands now. Whoever follows a log goes on by what comes, and would not notice what did not.
 */
export class QueueAgrees implements AuditCheck {
  readonly name = 'queue_agrees';
  private readonly store: EventStore;
  private readonly queue: RunQueue;
  private readonly memory: MemoryAgrees<RunDocument>;

  constructor(options: {
    readonly store: EventStore;
    readonly readModel: ReadModel;
    readonly queue: RunQueue;
    readonly clock: Clock;
  }) {
    const { store, readModel, queue, clock } = options;
    this.store = store;
    this.queue = queue;
    const value = ['queued', 'running', 'retrying'];
    const filters = [{ field: 'state', op: 'in', value }] as const;
    const pages = new ViewPages({ readModel, clock, projection: runsProjection, filters });
    this.memory = new MemoryAgrees(pages, clock);
  }

  async look(findings: Findings, signal: AbortSignal): Promise<void> {
    const { queue } = this;
    await this.memory.look(
      {
        *keys() {
          for (const { id } of queue.all()) yield id;
        },
        differs: (_id, document) => this.differs(document),
        lookInto: async (id, document) => {
          const known = queue.get(id);
          // Known by now, or over: what is behind the view is not behind any more, what the view lacked is gone.
          if (document === null ? known === undefined : !this.differs(document)) return false;
          await this.lookInto(id, document, findings);
          return true;
        },
      },
      signal,
    );
  }

  private differs({ id, revision }: RunDocument): boolean {
    const known = this.queue.get(id);
    // What a worker here is busy with goes on by what that worker writes.
    return known === undefined || (!known.taken && known.revision < revision);
  }

  private async lookInto(
    id: string,
    document: RunDocument | null,
    findings: Findings,
  ): Promise<void> {
    const run = await this.read(id);
    const known = this.queue.get(id);
    if (run === null || known?.taken === true) return;
    if (known === undefined) {
      if (document === null || hasEnded(run)) return;
      this.queue.restore(document);
      const restored = this.queue.get(id);
      if (restored !== undefined) this.queue.refresh(restored, run);
      findings.add('run_missing', id, restored !== undefined);
    } else if (run.revision > known.revision) {
      this.queue.refresh(known, run);
      this.queue.onReady();
      findings.add(hasEnded(run) ? 'run_left' : 'run_behind', id, true);
    }
  }

  private async read(id: string): Promise<KnownRun | null> {
    try {
      const { state } = await load(this.store, streams.run(id), runFold);
      return 'request' in state ? state : null;
    } catch (error) {
      // Its document is parked, and shown as such.
      if (error instanceof EventStoreError && error.code === 'CORRUPT_EVENT') return null;
      throw error;
    }
  }
}
