import { fromIso, type Instant } from '../domain/clock.ts';
import { type EventStore, type RecordedEvent } from '../domain/event-store.ts';
import { ruleInForce } from '../domain/fires.ts';
import { nextRunOf, type FiringDefinition, type Rhythm } from '../domain/rhythm.ts';
import { compileSchedule, type Schedule } from '../domain/schedule/schedule.ts';
import { idOf } from '../domain/streams.ts';
import type { Telemetry } from '../observability/telemetry.ts';
import { dueProjection, evolveRhythmOf, rhythmStreams } from '../projections/due.ts';
import { loadView } from '../projections/load-view.ts';
import type { ReadModel } from '../projections/read-model.ts';
import { Heap } from './heap.ts';

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
  compiled: { readonly schedule: Schedule; readonly definition: FiringDefinition } | null;
}

/**
 * Every active or paused task's rhythm, in memory, ordered by what fires next: the due view, loaded once and
 * followed live. It may be a moment behind; who decides by it appends with an expected revision.
 */
export class DueIndex {
  private readonly store: EventStore;
  private readonly readModel: ReadModel;
  private readonly telemetry: Telemetry;
  private readonly entries = new Map<string, DueEntry>();
  private readonly heap = new Heap<{ at: Instant; entry: DueEntry }>((a, b) => a.at < b.at);
  /** Called when a task's time may have come nearer. */
  onChange: () => void = () => {};

  constructor(store: EventStore, readModel: ReadModel, telemetry: Telemetry) {
    this.store = store;
    this.readModel = readModel;
    this.telemetry = telemetry;
  }

  get size(): number {
    return this.entries.size;
  }

  get(taskId: string): DueEntry | undefined {
    return this.entries.get(taskId);
  }

  all(): IterableIterator<DueEntry> {
    return this.entries.values();
  }

  /** Loads the view, then follows the log from where the view was until the signal is aborted. */
  async follow(signal: AbortSignal, ready: () => void): Promise<void> {
    const after = await loadView(this.readModel, dueProjection, [], (document, taskId) =>
      this.put(taskId, document.rhythm),
    );
    this.onChange();
    let caughtUp = false;
    for await (const message of this.store.subscribe({ after, prefixes: rhythmStreams, signal })) {
      if (message.kind === 'events') {
        for (const event of message.events) this.take(event);
        this.onChange();
      } else if (!caughtUp) {
        caughtUp = true;
        ready();
      }
    }
  }

  /** The entries to decide now, each once; the caller gives them back by `settle`. */
  takeDue(now: Instant, most: number): DueEntry[] {
    const due: DueEntry[] = [];
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

  /** When the earliest is due; null when nothing is. */
  earliest(): Instant | null {
    for (;;) {
      const top = this.heap.peek();
      if (top === undefined) return null;
      const { entry } = top;
      const current = this.entries.get(entry.taskId) === entry && !entry.deciding;
      if (current && wakeTimeOf(entry) === top.at) return top.at;
      this.heap.pop();
    }
  }

  /** Ends a decision; the rhythm is what the events made of it, or unchanged when they could not be written. */
  settle(entry: DueEntry, rhythm: Rhythm, retryAt: Instant): void {
    entry.deciding = false;
    entry.retryAt = retryAt;
    if (this.isNewer(entry.rhythm, rhythm)) entry.rhythm = rhythm;
    this.place(entry);
  }

  /** The compiled schedule of a task, made once per definition. */
  scheduleOf(entry: DueEntry): Schedule {
    const { definition, anchor } = ruleInForce(entry.rhythm);
    if (entry.compiled?.definition === definition) return entry.compiled.schedule;
    const schedule = compileSchedule({
      kind: definition.schedule_kind,
      expr: definition.schedule_expr,
      timezone: definition.timezone,
      anchor: fromIso(anchor),
      startsAt: definition.starts_at === null ? null : fromIso(definition.starts_at),
      endsAt: definition.ends_at === null ? null : fromIso(definition.ends_at),
    });
    entry.compiled = { schedule, definition };
    return schedule;
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
      compiled: null,
    };
    this.entries.set(taskId, entry);
    this.place(entry);
  }

  private place(entry: DueEntry): void {
    entry.dueAt = dueTimeOf(entry.rhythm);
    const at = wakeTimeOf(entry);
    if (at !== null && !entry.deciding) this.heap.push({ at, entry });
  }

  private isNewer(known: Rhythm, other: Rhythm): boolean {
    return (
      other.task_revision >= known.task_revision &&
      (other.fires?.revision ?? -1) > (known.fires?.revision ?? -1)
    );
  }
}

function isKnown(rhythm: Rhythm, event: RecordedEvent): boolean {
  return event.stream.startsWith('task-')
    ? event.revision <= rhythm.task_revision
    : event.revision <= (rhythm.fires?.revision ?? -1);
}

/** When a decision is due: at once where a pause left something to record. */
function dueTimeOf(rhythm: Rhythm): Instant | null {
  if (rhythm.status !== 'active') return null;
  if (rhythm.owed !== null) return fromIso(rhythm.owed.to);
  const next = nextRunOf(rhythm);
  return next === null ? null : fromIso(next);
}

function wakeTimeOf(entry: DueEntry): Instant | null {
  return entry.dueAt === null ? null : Math.max(entry.dueAt, entry.retryAt);
}
