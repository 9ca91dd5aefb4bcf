import type { Denial } from '../../domain/agents/permissions.ts';
import { fromIso, type Instant } from '../../domain/clock.ts';
import { type EventStore, type RecordedEvent } from '../../domain/event-store.ts';
import { ruleInForce } from '../../domain/tasks/fires.ts';
import {
  nextRunOf,
  type FiringDefinition,
  type ScheduleState,
} from '../../domain/tasks/schedule-state.ts';
import { compileRule } from '../../domain/tasks/task-schedule.ts';
import type { Schedule } from '../../domain/schedule/schedule.ts';
import { idOf } from '../../domain/streams.ts';
import type { Telemetry } from '../../observability/telemetry.ts';
import {
  dueProjection,
  evolveScheduleStateOf,
  scheduleStreams,
} from '../../projections/views/due.ts';
import { loadView, type ReadableViews } from '../../projections/reading/load-view.ts';
import { Heap } from '../heap.ts';

/** How many stale elements the heap may hold, beyond one per task. */
const MAX_STALE = 1000;

/** A task in the scheduler's memory. */
export interface DueEntry {
  readonly taskId: string;
  state: ScheduleState;
  /** When the next decision is due; null if there is none. */
  dueAt: Instant | null;
  /** A decision is being written. */
  deciding: boolean;
  /** Why its agent prevents it from firing; null if no reason is known. */
  held: Denial | null;
  /** The earliest time of the next decision, if one could not be written or the agent holds the task back. */
  retryAt: Instant;
  /** Failed decisions in a row. */
  failures: number;
  compiled: { readonly schedule: Schedule; readonly definition: FiringDefinition } | null;
}

/**
 * The schedule states of all active and paused tasks, in memory, ordered by their next fire: the due view, loaded once and
 * followed live. It may lag; decisions are appended at an expected revision.
 */
export class DueIndex {
  readonly #store: EventStore;
  readonly #readModel: ReadableViews;
  readonly #telemetry: Telemetry;
  readonly #entries = new Map<string, DueEntry>();
  readonly #heap = new Heap<{ at: Instant; entry: DueEntry }>((a, b) => a.at < b.at);
  /** False until the end of the log is reached. Before that, paused and canceled tasks may seem active. */
  #current = false;
  readonly #listeners: (() => void)[] = [];

  constructor(store: EventStore, readModel: ReadableViews, telemetry: Telemetry) {
    this.#store = store;
    this.#readModel = readModel;
    this.#telemetry = telemetry;
  }

  /** Calls the listener when the earliest fire may have changed. */
  onChange(listener: () => void): void {
    this.#listeners.push(listener);
  }

  #notify(): void {
    for (const listener of this.#listeners) listener();
  }

  get size(): number {
    return this.#entries.size;
  }

  /** Whether the end of the log was reached, so that the index is complete. */
  get isCurrent(): boolean {
    return this.#current;
  }

  get(taskId: string): DueEntry | undefined {
    return this.#entries.get(taskId);
  }

  all(): IterableIterator<DueEntry> {
    return this.#entries.values();
  }

