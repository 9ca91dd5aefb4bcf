import { fromIso, toIso, type Instant } from '../clock.ts';
import type { FiresEvent } from '../events/catalogue.ts';
import type { EventPlace } from '../handle.ts';
import { decidedUpTo } from './schedule-state.ts';
import type { Fire, Schedule } from '../schedule/schedule.ts';
import type { LiveTask } from './task.ts';
import { nextFire } from './task-commands.ts';
import type { TaskDefinition } from './task-definition.ts';

/** A fire as `POST /schedules/preview` shows it. */
export interface PreviewedFire {
  /** UTC. */
  readonly at: string;
  /** Wall-clock time in the rule's zone, with its offset. */
  readonly local: string;
  /** The effect of a clock change on it; null if there was none. */
  readonly note: string | null;
}

/** How many fires a schedule may still have. */
export interface Budget {
  /** null: any number. */
  readonly fires: number | null;
  /** Only later fires count; earlier ones are decided. */
  readonly after: Instant;
}

/**
 * Yields the fires strictly after an instant. The caller can yield to the event loop in between, because one fire can
 * take milliseconds.
 */
export function* previewFires(
  schedule: Schedule,
  from: Instant,
  count: number,
  budget: Budget,
): Generator<PreviewedFire, void, void> {
  let left = budget.fires ?? Infinity;
  let fire: Fire | null = schedule.next(from);
  for (let shown = 0; fire !== null && shown < count; shown += 1) {
    if (fire.at > budget.after) {
      if (left <= 0) return;
      left -= 1;
    }
    yield { at: toIso(fire.at), local: fire.local, note: fire.note };
    fire = schedule.next(fire.at);
  }
}

/** The budget of a schedule that no task has yet. */
export function wholeBudget(max_runs: number | null): Budget {
  return { fires: max_runs, after: Number.NEGATIVE_INFINITY };
}

/** The remaining runs of a task's `max_runs`. @param last the last event of `fires-<id>`; null before the first */
export function budgetOf(
  { definition }: LiveTask,
  last: (FiresEvent & Pick<EventPlace, 'metadata'>) | null,
): Budget {
  const { max_runs } = definition;
  // A correction is written only when no fire is due, so all fires before it are decided.
  const decided = last === null ? null : (decidedUpTo(last) ?? last.metadata.occurredAt);
  return {
    fires: max_runs === null ? null : Math.max(0, max_runs - (last?.data.fire_count ?? 0)),
    after: decided === null ? Number.NEGATIVE_INFINITY : fromIso(decided),
  };
}

/** The reason why a task does not fire according to its schedule. @param last as in {@link budgetOf} */
export function taskWarnings(task: LiveTask, last: FiresEvent | null): string[] {
  const { status, definition, next_run_at, next_fire_at } = task;
  if (status === 'canceled') return ['the task is canceled and will not fire again'];
  if (definition.schedule_kind === 'event') return [];
  if (status === 'paused') {
    return ['the task is paused: due fires are held back until it is resumed'];
  }
  if (next_run_at === null || nextFire(task, last) !== next_fire_at) return [];
  return [
    `the fire at ${next_fire_at} is snoozed until ${next_run_at}: fires due before then do not run`,
  ];
}

/** Why a preview is empty. */
export function emptyWarning(definition: TaskDefinition, from: Instant, budget: Budget): string {
  if (definition.schedule_kind === 'event') {
    const pattern = definition.schedule_expr ?? '#';
    return `an event task does not fire by time: events on topics matching "${pattern}" trigger it`;
  }
  if (budget.fires === 0) return `max_runs (${String(definition.max_runs)}) is used up`;
  return `the schedule has no fire after ${toIso(from)}`;
}
