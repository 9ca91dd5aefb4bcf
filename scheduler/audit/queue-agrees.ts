import type { EventStore } from '../../domain/event-store.ts';
import { load } from '../../domain/handle.ts';
import { hasEnded, runFold, type KnownRun } from '../../domain/runs/run.ts';
import { streams } from '../../domain/streams.ts';
import { unfinishedRunStates } from '../../domain/vocabulary.ts';
import { runsProjection, type RunDocument } from '../../projections/views/runs.ts';
import type { RunQueue } from '../runs/run-queue.ts';
import { isCorrupt, type AuditCheck, type AuditParts } from './audit.ts';
import type { Findings } from './findings.ts';
import { ViewComparison, type ComparedMemory } from './view-comparison.ts';

type Parts = Pick<AuditParts, 'store' | 'readModel' | 'clock'> & { readonly queue: RunQueue };

/**
 * A worker's queue in memory agrees with the view and the log: it contains every unfinished run in its present state.
 */
export class QueueAgrees implements AuditCheck, ComparedMemory<RunDocument> {
  readonly name = 'queue_agrees';
  readonly #parts: Parts;
  readonly #comparison: ViewComparison<RunDocument>;

  constructor(parts: Parts) {
    this.#parts = parts;
    const filters = [{ field: 'state', op: 'in', value: unfinishedRunStates }] as const;
    this.#comparison = new ViewComparison(parts, runsProjection, filters, this);
  }

  run(findings: Findings, signal: AbortSignal): Promise<void> {
    return this.#comparison.run(findings, signal);
  }

  *keys(): Iterable<string> {
    for (const { id } of this.#parts.queue.all()) yield id;
  }

  differs(id: string, { revision }: RunDocument): boolean {
    const known = this.#parts.queue.get(id);
    // A run that the local worker executes follows the events that this worker writes.
    return known === undefined || (!known.taken && known.revision < revision);
  }

  async inspect(id: string, document: RunDocument | null, findings: Findings): Promise<boolean> {
    const { store, queue } = this.#parts;
    // The difference may have settled in the meantime.
    if (document === null ? queue.get(id) === undefined : !this.differs(id, document)) return false;
    const run = await readRun(store, id);
    const known = queue.get(id);
    if (run === null || known?.taken === true) return true;
    if (known === undefined) {
      if (document === null || hasEnded(run)) return true;
      queue.restore(document);
      const restored = queue.get(id);
      if (restored !== undefined) queue.refresh(restored, run);
      findings.add('run_missing', id, restored !== undefined);
    } else if (run.revision > known.revision) {
      queue.refresh(known, run);
      queue.notifyReady();
      findings.add(hasEnded(run) ? 'run_left' : 'run_behind', id, true);
    }
    return true;
  }
}

async function readRun(store: EventStore, id: string): Promise<KnownRun | null> {
  try {
    const { state } = await load(store, streams.run(id), runFold);
    return 'request' in state ? state : null;
  } catch (error) {
    // The run's document is parked, and is reported as such.
    if (isCorrupt(error)) return null;
    throw error;
  }
}
