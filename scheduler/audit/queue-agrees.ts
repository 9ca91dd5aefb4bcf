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
import { ViewPages } from './view-pages.ts';

/** What differs is looked at again after this long: it may have been on its way. Milliseconds. */
const ON_ITS_WAY = 2000;

/** Most that one pass looks into. */
const MOST_SUSPECTS = 500;

/** Reads of streams, then a rest. Milliseconds. */
const READS_AT_ONCE = 10;
const REST = 10;

/** Entries in memory looked up in one go. */
const COMPARED_AT_ONCE = 2000;

/**
 * The queue of a worker, in memory, holds what the view and the log hold: every unfinished run, none that has ended, and
 * each as it stands now. Whoever follows a log goes on by what comes, and would not notice what did not.
 */
export class QueueAgrees implements AuditCheck {
  readonly name = 'queue_agrees';
  private readonly store: EventStore;
  private readonly queue: RunQueue;
  private readonly clock: Clock;
  private readonly pages: ViewPages<RunDocument>;
  /** Runs of the view since its beginning; what of the memory is not among them at the end is looked into. */
  private seen = new Set<string>();

  constructor(options: {
    readonly store: EventStore;
    readonly readModel: ReadModel;
    readonly queue: RunQueue;
    readonly clock: Clock;
  }) {
    const { store, readModel, queue, clock } = options;
    this.store = store;
    this.queue = queue;
    this.clock = clock;
    const value = ['queued', 'running', 'retrying'];
    const filters = [{ field: 'state', op: 'in', value }] as const;
    this.pages = new ViewPages({ readModel, clock, projection: runsProjection, filters });
  }

  async look(findings: Findings, signal: AbortSignal): Promise<void> {
    const suspects = new Map<string, RunDocument | null>();
    const ended = await this.pages.goOn(signal, (page) => {
      for (const { key, document } of page) {
        this.seen.add(key);
        if (suspects.size < MOST_SUSPECTS && this.differs(document)) suspects.set(key, document);
      }
    });
    if (ended) {
      const { seen } = this;
      this.seen = new Set();
      let compared = 0;
      for (const { id } of this.queue.all()) {
        if (suspects.size >= MOST_SUSPECTS) break;
        if (!seen.has(id)) suspects.set(id, null);
        compared += 1;
        if (compared % COMPARED_AT_ONCE === 0) await this.clock.sleep(REST, signal);
      }
    }
    if (suspects.size === 0) return;
    await this.clock.sleep(ON_ITS_WAY, signal);
    let reads = 0;
    for (const [id, document] of suspects) {
      if (signal.aborted) return;
      const known = this.queue.get(id);
      // Known by now, or over: what is behind the view is not behind any more, what the view lacked is gone.
      if (document === null ? known === undefined : !this.differs(document)) continue;
      await this.lookInto(id, document, findings);
      reads += 1;
      if (reads % READS_AT_ONCE === 0) await this.clock.sleep(REST, signal);
    }
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
