import { toIso } from '../../domain/clock.ts';
import { QUARTER, startOfDay } from '../views/statistics-days.ts';
import type { ErrorDayDocument, FailedQuarter } from '../views/statistics-errors.ts';
import type { Bucket, Period } from './statistics-periods.ts';
import { bucketAt } from './statistics-sums.ts';

/** The most tasks that a group names. */
const MAX_TASKS = 20;

/** The failed runs of a period with similar errors. */
export interface ErrorGroupFigures {
  readonly id: string;
  /** The message, with placeholders for the parts that differ between runs. */
  readonly error: string;
  /** An example of the messages. */
  readonly example: string;
  readonly count: number;
  readonly first: string;
  readonly last: string;
  /** The run that failed last; null with a filter by task, because it may belong to another task. */
  readonly last_run_id: string | null;
  /** The tasks with the most failures first, at most {@link MAX_TASKS}. */
  readonly tasks: readonly { readonly task_id: string; readonly count: number }[];
  /** The number of tasks; a lower bound if `has_more_tasks`. */
  readonly task_count: number;
  /** Whether some tasks are unknown, because the view names only 30 per quarter hour. */
  readonly has_more_tasks: boolean;
  /** Failures by bucket; empty if no buckets were requested. */
  readonly counts: readonly number[];
}

/**
 * The failures of a period by error, latest first.
 * @param buckets by which failures are also counted; may be empty
 * @param taskId only failures of this task
 */
export function errorFigures(
  days: readonly ErrorDayDocument[],
  period: Period,
  buckets: readonly Bucket[],
  taskId: string | null,
): readonly ErrorGroupFigures[] {
  const groups = new Map<string, Group>();
  for (const day of days) {
    const start = startOfDay(day.day);
    for (const number in day.quarters) {
      const quarter = day.quarters[number];
      const at = start + Number(number) * QUARTER;
      if (quarter === undefined || at < period.start || at >= period.end) continue;
      if (taskId !== null && quarter.tasks[taskId] === undefined) continue;
      let group = groups.get(day.group);
      if (group === undefined) groups.set(day.group, (group = new Group(day, buckets.length)));
      group.add(quarter, bucketAt(buckets, at), taskId);
    }
  }
  const figures = [...groups.values()].map((group) => group.figures(taskId));
  return figures.sort((one, other) => (one.last < other.last ? 1 : -1));
}

class Group {
  readonly #day: ErrorDayDocument;
  readonly #counts: number[];
  readonly #tasks = new Map<string, number>();
  #count = 0;
  #first = '';
  #last = '';
  #run = '';
  #others = 0;

  constructor(day: ErrorDayDocument, buckets: number) {
    this.#day = day;
    this.#counts = Array.from({ length: buckets }, () => 0);
  }

  add(quarter: FailedQuarter, bucket: number, taskId: string | null): void {
    const count = taskId === null ? quarter.count : (quarter.tasks[taskId] ?? 0);
    this.#count += count;
    if (bucket !== -1) this.#counts[bucket] = (this.#counts[bucket] ?? 0) + count;
    if (this.#first === '' || quarter.first < this.#first) this.#first = quarter.first;
    if (quarter.last > this.#last) {
      this.#last = quarter.last;
      this.#run = quarter.run;
    }
    this.#others += quarter.others ?? 0;
    for (const [id, each] of Object.entries(quarter.tasks)) {
      if (taskId === null || taskId === id) this.#tasks.set(id, (this.#tasks.get(id) ?? 0) + each);
    }
  }

  figures(taskId: string | null): ErrorGroupFigures {
    const tasks = [...this.#tasks].map(([task_id, count]) => ({ task_id, count }));
    const { group: id, error, example } = this.#day;
    return {
      id,
      error,
      example,
      count: this.#count,
      first: this.#first,
      last: this.#last,
      last_run_id: taskId === null ? this.#run : null,
      tasks: tasks.sort((one, other) => other.count - one.count).slice(0, MAX_TASKS),
      task_count: tasks.length,
      has_more_tasks: taskId === null && this.#others > 0,
      counts: this.#counts,
    };
  }
}

/** The start of each bucket. */
export const startsOf = (buckets: readonly Bucket[]): readonly string[] =>
  buckets.map(({ start }) => toIso(start));
