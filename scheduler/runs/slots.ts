import { toIso, type Instant } from '../../domain/clock.ts';
import type { JsonObject } from '../../domain/json.ts';
import { TransientMap } from '../../domain/transient-map.ts';
import type { QueuedRun } from './run-queue.ts';

/** Tasks that are named of those that hold slots, the ones with the most first. */
const MOST_HOLDERS = 5;

/** The runs of a task that hold slots. */
export type SlotHolder = JsonObject & {
  readonly task_id: string;
  /** The agent's id. */
  readonly created_by: string;
  readonly runs: number;
  /** When the earliest of them took its slot, ISO 8601. */
  readonly since: string;
  /** That earliest one. */
  readonly run_id: string;
};

/** How a worker's slots are used; part of its heartbeat. */
export type SlotUse = JsonObject & {
  readonly slots: number;
  readonly taken: number;
  /** Since when a run has always been waiting while no slot was free, ISO 8601; null while that is not so. */
  readonly full_since: string | null;
  /** Empty while `full_since` is null. */
  readonly holders: readonly SlotHolder[];
  /** Slots that tools hold which are called directly; left out where there are none. */
  readonly calls?: number;
};

/** The runs that a worker may have at once, of those that wait for something. */
export class Slots {
  readonly size: number;
  private readonly held = new TransientMap<
    string,
    { readonly run: QueuedRun; readonly at: Instant }
  >();
  private since: Instant | null = null;

  private readonly calls: () => number;

  /** @param calls slots that tools take which are called directly, past any run */
  constructor(size: number, calls: () => number = () => 0) {
    this.size = size;
    this.calls = calls;
  }

  /** Slots that runs take now. */
  get taken(): number {
    return this.held.size;
  }

  get isFree(): boolean {
    return this.held.size + this.calls() < this.size;
  }

  take(run: QueuedRun, at: Instant): void {
    this.held.set(run.id, { run, at });
  }

  release(run: QueuedRun): void {
    this.held.delete(run.id);
  }

  /** What a look at the queue found. @param short whether it left a run there because no slot was free */
  looked(short: boolean, now: Instant): void {
    this.since = short ? (this.since ?? now) : null;
  }

  /** @param waiting runs that are in the queue now: others may have taken them since the last look */
  fullSince(waiting: number): Instant | null {
    return waiting > 0 && !this.isFree ? this.since : null;
  }

  use(waiting: number): SlotUse {
    const since = this.fullSince(waiting);
    const calls = this.calls();
    return {
      slots: this.size,
      taken: this.taken + calls,
      ...(calls === 0 ? {} : { calls }),
      full_since: since === null ? null : toIso(since),
      holders: since === null ? [] : this.holders(),
    };
  }

  private holders(): readonly SlotHolder[] {
    const holders = new Map<string, SlotHolder>();
    // In the order in which they took their slots: the first of each task is the earliest.
    for (const { run, at } of this.held.values()) {
      const { taskId: task_id, createdBy: created_by } = run;
      const first = { task_id, created_by, runs: 0, since: toIso(at), run_id: run.id };
      const known = holders.get(task_id) ?? first;
      holders.set(task_id, { ...known, runs: known.runs + 1 });
    }
    return mostFirst([...holders.values()]);
  }
}

/** What the workers of all processes say of a shortage of slots. */
export interface SlotShortage {
  /** Since when runs have been waiting while no worker had a free slot. */
  readonly since: Instant;
  /** Of all workers together. */
  readonly slots: number;
  readonly holders: readonly SlotHolder[];
  /** Slots that tools hold which are called directly. */
  readonly calls: number;
}

/**
 * Puts together what the heartbeats of workers say.
 * @param uses of each live worker; null for one that says nothing of its slots, as an older release
 * @returns null while some worker has a free slot, or may have
 */
export function slotShortage(uses: readonly (SlotUse | null)[]): SlotShortage | null {
  const full = uses.filter((use) => use !== null && use.full_since !== null);
  if (full.length === 0 || full.length < uses.length) return null;
  const known = full as readonly (SlotUse & { readonly full_since: string })[];
  const together = new Map<string, SlotHolder>();
  for (const holder of known.flatMap(({ holders }) => holders)) {
    const other = together.get(holder.task_id);
    const [first, second] =
      other === undefined || holder.since < other.since ? [holder, other] : [other, holder];
    together.set(holder.task_id, { ...first, runs: first.runs + (second?.runs ?? 0) });
  }
  return {
    since: Math.max(...known.map(({ full_since }) => Date.parse(full_since))),
    slots: known.reduce((sum, { slots }) => sum + slots, 0),
    holders: mostFirst([...together.values()]),
    calls: known.reduce((sum, { calls = 0 }) => sum + calls, 0),
  };
}

/** What a heartbeat says of slots; null where it says nothing. */
export function slotUseIn(about: JsonObject): SlotUse | null {
  const use = about['slots'];
  return typeof use === 'object' && use !== null && 'full_since' in use ? (use as SlotUse) : null;
}

function mostFirst(holders: readonly SlotHolder[]): readonly SlotHolder[] {
  return holders
    .toSorted((one, other) => other.runs - one.runs || one.since.localeCompare(other.since))
    .slice(0, MOST_HOLDERS);
}
