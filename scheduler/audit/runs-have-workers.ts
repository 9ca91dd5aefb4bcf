import type { Clock, Instant } from '../../domain/clock.ts';
import type { EventStore } from '../../domain/event-store.ts';
import type { ReadModel } from '../../projections/read-model.ts';
import { runsProjection } from '../../projections/views/runs.ts';
import type { Coordination } from '../coordination.ts';
import type { PinnedTasks } from '../pinned-tasks.ts';
import { freeRun, type AbandonedRun } from '../runs/take-over.ts';
import type { AuditCheck } from './audit.ts';
import type { Findings } from './findings.ts';
import { ViewPages } from './view-pages.ts';

/** A worker that is gone for so long is not waited for any more; others should have freed its runs. Milliseconds. */
const PATIENCE = 60_000;

/**
 * Each running run has a worker that is alive. Workers free each other's runs; this finds those that no worker's queue
 * knows of, and those left where there is no worker at all.
 */
export class RunsHaveWorkers implements AuditCheck {
  readonly name = 'runs_have_workers';
  private readonly store: EventStore;
  private readonly coordination: Coordination;
  private readonly clock: Clock;
  private readonly tasks: PinnedTasks;
  private readonly source: string;
  private readonly pages: ViewPages<Parameters<typeof runsProjection.evolve>[0] & object>;
  /** Runs of workers that are gone, as they were seen first. */
  private readonly orphans = new Map<string, AbandonedRun & { readonly seenAt: Instant }>();

  constructor(options: {
    readonly store: EventStore;
    readonly readModel: ReadModel;
    readonly coordination: Coordination;
    readonly clock: Clock;
    readonly tasks: PinnedTasks;
    /** This process, as the source of what it appends. */
    readonly source: string;
  }) {
    this.store = options.store;
    this.coordination = options.coordination;
    this.clock = options.clock;
    this.tasks = options.tasks;
    this.source = options.source;
    const running = { field: 'state', op: 'eq', value: 'running' } as const;
    const { readModel, clock } = options;
    this.pages = new ViewPages({
      readModel,
      clock,
      projection: runsProjection,
      filters: [running],
    });
  }

  async look(findings: Findings, signal: AbortSignal): Promise<void> {
    const alive = new Set((await this.coordination.alive()).map(({ id }) => id));
    for (const [id, { owner }] of this.orphans) if (alive.has(owner)) this.orphans.delete(id);
    await this.pages.goOn(signal, (page) => {
      for (const { document } of page) {
        const { id, task_id: taskId, task_revision: taskRevision, lease_owner: owner } = document;
        if (owner === null || alive.has(owner)) continue;
        const known = this.orphans.get(id);
        if (known?.owner === owner && known.revision === document.revision) continue;
        const { revision } = document;
        const seenAt = this.clock.now();
        this.orphans.set(id, { id, taskId, taskRevision, owner, revision, seenAt });
      }
    });
    for (const run of [...this.orphans.values()]) {
      if (signal.aborted) return;
      if (this.clock.now() - run.seenAt < PATIENCE) continue;
      this.orphans.delete(run.id);
      await this.free(run, findings);
    }
  }

  private async free(run: AbandonedRun, findings: Findings): Promise<void> {
    const { store, tasks, clock, source } = this;
    try {
      const freed = await freeRun({ store, tasks, clock, source }, run);
      // Not: it has gone on meanwhile.
      if (freed !== null) findings.add('run_of_gone_worker', run.id, true, { worker: run.owner });
    } catch (error) {
      findings.add('run_of_gone_worker', run.id, false, { worker: run.owner, error });
    }
  }
}
