import { fromIso, type Instant } from '../clock.ts';
import type { EventStore, RecordedEvent } from '../event-store.ts';
import { RefusalError } from '../errors.ts';
import type { TaskEvent } from '../events/catalogue.ts';
import type { Schedule } from '../schedule/schedule.ts';
import { streams } from '../streams.ts';
import { requireTask, taskFold, type LiveTask, type TaskState } from '../tasks/task.ts';
import { scheduleOf } from '../tasks/task-schedule.ts';
import type { TaskDefinition } from '../tasks/task-definition.ts';
import type { RecordOf } from './explanation.ts';

const PAGE = 1000;

/** A rule of a task and the time it was in force. */
export interface Era {
  /** Exclusive. */
  readonly after: Instant;
  /** Inclusive; Infinity for the rule in force. */
  readonly upTo: Instant;
  readonly definition: TaskDefinition;
  readonly anchor: string;
  /** The event that set it. */
  readonly set: RecordedEvent;
}

/** A pause, and the event that ended it. */
export interface Pause {
  readonly from: Instant;
  /** Infinity while it lasts. */
  readonly upTo: Instant;
  readonly paused: RecordOf<'TaskPaused'>;
  readonly ended: RecordOf<'TaskResumed' | 'TaskCanceled'> | null;
}

/** The history of a task, from `task-<id>`. */
export class TaskHistory {
  readonly created: Instant;
  readonly task: LiveTask;
  readonly canceled: RecordOf<'TaskCanceled'> | null;
  readonly snoozes: readonly RecordOf<'TaskSnoozed'>[];
  readonly eras: readonly [Era, ...Era[]];
  readonly pauses: readonly Pause[];
  readonly #states: readonly LiveTask[];

  private constructor(events: readonly RecordedEvent[], states: readonly LiveTask[]) {
    this.#states = states;
    const [first] = events;
    if (first === undefined) throw new RefusalError('NOT_FOUND', 'there is no such task');
    const times = timesOf(events);
    this.created = times[0] ?? 0;
    this.task = requireTask(states.at(-1) ?? taskFold.initial);
    this.canceled = events.find((event) => event.type === 'TaskCanceled') ?? null;
    this.snoozes = events.filter((event) => event.type === 'TaskSnoozed');
    this.eras = erasOf(events, times, states) as [Era, ...Era[]];
    this.pauses = pausesOf(events, times);
  }

  /** Reads a task's stream, which is short. @returns null when there is no such task */
  static async read(store: EventStore, taskId: string): Promise<TaskHistory | null> {
    const events: RecordedEvent[] = [];
    const states: LiveTask[] = [];
    let state: TaskState = taskFold.initial;
    for (let from = 0; ;) {
      const page = await store.readStream(streams.task(taskId), { from, limit: PAGE });
      for (const event of page) {
        state = taskFold.evolve(state, event as unknown as TaskEvent, event);
        if (state.status === 'none') continue;
        events.push(event);
        states.push(state);
      }
      const last = page.at(-1);
      if (last === undefined || page.length < PAGE) break;
      from = last.revision + 1;
    }
    return events.length === 0 ? null : new TaskHistory(events, states);
  }

  /** The task at a revision of its stream. */
  atRevision(revision: number): LiveTask {
    return this.#states.findLast((state) => state.revision <= revision) ?? this.task;
  }

  /** The rule in force at an instant. Before the task's creation, its first rule; after its end, its last rule. */
  eraAt(instant: Instant): Era {
    return this.eras.findLast(({ after }) => after < instant) ?? this.eras[0];
  }

  /** The rules in force at any time of a span (inclusive). */
  erasWithin(start: Instant, end: Instant): readonly Era[] {
    return this.eras.filter(({ after, upTo }) => after < end && upTo >= start);
  }

  /** The pause that held back fires due at an instant. */
  pauseAt(instant: Instant): Pause | null {
    return this.pauses.findLast(({ from, upTo }) => from <= instant && instant <= upTo) ?? null;
  }

  /** The first pause that began within a span (inclusive). */
  pauseWithin(start: Instant, end: Instant): Pause | null {
    return this.pauses.find(({ from }) => start <= from && from <= end) ?? null;
  }

