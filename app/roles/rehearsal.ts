import type { Clock } from '../../domain/clock.ts';
import type { RecordedEvent } from '../../domain/event-store.ts';
import type { TaskDefinition } from '../../domain/tasks/task-definition.ts';
import type { Telemetry } from '../../observability/telemetry.ts';
import type { DueEntry } from '../../scheduler/fires/due-index.ts';
import type { PinnedTasks } from '../../scheduler/pinned-tasks.ts';
import { RehearsalStage, type StageCalls, type StageMeans } from './rehearsal-stage.ts';
import { tasksDue } from './rehearsal-tasks.ts';

/** So many tasks that are due within seconds are many. */
const MANY = 100;
/** Tasks that are due at once, how often, and how long apart: what else there is to do gets its turn between. */
const TASKS = 100;
const TIMES = 48;
const APART = 24;
/** Milliseconds from the beginning to the first, in which all are made ready. */
const LEAD = 150;
/** Milliseconds behind the last, by when all have ended, or are given up. */
const REST = 100;
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
  /** Real tasks that are about to be due. */
  readonly models?: readonly TaskDefinition[];
}

/**
 * Has tasks become due, run and end as real ones do, in schedulers and workers of their own, over a log that keeps
 * nothing. Code that runs for the first time takes many times as long as later, and compiling it takes the second
 * processor: where many tasks are due at one instant, that would be the time by which the last of them is late.
 *
 * There are two stages, which take turns and are given different functions. What has always called the same one is
 * compiled for that alone, and would be thrown away when it calls the real one; what has called two takes any.
 *
 * @returns how many runs have ended
 */
export async function rehearse(
  means: StageMeans,
  signal: AbortSignal,
  { tasks = TASKS, times = TIMES, models = [] }: RehearsalOptions = {},
): Promise<number> {
  const { clock } = means;
  const now = clock.now();
  const events = tasksDue({ first: now + LEAD, apart: APART, times, tasks }, now, models);
  let ended = 0;
  const one = oneWay(clock, () => (ended += 1));
  const other = otherWay(clock, () => (ended += 1));
  const stages = [
    new RehearsalStage(means, ofStage(events, tasks, 0), one),
    new RehearsalStage(means, ofStage(events, tasks, 1), other),
  ];
  try {
    await clock.sleep(LEAD + times * APART + REST, signal);
  } catch (error) {
    if (!signal.aborted) throw error;
  } finally {
    await Promise.all(stages.map((stage) => stage.end()));
  }
  return ended;
}

/** Of two stages, each has every second of the times. */
function ofStage(events: readonly RecordedEvent[], tasks: number, stage: number): RecordedEvent[] {
  return events.filter((_, index) => Math.floor(index / tasks) % 2 === stage);
}

function oneWay(clock: Clock, onEnded: () => void): StageCalls {
  return {
    admit: () => ({ kind: 'go' }),
    handOver: () => null,
    released: () => onEnded(),
    lost: () => {},
    timer: (at, callback) => clock.at(at, callback),
    onRequested: () => {},
  };
}

/** The same once more, on purpose: to V8 these are other functions. */
function otherWay(clock: Clock, onEnded: () => void): StageCalls {
  return {
    admit: () => ({ kind: 'go' }),
    handOver: () => null,
    released: () => onEnded(),
    lost: () => {},
    timer: (at, callback) => {
      const cancel = clock.at(at, callback);
      return () => cancel();
    },
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
