import { fromIso, type Instant } from '../../domain/clock.ts';
import { type EventStore, type RecordedEvent } from '../../domain/event-store.ts';
import { ruleInForce } from '../../domain/tasks/fires.ts';
import { nextRunOf, type FiringDefinition, type Rhythm } from '../../domain/tasks/rhythm.ts';
import { compileSchedule, type Schedule } from '../../domain/schedule/schedule.ts';
import { idOf } from '../../domain/streams.ts';
import type { Telemetry } from '../../observability/telemetry.ts';
import { dueProjection, evolveRhythmOf, rhythmStreams } from '../../projections/views/due.ts';
import { loadView, type ReadableViews } from '../../projections/reading/load-view.ts';
import { Heap } from '../heap.ts';

/** Void elements of the heap that are let be whatever the number of tasks. */
const SLACK = 1000;

/** A task as the scheduler holds it. */
export interface DueEntry {
  readonly taskId: string;
  rhythm: Rhythm;
  /** When something is to be decided next; null for nothing ahead. */
  dueAt: Instant | null;
  /** A decision is being written. */
  deciding: boolean;
  /** Not before then, after a decision could not be written. */
  retryAt: Instant;
  /** How often in succession deciding has failed. */
  failures: number;
  compiled: { readonly schedule: Schedule; readonly definition: FiringDefinition } | null;
}

/**
 * Every active or paused task's rhythm, in memory, ordered by what fires next: the due view, loaded once and
 * followed live. It may be a moment behind; who decides by it appends with an expected revision.
 */
export class DueIndex {
  private readonly store: EventStore;
  private readonly readModel: ReadableViews;
  private readonly telemetry: Telemetry;
  private readonly entries = new Map<string, DueEntry>();
  private readonly heap = new Heap<{ at: Instant; entry: DueEntry }>((a, b) => a.at < b.at);
  /** False until the end of the log was reached: who is paused or canceled by now may not be known. */
  private current = false;
  /** Called when a task's time may have come nearer. */
  onChange: () => void = () => {};

  constructor(store: EventStore, readModel: ReadableViews, telemetry: Telemetry) {
    this.store = store;
    this.readModel = readModel;
    this.telemetry = telemetry;
  }

  get size(): number {
    return this.entries.size;
  }

  /** Whether the end of the log was reached, so that all of it is in here. */
  get isCurrent(): boolean {
    return this.current;
  }

  get(taskId: string): DueEntry | undefined {
    return this.entries.get(taskId);
  }

  all(): IterableIterator<DueEntry> {
    return this.entries.values();
  }

  /**
   * Loads the view, then follows the log from where the view was until the signal is aborted. Nothing is due before
   * the end of the log was reached.
   */
  async follow(signal: AbortSignal, ready: () => void): Promise<void> {
    // After a break: what was canceled meanwhile is neither in the view nor in what follows it.
    this.current = false;
    this.entries.clear();
    this.heap.retain(() => false);
    const after = await loadView(
      { store: this.store, readModel: this.readModel },
      dueProjection,
      [],
      (document, taskId) => this.put(taskId, document.rhythm),
    );
    for await (const message of this.store.subscribe({ after, prefixes: rhythmStreams, signal })) {
      if (message.kind === 'events') {
        for (const event of message.events) this.take(event);
        this.onChange();
      } else if (!this.current) {
        this.current = true;
        ready();
        this.onChange();
      }
    }
  }

  /** The entries to decide now, each once; the caller gives them back by `settle`. */
  takeDue(now: Instant, most: number): DueEntry[] {
    const due: DueEntry[] = [];
    if (!this.current) return due;
    while (due.length < most) {
      const top = this.heap.peek();
      if (top === undefined || top.at > now) break;
      this.heap.pop();
      const { entry } = top;
      // An entry is in the heap once for each change; only the latest counts.
      if (this.entries.get(entry.taskId) !== entry || entry.deciding) continue;
      const dueAt = wakeTimeOf(entry);
      if (dueAt !== top.at) continue;
      entry.deciding = true;
      due.push(entry);
    }
    return due;
  }

  /** The entries that will be due up to an instant, in no order; they stay where they are. */
  soon(until: Instant): DueEntry[] {
    const passed: { at: Instant; entry: DueEntry }[] = [];
    for (let top = this.heap.peek(); top !== undefined && top.at <= until; top = this.heap.peek()) {
      this.heap.pop();
      const { entry } = top;
      if (this.entries.get(entry.taskId) === entry && wakeTimeOf(entry) === top.at)
        passed.push(top);
    }
    for (const place of passed) this.heap.push(place);
    return passed.map(({ entry }) => entry);
  }

  /** When the earliest is due; null when nothing is. */
  earliest(): Instant | null {
    if (!this.current) return null;
    for (;;) {
      const top = this.heap.peek();
      if (top === undefined) return null;
      const { entry } = top;
      const current = this.entries.get(entry.taskId) === entry && !entry.deciding;
      if (current && wakeTimeOf(entry) === top.at) return top.at;
      this.heap.pop();
    }
  }