  /** The last snooze, known at a revision of the task, during which an instant lies. */
  snoozeOver(instant: Instant, revision = Infinity): RecordOf<'TaskSnoozed'> | null {
    return (
      this.snoozes.findLast(
        (event) =>
          event.revision <= revision &&
          fromIso(event.data.next_fire_at) <= instant &&
          instant <= this.endOf(event),
      ) ?? null
    );
  }

  /** When a snooze ended: at the time at which its fire was to run, or at an earlier change of the schedule. */
  endOf(snooze: RecordOf<'TaskSnoozed'>): Instant {
    const runAt = fromIso(snooze.data.next_run_at);
    return Math.min(runAt, this.changeIn(snooze)?.after ?? runAt);
  }

  /** The rule that ended a snooze before its fire was to run; null for none. */
  changeIn(snooze: RecordOf<'TaskSnoozed'>): Era | null {
    const runAt = fromIso(snooze.data.next_run_at);
    return (
      this.eras.find(({ set, after }) => set.revision > snooze.revision && after < runAt) ?? null
    );
  }

  /** Ids of the agents that changed the task. */
  get actors(): ReadonlySet<string> {
    const events = [
      ...this.eras.map(({ set }) => set),
      ...this.pauses.flatMap(({ paused, ended }) => (ended === null ? [paused] : [paused, ended])),
      ...this.snoozes,
      ...(this.canceled === null ? [] : [this.canceled]),
    ];
    return new Set(events.map(({ metadata }) => metadata.actor));
  }
}

/** A compiled rule, or why this release can't evaluate it. */
export type CompiledRule =
  | { readonly schedule: Schedule; readonly fault: null }
  | { readonly schedule: null; readonly fault: string };

/** Rules that were compiled before. */
const compiled = new WeakMap<Era, CompiledRule>();

/** The rule of an era. */
export function compileEra(era: Era): CompiledRule {
  const known = compiled.get(era);
  if (known !== undefined) return known;
  const rule = compileRule(era.definition, era.anchor);
  compiled.set(era, rule);
  return rule;
}

/** The rule of an era without `starts_at` and `ends_at`. */
export function compileUnbounded({ definition, anchor }: Era): CompiledRule {
  return compileRule({ ...definition, starts_at: null, ends_at: null }, anchor);
}

function compileRule(rule: TaskDefinition, anchor: string): CompiledRule {
  try {
    return { schedule: scheduleOf(rule, anchor), fault: null };
  } catch (error) {
    // Another release, or another tz database, had accepted the rule.
    if (error instanceof RefusalError) return { schedule: null, fault: error.message };
    throw error;
  }
}

/** When the events occurred, never decreasing, so that a clock that was set back does not reorder them. */
function timesOf(events: readonly RecordedEvent[]): readonly Instant[] {
  let latest = Number.NEGATIVE_INFINITY;
  return events.map(({ metadata }) => (latest = Math.max(latest, fromIso(metadata.occurredAt))));
}

function erasOf(
  events: readonly RecordedEvent[],
  times: readonly Instant[],
  states: readonly LiveTask[],
): readonly Era[] {
  const eras: Era[] = [];
  events.forEach((event, index) => {
    const at = times[index] ?? 0;
    const state = states[index];
    const isSet =
      event.type === 'TaskCreated' || (event.type === 'TaskUpdated' && event.data.rescheduled);
    if (!isSet && event.type !== 'TaskCanceled') return;
    const previous = eras.pop();
    if (previous !== undefined) eras.push({ ...previous, upTo: Math.min(previous.upTo, at) });
    if (!isSet || state === undefined) return;
    const { definition, anchor } = state;
    eras.push({ after: at, upTo: Infinity, definition, anchor, set: event });
  });
  return eras;
}

function pausesOf(events: readonly RecordedEvent[], times: readonly Instant[]): readonly Pause[] {
  const pauses: Pause[] = [];
  let open: Pause | null = null;
  events.forEach((event, index) => {
    const at = times[index] ?? 0;
    if (event.type === 'TaskPaused') {
      open = { from: at, upTo: Infinity, paused: event, ended: null };
    } else if (open !== null && (event.type === 'TaskResumed' || event.type === 'TaskCanceled')) {
      pauses.push({ ...open, upTo: at, ended: event });
      open = null;
    }
  });
  return open === null ? pauses : [...pauses, open];
}
