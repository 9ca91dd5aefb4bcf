import type { Clock } from '../../../domain/clock.ts';
import type { TaskDefinition } from '../../../domain/tasks/task-definition.ts';
import type { Telemetry } from '../../../observability/telemetry.ts';
import type { DueEntry } from '../../../scheduler/fires/due-index.ts';
import type { PinnedTasks } from '../../../scheduler/pinned-tasks.ts';
import { WarmUpStage, type StageCalls, type StageOptions } from './warm-up-stage.ts';
import { tasksDue } from './warm-up-tasks.ts';

/** This many tasks that are due within seconds start the warm-up. */
const BURST_TASKS = 100;
/** Tasks per round, and rounds. */
const TASKS_PER_ROUND = 100;
const ROUNDS = 48;
/** How long the tasks of a round may be prepared. Milliseconds. */
const LEAD_TIME = 20;
/** The warm-up ends after this time, as the real tasks are due two seconds after its start. Milliseconds. */
const TIME_LIMIT = 1_400;
/** How many real tasks serve as models. */
const MAX_MODELS = 50;

export interface WarmUpOptions extends StageOptions {
  readonly tasks: Pick<PinnedTasks, 'at'>;
  readonly telemetry: Telemetry;
}

/** Tasks that are due soon. */
type Due = readonly Pick<DueEntry, 'taskId' | 'state'>[];

/** The extent of a warm-up. */
export interface WarmUpExtent {
  /** Per round. */
  readonly tasks?: number;
  readonly rounds?: number;
  /** Milliseconds. */
  readonly timeLimit?: number;
  /** Real tasks that are about to be due. */
  readonly models?: readonly TaskDefinition[];
}

/**
 * Fires and runs tasks in schedulers and workers of its own, over a log that keeps nothing. First calls are many times
 * slower than later ones, and compiling takes the second processor: the last of many due tasks would be late by that.
 *
 * Each round waits for the end of the one before; on a slow machine, deciding would otherwise crowd out starts and ends.
 * Two stages run in parallel with different functions: code that has called two functions is not discarded when it calls
 * the real one.
 *
 * @returns how many runs have ended
 */
export async function warmUp(
  options: StageOptions,
  signal: AbortSignal,
  extent: WarmUpExtent = {},
): Promise<number> {
  const { tasks = TASKS_PER_ROUND, rounds = ROUNDS, timeLimit = TIME_LIMIT, models = [] } = extent;
  const { clock } = options;
  const done = new AbortController();
  let isOver = false;
  const over = clock
    .sleep(timeLimit, AbortSignal.any([signal, done.signal]))
    .catch((error: unknown) => {
      if (!signal.aborted && !done.signal.aborted) throw error;
    })
    .finally(() => (isOver = true));
  let left = rounds;
  const perform = async (ends: Ends, calls: StageCalls): Promise<void> => {
    while (left > 0 && !isOver) {
      const now = clock.now();
      const events = tasksDue({ at: now + LEAD_TIME, tasks, number: left }, now, models);
      left -= 1;
      const stage = new WarmUpStage(options, events, calls);
      try {
        await Promise.race([ends.reach(ends.count + tasks), over]);
      } finally {
        await stage.end();
      }
    }
  };
  const [first, second] = [new Ends(), new Ends()];
  try {
    await Promise.all([
      perform(first, firstCalls(clock, first)),
      perform(second, secondCalls(clock, second)),
    ]);
  } finally {
    done.abort();
    await over;
  }
  return first.count + second.count;
}

/** Counts ended runs. */
class Ends {
  count = 0;
  #awaited = Number.POSITIVE_INFINITY;
  #reached: () => void = () => {};

  add(): void {
    this.count += 1;
    if (this.count >= this.#awaited) this.#reached();
  }

  /** Resolves at this count. */
  reach(count: number): Promise<void> {
    this.#awaited = count;
    return new Promise((resolve) => (this.#reached = resolve));
  }
}

function firstCalls(clock: Clock, ends: Ends): StageCalls {
  return {
    admit: () => ({ kind: 'go' }),
    handOver: () => null,
    released: () => ends.add(),
    lost: () => {},
    timer: (at, callback) => clock.at(at, callback),
    requests: { leaveToScheduler: () => () => {}, noteRequested: () => {} },
  };
}

/** A deliberate copy: to V8 these are other functions. */
function secondCalls(clock: Clock, ends: Ends): StageCalls {
  return {
    admit: () => ({ kind: 'go' }),
    handOver: () => null,
    released: () => ends.add(),
    lost: () => {},
    timer: (at, callback) => {
      const cancel = clock.at(at, callback);
      return () => cancel();
    },
    requests: { leaveToScheduler: () => () => {}, noteRequested: () => {} },
  };
}

/**
 * Warms up once, when many tasks are about to be due for the first time.
 *
 * @returns a function to call with the tasks that are due in the next seconds
 */
export function warmUpOnce(options: WarmUpOptions, signal: AbortSignal): (due: Due) => void {
  const { tasks, telemetry } = options;
  let isDone = false;
  const modelsOf = async (due: Due): Promise<TaskDefinition[]> => {
    const reading = due.slice(0, MAX_MODELS).map(async ({ taskId, state }) => {
      const { definition } = await tasks.at(taskId, state.task_revision);
      return definition;
    });
    // Unreadable tasks are no models.
    return (await Promise.allSettled(reading)).flatMap((model) =>
      model.status === 'fulfilled' ? model.value : [],
    );
  };
  return (due) => {
    if (isDone || due.length < BURST_TASKS) return;
    isDone = true;
    const begun = performance.now();
    const warmingUp = modelsOf(due).then((models) => warmUp(options, signal, { models }));
    warmingUp.then(
      (runs) => {
        const milliseconds = Math.round(performance.now() - begun);
        const fields = { due: due.length, runs, milliseconds };
        telemetry.log.debug('warmed up, many tasks are about to be due', fields);
      },
      (error: unknown) => telemetry.log.warn('warm-up failed (harmless)', { error }),
    );
  };
}