  /** Loads the view, then follows the log until the signal is aborted. Nothing is due before its end is reached. */
  async follow(signal: AbortSignal, ready: () => void): Promise<void> {
    // After an interruption, tasks canceled in the meantime are neither in the view nor in later events.
    this.#current = false;
    this.#entries.clear();
    this.#heap.retain(() => false);
    const after = await loadView(
      { store: this.#store, readModel: this.#readModel },
      dueProjection,
      [],
      (document, taskId) => this.#put(taskId, document.rhythm),
    );
    for await (const message of this.#store.subscribe({
      after,
      prefixes: scheduleStreams,
      signal,
    })) {
      if (message.kind === 'events') {
        for (const event of message.events) this.#take(event);
        this.#notify();
      } else if (!this.#current) {
        this.#current = true;
        ready();
        this.#notify();
      }
    }
  }

  /** The entries to decide now. The caller returns each by `settle`. */
  takeDue(now: Instant, limit: number): DueEntry[] {
    const due: DueEntry[] = [];
    if (!this.#current) return due;
    while (due.length < limit) {
      const top = this.#heap.peek();
      if (top === undefined || top.at > now) break;
      this.#heap.pop();
      const { entry } = top;
      // The heap has an element for each change of an entry; only the latest counts.
      if (!this.#isCurrent(top)) continue;
      entry.deciding = true;
      entry.held = null;
      due.push(entry);
    }
    return due;
  }

  /** The entries that are due up to an instant, in no order. They stay in the index. */
  soon(until: Instant): DueEntry[] {
    const passed: { at: Instant; entry: DueEntry }[] = [];
    for (
      let top = this.#heap.peek();
      top !== undefined && top.at <= until;
      top = this.#heap.peek()
    ) {
      this.#heap.pop();
      if (this.#isCurrent(top)) passed.push(top);
    }
    for (const place of passed) this.#heap.push(place);
    return passed.map(({ entry }) => entry);
  }

  /** When the earliest is due; null when nothing is. */
  earliest(): Instant | null {
    if (!this.#current) return null;
    for (;;) {
      const top = this.#heap.peek();
      if (top === undefined) return null;
      if (this.#isCurrent(top)) return top.at;
      this.#heap.pop();
    }
  }

  /**
   * Ends a decision. `state` is the state after its events, or the previous one if they could not be written. If the
   * entry has changed in the meantime, a race was lost, and there is nothing to wait for.
   */
  settle(entry: DueEntry, state: ScheduleState, retryAt: Instant): void {
    const isOvertaken = retryAt !== 0 && entry.state !== state;
    entry.deciding = false;
    entry.retryAt = isOvertaken ? 0 : retryAt;
    entry.failures = entry.retryAt === 0 ? 0 : entry.failures + 1;
    if (this.#isNewer(entry.state, state)) entry.state = state;
    this.#place(entry);
  }

  /** Leaves an entry undecided because of its agent. It is due again when the agent changes, or at the given time. */
  holdBack(entry: DueEntry, denial: Denial, until: Instant): void {
    entry.deciding = false;
    entry.held = denial;
    entry.retryAt = until;
    entry.failures = 0;
    this.#place(entry);
  }

  /**
   * Notes that an agent has changed. Entries that it held back are due again.
   * @param agentId null: those of all agents
   */
  releaseHeld(agentId: string | null): void {
    let changed = false;
    for (const entry of this.#entries.values()) {
      const { held, state } = entry;
      if (held === null || (agentId !== null && state.definition.created_by !== agentId)) continue;
      entry.held = null;
      entry.retryAt = 0;
      this.#place(entry);
      changed = true;
    }
    if (changed) this.#notify();
  }

  /** The compiled schedule of a task, cached per definition. */
  scheduleOf(entry: DueEntry): Schedule {
    const { definition, anchor } = ruleInForce(entry.state);
    if (entry.compiled?.definition === definition) return entry.compiled.schedule;
    const schedule = compileRule(definition, anchor);
    entry.compiled = { schedule, definition };
    return schedule;
  }

  /** Corrects a task from the log, unless this index is newer. @param state null if the task is canceled */
  correct(taskId: string, state: ScheduleState | null): void {
    const known = this.#entries.get(taskId)?.state;
    const isOlder =
      known !== undefined &&
      state !== null &&
      state.status !== 'canceled' &&
      (state.task_revision < known.task_revision ||
        (state.fires?.revision ?? -1) < (known.fires?.revision ?? -1));
    this.#update(taskId, isOlder ? known : state);
    this.#notify();
  }

  #take(event: RecordedEvent): void {
    if (event.fault !== undefined) {
      const { stream, fault } = event;
      this.#telemetry.log.error('an event of a task does not match its schema', { stream, fault });
      return;
    }
    const taskId = idOf(event.stream);
    const known = this.#entries.get(taskId);
    if (known && isKnown(known.state, event)) return;
    const state = evolveScheduleStateOf(known?.state ?? null, event);
    if (state !== null) this.#update(taskId, state);
  }

  #update(taskId: string, state: ScheduleState | null): void {
    const known = this.#entries.get(taskId);
    if (state === null || state.status === 'canceled') {
      this.#entries.delete(taskId);
    } else if (known === undefined) {
      this.#put(taskId, state);
    } else {
      known.state = state;
      known.retryAt = 0;
      known.failures = 0;
      this.#place(known);
    }
  }

  #put(taskId: string, state: ScheduleState): void {
    const idle = { dueAt: null, deciding: false, held: null, retryAt: 0, failures: 0 };
    const entry: DueEntry = { taskId, state: state, ...idle, compiled: null };
    this.#entries.set(taskId, entry);
    this.#place(entry);
  }

  #place(entry: DueEntry): void {
    entry.dueAt = dueTimeOf(entry.state);
    const at = wakeTimeOf(entry);
    if (at === null || entry.deciding) return;
    this.#heap.push({ at, entry });
    // Otherwise a task that changes often would leave stale elements for years.
    if (this.#heap.size <= 2 * this.#entries.size + MAX_STALE) return;
    const seen = new Set<DueEntry>();
    this.#heap.retain((element) => {
      if (!this.#isCurrent(element) || seen.has(element.entry)) return false;
      seen.add(element.entry);
      return true;
    });
  }

  /** Whether an element of the heap is current: it has the due time that its entry has now. */
  #isCurrent({ at, entry }: { readonly at: Instant; readonly entry: DueEntry }): boolean {
    const isKnown = this.#entries.get(entry.taskId) === entry && !entry.deciding;
    return isKnown && wakeTimeOf(entry) === at;
  }

  #isNewer(known: ScheduleState, other: ScheduleState): boolean {
    return (
      other.task_revision >= known.task_revision &&
      (other.fires?.revision ?? -1) > (known.fires?.revision ?? -1)
    );
  }
}

function isKnown(state: ScheduleState, event: RecordedEvent): boolean {
  return event.stream.startsWith('task-')
    ? event.revision <= state.task_revision
    : event.revision <= (state.fires?.revision ?? -1);
}

/** When a decision is due: at once if a pause left fires to record. */
function dueTimeOf(state: ScheduleState): Instant | null {
  if (state.status !== 'active') return null;
  const [owed] = state.owed;
  if (owed !== undefined) return fromIso(owed.to);
  const next = nextRunOf(state);
  return next === null ? null : fromIso(next);
}

function wakeTimeOf(entry: DueEntry): Instant | null {
  return entry.dueAt === null ? null : Math.max(entry.dueAt, entry.retryAt);
}
