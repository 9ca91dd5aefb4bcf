import { toIso, type Instant } from '../../domain/clock.ts';
import type { JsonObject } from '../../domain/json.ts';
import type { HeldScope } from '../fairness/fair-queue.ts';
import type { QueuedRun } from './queued-run.ts';
import { increase } from './unfinished-runs.ts';

/** How many tasks are listed as holders of slots. Those with the most runs come first. */
const MAX_HOLDERS = 5;

/** The most reached limits that are listed. */
const MAX_REACHED = 100;

/** A task whose runs hold slots. */
export type SlotHolder = JsonObject & {
  readonly task_id: string;
  /** The agent's id. */
  readonly created_by: string;
  readonly runs: number;
  /** When the earliest run took its slot, ISO 8601. */
  readonly since: string;
  /** The earliest run. */
  readonly run_id: string;
};

/** The most slots of one process that each agent and each namespace may hold, 1 or more. */
export interface SlotLimits {
  readonly perAgent: number;
  readonly perNamespace: number;
}

/** An agent or a namespace that has reached its limit of slots in a process. */
export type LimitReached = JsonObject & {
  readonly scope: HeldScope;
  /** The agent's id, or the namespace. */
  readonly id: string;
  readonly taken: number;
  readonly limit: number;
};

/** The usage of a worker's slots, part of its heartbeat. */
export type SlotUse = JsonObject & {
  readonly slots: number;
  readonly taken: number;
  /** The time since which runs have been waiting because no slot is free, ISO 8601; null if none are. */
  readonly full_since: string | null;
  /** Empty while `full_since` is null. */
  readonly holders: readonly SlotHolder[];
  /** Slots held by direct tool calls; omitted if none. */
  readonly calls?: number;
  /** Namespaces and agents that have reached their limit; omitted if there are none. */
  readonly limits_reached?: readonly LimitReached[];
};

/** The slots of a worker, for runs that are not instant. */
export class Slots {
  readonly size: number;
  readonly #held = new Map<string, { readonly run: QueuedRun; readonly at: Instant }>();
  readonly #byAgent = new Map<string, number>();
  readonly #byNamespace = new Map<string, number>();
  readonly #calls: () => number;
  readonly #limits: SlotLimits;
  #fullSince: Instant | null = null;

  /**
   * @param calls slots held by direct tool calls
   * @param limits Default: only the size limits
   */
  constructor(size: number, calls: () => number = () => 0, limits?: SlotLimits) {
    this.size = size;
    this.#calls = calls;
    this.#limits = limits ?? { perAgent: size, perNamespace: size };
  }

  /** Slots that runs hold now. */
  get taken(): number {
    return this.#held.size;
  }

  get isFree(): boolean {
    return this.#held.size + this.#calls() < this.size;
  }

  /** The limit that prevents a run from taking a free slot; null if there is none. */
  limitReached({ createdBy, namespace }: QueuedRun): HeldScope | null {
    const { perAgent, perNamespace } = this.#limits;
    if ((this.#byAgent.get(createdBy) ?? 0) >= perAgent) return 'agent';
    return (this.#byNamespace.get(namespace) ?? 0) >= perNamespace ? 'namespace' : null;
  }

  take(run: QueuedRun, at: Instant): void {
    this.#held.set(run.id, { run, at });
    increase(this.#byAgent, run.createdBy, 1);
    increase(this.#byNamespace, run.namespace, 1);
  }

  release(run: QueuedRun): void {
    if (!this.#held.delete(run.id)) return;
    increase(this.#byAgent, run.createdBy, -1);
    increase(this.#byNamespace, run.namespace, -1);
  }

  /** Records a pass over the queue. @param short whether a run had to wait because no slot was free */
  recordPass(short: boolean, now: Instant): void {
    this.#fullSince = short ? (this.#fullSince ?? now) : null;
  }

  /** @param waiting runs in the queue now; other workers may have taken some since the last pass */
  fullSince(waiting: number): Instant | null {
    return waiting > 0 && !this.isFree ? this.#fullSince : null;
  }

  use(waiting: number): SlotUse {
    const since = this.fullSince(waiting);
    const calls = this.#calls();
    const reached = this.#reached();
    return {
      slots: this.size,
      taken: this.taken + calls,
      ...(calls === 0 ? {} : { calls }),
      ...(reached.length === 0 ? {} : { limits_reached: reached }),
      full_since: since === null ? null : toIso(since),
      holders: since === null ? [] : this.#holders(),
    };
  }

  #reached(): readonly LimitReached[] {
    const { perAgent, perNamespace } = this.#limits;
    const reachedOf = (scope: HeldScope, held: ReadonlyMap<string, number>, limit: number) =>
      [...held]
        .filter(([, taken]) => taken >= limit && limit < this.size)
        .map(([id, taken]) => ({ scope, id, taken, limit }));
    return [
      ...reachedOf('namespace', this.#byNamespace, perNamespace),
      ...reachedOf('agent', this.#byAgent, perAgent),
    ].slice(0, MAX_REACHED);
  }

  #holders(): readonly SlotHolder[] {
    const holders = new Map<string, SlotHolder>();
    // In insertion order: the first run of each task is the earliest.
    for (const { run, at } of this.#held.values()) {
      const { taskId: task_id, createdBy: created_by } = run;
      const first = { task_id, created_by, runs: 0, since: toIso(at), run_id: run.id };
      const known = holders.get(task_id) ?? first;
      holders.set(task_id, { ...known, runs: known.runs + 1 });
    }
    return largestFirst([...holders.values()]);
  }
}

/** A shortage of slots across all workers. */
export interface SlotShortage {
  /** The time since which runs have been waiting because no worker has a free slot. */
  readonly since: Instant;
  /** The number of slots of all workers. */
  readonly slots: number;
  readonly holders: readonly SlotHolder[];
  /** Slots held by direct tool calls. */
  readonly calls: number;
}

/**
 * Combines the heartbeats of all workers.
 * @param uses of each live worker; null for an older release, which does not report its slots
 * @returns null while a worker has, or may have, a free slot
 */
export function slotShortage(uses: readonly (SlotUse | null)[]): SlotShortage | null {
  const full = uses.filter((use) => use !== null && use.full_since !== null);
  if (full.length === 0 || full.length < uses.length) return null;
  const known = full as readonly (SlotUse & { readonly full_since: string })[];
  const byTask = new Map<string, SlotHolder>();
  for (const holder of known.flatMap(({ holders }) => holders)) {
    const other = byTask.get(holder.task_id);
    const [first, second] =
      other === undefined || holder.since < other.since ? [holder, other] : [other, holder];
    byTask.set(holder.task_id, { ...first, runs: first.runs + (second?.runs ?? 0) });
  }
  return {
    since: Math.max(...known.map(({ full_since }) => Date.parse(full_since))),
    slots: known.reduce((sum, { slots }) => sum + slots, 0),
    holders: largestFirst([...byTask.values()]),
    calls: known.reduce((sum, { calls = 0 }) => sum + calls, 0),
  };
}

/** The slot usage in a heartbeat, if it has one. */
export function slotUseIn(about: JsonObject): SlotUse | null {
  const use = about['slots'];
  return typeof use === 'object' && use !== null && 'full_since' in use ? (use as SlotUse) : null;
}

function largestFirst(holders: readonly SlotHolder[]): readonly SlotHolder[] {
  return holders
    .toSorted((one, other) => other.runs - one.runs || one.since.localeCompare(other.since))
    .slice(0, MAX_HOLDERS);
}
