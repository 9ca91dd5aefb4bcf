import type { Party } from '../fairness/fair-queue.ts';
import type { QueuedRun } from './queued-run.ts';

/** Unfinished runs by id, counted by agent and by namespace. */
export class UnfinishedRuns {
  readonly #runs = new Map<string, QueuedRun>();
  readonly #byAgent = new Map<string, number>();
  readonly #byNamespace = new Map<string, number>();

  get size(): number {
    return this.#runs.size;
  }

  get(id: string): QueuedRun | undefined {
    return this.#runs.get(id);
  }

  has(id: string): boolean {
    return this.#runs.has(id);
  }

  values(): IterableIterator<QueuedRun> {
    return this.#runs.values();
  }

  /** Adds a run that is not known yet. */
  add(run: QueuedRun): void {
    this.#runs.set(run.id, run);
    increase(this.#byAgent, run.createdBy, 1);
    increase(this.#byNamespace, run.namespace, 1);
  }

  delete({ id }: Pick<QueuedRun, 'id'>): void {
    const run = this.#runs.get(id);
    if (run === undefined) return;
    this.#runs.delete(id);
    increase(this.#byAgent, run.createdBy, -1);
    increase(this.#byNamespace, run.namespace, -1);
  }

  /** How many runs an agent, and its namespace, have. */
  countOf({ agent, namespace }: Party): { readonly agent: number; readonly namespace: number } {
    return {
      agent: this.#byAgent.get(agent) ?? 0,
      namespace: this.#byNamespace.get(namespace) ?? 0,
    };
  }
}

/** Changes a count, and removes it at 0. */
export function increase(counts: Map<string, number>, key: string, by: number): void {
  const count = (counts.get(key) ?? 0) + by;
  if (count > 0) counts.set(key, count);
  else counts.delete(key);
}