  /**
   * Ends a decision; the rhythm is what the events made of it, or the one it was made on when they could not be
   * written. Where the entry is another by then, what was lost was a race: there is nothing to wait for.
   */
  settle(entry: DueEntry, rhythm: Rhythm, retryAt: Instant): void {
    const isOvertaken = retryAt !== 0 && entry.rhythm !== rhythm;
    entry.deciding = false;
    entry.retryAt = isOvertaken ? 0 : retryAt;
    entry.failures = entry.retryAt === 0 ? 0 : entry.failures + 1;
    if (this.isNewer(entry.rhythm, rhythm)) entry.rhythm = rhythm;
    this.place(entry);
  }

  /** The compiled schedule of a task, made once per definition. */
  scheduleOf(entry: DueEntry): Schedule {
    const rule = ruleInForce(entry.rhythm);
    const { definition } = rule;
    if (entry.compiled?.definition === definition) return entry.compiled.schedule;
    const schedule = compileRule(rule);
    entry.compiled = { schedule, definition };
    return schedule;
  }

  /**
   * Takes in what the log says of a task where this index has missed it; null for one that is canceled. What it knows
   * better by now stays, and is given its place again.
   */
  correct(taskId: string, rhythm: Rhythm | null): void {
    const known = this.entries.get(taskId);
    if (rhythm === null || rhythm.status === 'canceled') {
      this.entries.delete(taskId);
    } else if (known === undefined) {
      this.put(taskId, rhythm);
    } else {
      const older =
        rhythm.task_revision < known.rhythm.task_revision ||
        (rhythm.fires?.revision ?? -1) < (known.rhythm.fires?.revision ?? -1);
      if (!older) known.rhythm = rhythm;
      known.retryAt = 0;
      known.failures = 0;
      this.place(known);
    }
    this.onChange();
  }

  private take(event: RecordedEvent): void {
    if (event.fault !== undefined) {
      this.telemetry.log.error('an event of a task does not fit its schema', {
        stream: event.stream,
        fault: event.fault,
      });
      return;
    }
    const taskId = idOf(event.stream);
    const known = this.entries.get(taskId);
    if (known && isKnown(known.rhythm, event)) return;
    const rhythm = evolveRhythmOf(known?.rhythm ?? null, event);
    if (rhythm === null) return;
    if (rhythm.status === 'canceled') {
      this.entries.delete(taskId);
      return;
    }
    if (known) {
      known.rhythm = rhythm;
      known.retryAt = 0;
      known.failures = 0;
      this.place(known);
    } else {
      this.put(taskId, rhythm);
    }
  }

  private put(taskId: string, rhythm: Rhythm): void {
    const entry: DueEntry = {
      taskId,
      rhythm,
      dueAt: null,
      deciding: false,
      retryAt: 0,
      failures: 0,
      compiled: null,
    };
    this.entries.set(taskId, entry);
    this.place(entry);
  }

  private place(entry: DueEntry): void {
    entry.dueAt = dueTimeOf(entry.rhythm);
    const at = wakeTimeOf(entry);
    if (at === null || entry.deciding) return;
    this.heap.push({ at, entry });
    // Void ones far ahead would stay for years where a task is changed again and again.
    if (this.heap.size > 2 * this.entries.size + SLACK) this.heap.retain(isInForce(this.entries));
  }

  private isNewer(known: Rhythm, other: Rhythm): boolean {
    return (
      other.task_revision >= known.task_revision &&
      (other.fires?.revision ?? -1) > (known.fires?.revision ?? -1)
    );
  }
}

/** The schedule that a rule stands for. @throws ScheduleError where it can't be compiled here any more */
export function compileRule({
  definition,
  anchor,
}: {
  readonly definition: FiringDefinition;
  readonly anchor: string;
}): Schedule {
  const { starts_at, ends_at } = definition;
  return compileSchedule({
    kind: definition.schedule_kind,
    expr: definition.schedule_expr,
    timezone: definition.timezone,
    anchor: fromIso(anchor),
    startsAt: starts_at === null ? null : fromIso(starts_at),
    endsAt: ends_at === null ? null : fromIso(ends_at),
  });
}

/** Whether an element of the heap says when its entry is due, once for each entry. */
function isInForce(
  entries: ReadonlyMap<string, DueEntry>,
): (element: { at: Instant; entry: DueEntry }) => boolean {
  const seen = new Set<DueEntry>();
  return ({ at, entry }) => {
    const counts =
      entries.get(entry.taskId) === entry &&
      !entry.deciding &&
      !seen.has(entry) &&
      wakeTimeOf(entry) === at;
    if (counts) seen.add(entry);
    return counts;
  };
}

function isKnown(rhythm: Rhythm, event: RecordedEvent): boolean {
  return event.stream.startsWith('task-')
    ? event.revision <= rhythm.task_revision
    : event.revision <= (rhythm.fires?.revision ?? -1);
}

/** When a decision is due: at once where a pause left something to record. */
function dueTimeOf(rhythm: Rhythm): Instant | null {
  if (rhythm.status !== 'active') return null;
  const [owed] = rhythm.owed;
  if (owed !== undefined) return fromIso(owed.to);
  const next = nextRunOf(rhythm);
  return next === null ? null : fromIso(next);
}

function wakeTimeOf(entry: DueEntry): Instant | null {
  return entry.dueAt === null ? null : Math.max(entry.dueAt, entry.retryAt);
}
