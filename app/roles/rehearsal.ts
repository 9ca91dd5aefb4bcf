import type { Clock } from '../../domain/clock.ts';
import type { TaskDefinition } from '../../domain/tasks/task-definition.ts';
import type { Telemetry } from '../../observability/telemetry.ts';
import type { DueEntry } from '../../scheduler/fires/due-index.ts';
import type { PinnedTasks } from '../../scheduler/pinned-tasks.ts';
import { RehearsalStage, type StageCalls, type StageMeans } from './rehearsal-stage.ts';
import { tasksDue } from './rehearsal-tasks.ts';

/** So many tasks that are due within seconds are many. */
const MANY = 100;
/** Tasks that are due at once, and how often. */
const TASKS = 100;
const TIMES = 48;
/** In which those of one time are made ready. Milliseconds. */
const LEAD = 20;
/** It is over by then, however much was done: the real tasks are due two seconds after it began. Milliseconds. */
const MOST = 1_400;
/** So many of the tasks that are about to be due are models for those of the rehearsal. */
const MODELS = 50;

/** What is rehearsed with. */
export interface RehearsalMeans extends StageMeans {
  readonly tasks: Pick<PinnedTasks, 'at'>;
  readonly telemetry: Telemetry;
}

/** Tasks that are due soon. */
type Due = readonly Pick<DueEntry, 'taskId' | 'rhythm'>[];

/** How much is rehearsed. */
export interface RehearsalOptions {
  /** Due at once. */
  readonly tasks?: number;
  readonly times?: number;
  /** Milliseconds after which it is over, however much was done. */
  readonly most?: number;
  /** Real tasks that are about to be due. */
  readonly models?: readonly TaskDefinition[];
}

/**
 * Has tasks become due, run and end as real ones do, in schedulers and workers of their own, over a log that keeps
 * nothing. Code that runs for the first time takes many times as long as later, and compiling it takes the second
 * processor: where many tasks are due at one instant, that would be the time by which the last of them is late.
 *
 * Those of one time have ended before the next are due: were they due by the clock alone, a slow machine would fall behind
 * and go on deciding what is due, which goes first, and so would hardly begin or end a run.
 *
 * There are two ways, side by side, which are given different functions. What has always called the same one is
 * compiled for that alone, and would be thrown away when it calls the real one; what has called two takes any.
 *
 * @returns how many runs have ended
 */
export async function rehearse(
  means: StageMeans,
  signal: AbortSignal,
  { tasks = TASKS, times = TIMES, most = MOST, models = [] }: RehearsalOptions = {},
): Promise<number> {
  const { clock } = means;
  const done = new AbortController();
  let isOver = false;
  const over = clock
    .sleep(most, AbortSignal.any([signal, done.signal]))
    .catch((error: unknown) => {
      if (!signal.aborted && !done.signal.aborted) throw error;
    })
    .finally(() => (isOver = true));
  let left = times;
  const perform = async (ends: Ends, calls: StageCalls): Promise<void> => {
    while (left > 0 && !isOver) {
      const events = tasksDue({ at: clock.now() + LEAD, tasks, time: left }, clock.now(), models);
      left -= 1;
      const stage = new RehearsalStage(means, events, calls);
      try {
        await Promise.race([ends.reach(ends.count + tasks), over]);
      } finally {
        await stage.end();
      }
    }
  };
  const [one, other] = [new Ends(), new Ends()];
  try {
    await Promise.all([perform(one, oneWay(clock, one)), perform(other, otherWay(clock, other))]);
  } finally {
    done.abort();
    await over;
  }
  return one.count + other.count;
}

/** Counts the runs that have ended. */
class Ends {
  count = 0;
  #awaited = Number.POSITIVE_INFINITY;
  #reached: () => void = () => {};

  add(): void {
    this.count += 1;
    if (this.count >= this.#awaited) this.#reached();
  }

  /** Resolves when there are so many. */
  reach(count: number): Promise<void> {
    this.#awaited = count;
    return new Promise((resolve) => (this.#reached = resolve));
  }
}

function oneWay(clock: Clock, ends: Ends): StageCalls {
  return {
    admit: () => ({ kind: 'go' }),
    handOver: () => null,
    released: () => ends.add(),
    lost: () => {},
    timer: (at, callback) => clock.at(at, callback),
    onRequesting: () => () => {},
    onRequested: () => {},
  };
}

/** The same once more, on purpose: to V8 these are other functions. */
function otherWay(clock: Clock, ends: Ends): StageCalls {
  return {
    admit: () => ({ kind: 'go' }),
    handOver: () => null,
    released: () => ends.add(),
    lost: () => {},
    timer: (at, callback) => {
      const cancel = clock.at(at, callback);
      return () => cancel();
    },
    onRequesting: () => () => {},
    onRequested: () => {},
  };
}

/**
 * Rehearses when many tasks are about to be due for the first time, and never again.
 *
 * @returns to be told which are due in the next seconds
 */
export function rehearsingOnce(means: RehearsalMeans, signal: AbortSignal): (due: Due) => void {
  let rehearsed = false;
  const modelsOf = async (due: Due): Promise<TaskDefinition[]> => {
    const models = due.slice(0, MODELS).map(async ({ taskId, rhythm }) => {
      const { definition } = await means.tasks.at(taskId, rhythm.task_revision);
      return definition;
    });
    // What can't be read now is none.
    return (await Promise.allSettled(models)).flatMap((model) =>
      model.status === 'fulfilled' ? model.value : [],
    );
  };
  const { log } = means.telemetry;
  return (due) => {
    if (rehearsed || due.length < MANY) return;
    rehearsed = true;
    const begun = performance.now();
    const rehearsing = modelsOf(due).then((models) => rehearse(means, signal, { models }));
    rehearsing.then(
      (runs) => {
        const milliseconds = Math.round(performance.now() - begun);
        log.debug('many tasks are about to be due: that was rehearsed', {
          due: due.length,
          runs,
          milliseconds,
        });
      },
      (error: unknown) => log.warn('a rehearsal has failed, which harms nothing', { error }),
    );
  };
}
