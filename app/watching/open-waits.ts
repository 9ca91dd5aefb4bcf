import type { Clock } from '../../domain/clock.ts';
import { isOpen, type Wait } from '../../domain/runs/run-waits.ts';
import { waitKinds, type WaitKind } from '../../domain/vocabulary.ts';
import { hasLabels, type RegisteredWorker } from '../../domain/workers/worker.ts';
import type { JobLeases } from '../../scheduler/coordination.ts';
import { SILENT_LEASES } from '../../scheduler/jobs/jobs.ts';
import type { QueuedRun } from '../../scheduler/runs/queued-run.ts';

/** How long counts are reused, in milliseconds. Several gauges read them at once. */
const KEPT = 1000;

export interface OpenWaitsOptions {
  /** The unfinished runs; null while this process does not lead the waits. */
  readonly runs: () => Iterable<Pick<QueuedRun, 'waits'>> | null;
  readonly workers: () => Iterable<RegisteredWorker>;
  readonly leases: Pick<JobLeases, 'seen'>;
  readonly clock: Pick<Clock, 'now'>;
  readonly leaseSeconds: number;
}

/** The waits of all runs, and the workers that jobs can wait for. */
export interface WaitCounts {
  readonly open: Readonly<Record<WaitKind, number>>;
  /** Age of the oldest open wait, in seconds; 0 for none. */
  readonly oldest: Readonly<Record<WaitKind, number>>;
  /** Workers that have been heard of recently. */
  readonly workers: number;
  /** Open jobs that no such worker can get, by tool and labels. */
  readonly unserved: number;
}

/** Counts open waits for the metrics. */
export class OpenWaits {
  readonly #options: OpenWaitsOptions;
  #kept: { readonly at: number; readonly counts: Promise<WaitCounts | null> } | null = null;

  constructor(options: OpenWaitsOptions) {
    this.#options = options;
  }

  /** null while another process leads the waits. @throws CoordinationError */
  read(): Promise<WaitCounts | null> {
    const at = this.#options.clock.now();
    if (this.#kept !== null && Math.abs(at - this.#kept.at) < KEPT) return this.#kept.counts;
    const counts = this.#count(at);
    this.#kept = { at, counts };
    return counts;
  }

  async #count(now: number): Promise<WaitCounts | null> {
    const { runs, leases, leaseSeconds, workers } = this.#options;
    const seen = await leases.seen();
    const all = runs();
    if (all === null) return null;
    const silentAfter = SILENT_LEASES * leaseSeconds * 1000;
    const heard = [...workers()].filter(
      ({ id, state }) => state === 'active' && (seen.get(id) ?? Infinity) <= silentAfter,
    );
    const open = byKind();
    const oldest = byKind();
    let unserved = 0;
    for (const { waits } of all) {
      for (const wait of waits) {
        if (!isOpen(wait)) continue;
        const { kind } = wait.waits_for;
        open[kind] += 1;
        oldest[kind] = Math.max(oldest[kind], (now - Date.parse(wait.since)) / 1000);
        if (!isServed(wait, heard)) unserved += 1;
      }
    }
    return { open, oldest, workers: heard.length, unserved };
  }
}

const byKind = (): Record<WaitKind, number> =>
  Object.fromEntries(waitKinds.map((kind) => [kind, 0])) as Record<WaitKind, number>;

function isServed({ waits_for }: Wait, workers: readonly RegisteredWorker[]): boolean {
  if (waits_for.kind !== 'job') return true;
  const { tool, labels } = waits_for;
  return workers.some(
    (worker) => worker.tools.some(({ name }) => name === tool) && hasLabels(worker.labels, labels),
  );
}
