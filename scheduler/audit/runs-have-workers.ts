import type { Instant } from '../../domain/clock.ts';
import { runsProjection, type RunDocument } from '../../projections/views/runs.ts';
import { freeRun, type AbandonedRun } from '../runs/take-over.ts';
import type { AuditCheck, AuditParts } from './audit.ts';
import type { Findings } from './findings.ts';
import { ViewCursor } from './view-cursor.ts';

/** How long other workers have to free the runs of a worker that is gone. Milliseconds. */
const TAKE_OVER_GRACE = 60_000;

/**
 * Each running run has a worker that is alive. Workers take over each other's runs. This check finds runs that no
 * worker's queue contains, and runs that wait although there is no worker at all.
 */
export class RunsHaveWorkers implements AuditCheck {
  readonly name = 'runs_have_workers';
  readonly #parts: AuditParts;
  readonly #cursor: ViewCursor<RunDocument>;
  /** Runs of workers that are gone, as first seen. */
  readonly #orphans = new Map<string, AbandonedRun & { readonly seenAt: Instant }>();

  constructor(parts: AuditParts) {
    this.#parts = parts;
    const running = { field: 'state', op: 'eq', value: 'running' } as const;
    this.#cursor = new ViewCursor(parts, runsProjection, [running]);
  }

  async run(findings: Findings, signal: AbortSignal): Promise<void> {
    const { coordination, clock } = this.#parts;
    const alive = new Set((await coordination.alive()).map(({ id }) => id));
    for (const [id, { owner }] of this.#orphans) if (alive.has(owner)) this.#orphans.delete(id);
    await this.#cursor.advance(signal, (page) => {
      for (const { document } of page) {
        const { id, task_id: taskId, task_revision: taskRevision, revision } = document;
        const { lease_owner: owner } = document;
        if (owner === null || alive.has(owner)) continue;
        const known = this.#orphans.get(id);
        if (known?.owner === owner && known.revision === revision) continue;
        const seenAt = clock.now();
        this.#orphans.set(id, { id, taskId, taskRevision, owner, revision, seenAt });
      }
    });
    for (const run of [...this.#orphans.values()]) {
      if (signal.aborted) return;
      if (clock.now() - run.seenAt < TAKE_OVER_GRACE) continue;
      this.#orphans.delete(run.id);
      await this.#free(run, findings);
    }
  }

  async #free(run: AbandonedRun, findings: Findings): Promise<void> {
    const { owner: worker } = run;
    try {
      const freed = await freeRun(this.#parts, run);
      // Null: the run has moved on in the meantime.
      if (freed !== null) findings.add('run_of_gone_worker', run.id, true, { worker });
    } catch (error) {
      findings.add('run_of_gone_worker', run.id, false, { worker, error });
    }
  }
}
