import { fromIso, toIso, type Instant } from '../../../domain/clock.ts';
import type { FiresEvent, TaskEvent } from '../../../domain/events/catalogue.ts';
import { decideFires, ruleInForce, type FiresDecision } from '../../../domain/tasks/fires.ts';
import type { MissedOrder } from '../../../domain/operators/operations.ts';
import {
  evolveScheduleState,
  nextFireOf,
  type ScheduleState,
} from '../../../domain/tasks/schedule-state.ts';
import { compileSchedule, type Schedule } from '../../../domain/schedule/schedule.ts';
import { anchorAt } from '../../../domain/tasks/task.ts';
import type { TaskDefinition } from '../../../domain/tasks/task-definition.ts';
import type { MisfirePolicy } from '../../../domain/vocabulary.ts';
import { definition } from '../../projections/recorded.ts';
import { place, START } from '../given.ts';

export const TASK = '6f1d3c9a-27b4-4e83-9a55-0c8e2f7b41d6';
export const minute = 60_000;

export function scheduleOf(
  rule: Pick<
    TaskDefinition,
    'schedule_kind' | 'schedule_expr' | 'timezone' | 'starts_at' | 'ends_at'
  >,
  anchor: string,
): Schedule {
  return compileSchedule({
    kind: rule.schedule_kind,
    expr: rule.schedule_expr,
    timezone: rule.timezone,
    anchor: fromIso(anchor),
    startsAt: rule.starts_at === null ? null : fromIso(rule.starts_at),
    endsAt: rule.ends_at === null ? null : fromIso(rule.ends_at),
  });
}

/**
 * The life of a task in memory: the events that commands would write, and the decisions of a scheduler. It has the
 * events of both streams, and the result of each nominal time.
 */
export class Story {
  now: Instant;
  state: ScheduleState;
  definition: TaskDefinition;
  anchor: string;
  /** The policy of the last release of a hold. */
  missed: MissedOrder | null = null;
  readonly taskEvents: { event: TaskEvent; at: Instant }[] = [];
  readonly firesEvents: { event: FiresEvent; at: Instant }[] = [];
  /** The events of both streams, in the order in which they were appended. */
  readonly log: { event: TaskEvent | FiresEvent; revision: number; at: Instant }[] = [];

  constructor(fields: Partial<TaskDefinition> = {}, now: Instant = START) {
    this.now = now;
    this.definition = definition({ schedule_expr: '* * * * *', ...fields });
    this.anchor = anchorAt(now);
    const next_fire_at = this.nextByRule();
    this.state = evolveScheduleState(
      null,
      this.#record({
        type: 'TaskCreated',
        data: { definition: this.definition, anchor: this.anchor, next_fire_at },
      }),
      place(0, now),
    ) as ScheduleState;
  }

  /** The first fire of the rule after now. */
  nextByRule(): string | null {
    const next = scheduleOf(this.definition, this.anchor).next(this.now);
    return next === null ? null : toIso(next.at);
  }

  pass(milliseconds: number): this {
    this.now += milliseconds;
    return this;
  }

  pause(): this {
    return this.#act({ type: 'TaskPaused', data: { by_failures: false } });
  }

  resume(missed: MisfirePolicy): this {
    const { next_fire_at, next_run_at } = this.state.set;
    const isPutOff =
      next_run_at !== null &&
      fromIso(next_run_at) > this.now &&
      nextFireOf(this.state) === next_fire_at;
    const next = isPutOff ? next_fire_at : this.nextByRule();
    return this.#act({ type: 'TaskResumed', data: { missed, next_fire_at: next } });
  }

  /** Snoozes the next fire according to `known` (default: the present state). */
  snooze(delay_seconds: number, known: ScheduleState = this.state): this {
    const next_fire_at = nextFireOf(known);
    if (next_fire_at === null) throw new Error('nothing to snooze');
    const { set } = known;
    const snoozed = set.next_fire_at === next_fire_at ? set.next_run_at : null;
    const next_run_at = toIso(fromIso(snoozed ?? next_fire_at) + delay_seconds * 1000);
    return this.#act({ type: 'TaskSnoozed', data: { delay_seconds, next_fire_at, next_run_at } });
  }

  update(changes: Partial<TaskDefinition>): this {
    this.definition = { ...this.definition, ...changes };
    if (changes.schedule_expr !== undefined) this.anchor = anchorAt(this.now);
    const { anchor } = this;
    const next_fire_at = this.nextByRule();
    return this.#act({
      type: 'TaskUpdated',
      data: { changes, rescheduled: true, anchor, next_fire_at },
    });
  }

  cancel(): this {
    return this.#act({ type: 'TaskCanceled', data: {} });
  }

  /** Releases a hold. */
  release(policy: MisfirePolicy): this {
    this.missed = { policy, upTo: this.now };
    return this;
  }

  /** The decision of a scheduler now, based on `known` (default: the present state). It is not written. */
  decision(known: ScheduleState = this.state): FiresDecision {
    const { definition: rule, anchor } = ruleInForce(known);
    return decideFires(TASK, known, scheduleOf(rule, anchor), this.now, this.missed);
  }

  /** Writes a decision. */
  write(decision: FiresDecision): FiresDecision {
    for (const event of decision.events) {
      const revision = this.firesEvents.length;
      this.firesEvents.push({ event, at: this.now });
      this.log.push({ event, revision, at: this.now });
      this.state = evolveScheduleState(
        this.state,
        event,
        place(revision, this.now),
      ) as ScheduleState;
    }
    return decision;
  }

  /** Lets the scheduler decide once. */
  look(): FiresDecision {
    return this.write(this.decision());
  }

  /** Lets the scheduler decide until nothing is due. */
  lookAll(): this {
    for (let n = 0; this.look().events.length > 0; n += 1) {
      if (n > 1000) throw new Error('the scheduler never finishes');
    }
    return this;
  }

  /** Nominal times that fired, as the clock's minutes and seconds in UTC. */
  get fired(): readonly string[] {
    return this.firesEvents.flatMap(({ event }) =>
      event.type === 'Fired' ? [clockTime(event.data.nominal)] : [],
    );
  }

  /** Skipped spans, as `reason first-last (count)`. */
  get skipped(): readonly string[] {
    return this.firesEvents.flatMap(({ event }) => {
      if (event.type !== 'FiresSkipped') return [];
      const { reason, from, to, count } = event.data;
      return [`${reason} ${clockTime(from)}-${clockTime(to)} (${count})`];
    });
  }

  get next(): string | null {
    const next = nextFireOf(this.state);
    return next === null ? null : clockTime(next);
  }

  #act(event: TaskEvent): this {
    const revision = this.taskEvents.length;
    this.#record(event);
    this.state = evolveScheduleState(this.state, event, place(revision, this.now)) as ScheduleState;
    return this;
  }

  #record(event: TaskEvent): TaskEvent {
    this.log.push({ event, revision: this.taskEvents.length, at: this.now });
    this.taskEvents.push({ event, at: this.now });
    return event;
  }
}

/** The time of a timestamp, such as `08:05:00`. */
export function clockTime(iso: string): string {
  return iso.slice(11, 19);
}
