import { toIso, type Clock, type Instant } from '../../domain/clock.ts';
import type { EventStore, RecordedEvent } from '../../domain/event-store.ts';
import type { TaskEvent } from '../../domain/events/catalogue.ts';
import { toNewEvents } from '../../domain/handle.ts';
import { newId } from '../../domain/ids.ts';
import { streams } from '../../domain/streams.ts';
import { withDefaults } from '../../domain/tasks/task-definition.ts';
import { createTask, taskFold, type TaskState } from '../../domain/tasks/task.ts';
import type { ProcessTelemetry } from '../../observability/create-telemetry.ts';
import { decorated } from '../../domain/decorated.ts';
import type { Hold } from '../../scheduler/hold.ts';
import { silent } from '../../observability/telemetry.ts';
import { LiveStreams } from '../../projections/reading/live-streams.ts';
import type { ReadableViews } from '../../projections/reading/load-view.ts';
import { ReadModelError } from '../../projections/read-model.ts';
import { DueIndex } from '../../scheduler/fires/due-index.ts';
import { PinnedTasks } from '../../scheduler/pinned-tasks.ts';
import type { Membership } from '../../scheduler/processes/membership.ts';
import { instantRuns } from '../../scheduler/runs/instant-runs.ts';
import { RunExecutor } from '../../scheduler/runs/run-executor.ts';
import { RunQueue } from '../../scheduler/runs/run-queue.ts';
import type { PipelineRunner } from '../../scheduler/runs/run-work.ts';
import { Scheduler } from '../../scheduler/scheduler.ts';
import type { ToolRegistry } from '../../scheduler/tools/registry.ts';
import { Worker } from '../../scheduler/worker.ts';
import { RehearsalLog } from './rehearsal-log.ts';

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

/** What is rehearsed with. */
export interface RehearsalMeans {
  readonly store: EventStore;
  readonly tools: ToolRegistry;
  readonly clock: Clock;
  readonly telemetry: ProcessTelemetry;
  readonly hold: Hold;
  readonly membership: Membership;
  readonly runPipeline: PipelineRunner;
}

/**
 * Has tasks become due, run and end as real ones do, in a scheduler and a worker of its own, over a log that keeps
 * nothing. Code that runs for the first time takes many times as long as later, and compiling it takes the second
 * processor: where many tasks are due at one instant, that would be the time by which the last of them is late.
 *
 * @returns how many runs have ended
 */
export async function rehearse(
  means: RehearsalMeans,
  signal: AbortSignal,
  { tasks: atOnce, times } = { tasks: TASKS, times: TIMES },
): Promise<number> {
  const { store, tools, clock, hold, membership, runPipeline } = means;
  const first = clock.now() + LEAD;
  // What V8 compiles counts for objects of the same form: the log of a rehearsal has that of the real one.
  const own = decorated<EventStore>(
    new RehearsalLog(store, tasksDue(first, clock.now(), atOnce, times)),
    {},
  );
  const log = decorated(store, own);
  const { metrics } = means.telemetry;
  const telemetry: ProcessTelemetry = {
    log: silent.log,
    metrics,
    count: () => {},
    observe: () => {},
  };
  const ending = new AbortController();
  const live = new LiveStreams<TaskState, TaskEvent>(log, streams.task(''), taskFold);
  const tasks = new PinnedTasks(log, live);
  const index = new DueIndex(log, noViews, telemetry);
  const shared = { store: log, clock, telemetry, hold, membership, tasks };
  const scheduler = new Scheduler({
    ...{ ...shared, index, name: membership.id },
    leadership: { leads: true, onChange: () => {} },
  });
  const queue = new RunQueue(log, noViews, clock, telemetry);
  let ended = 0;
  const executor = new RunExecutor({
    ...{ ...shared, queue, runPipeline, random: Math.random },
    admit: () => ({ kind: 'go' }),
    released: () => (ended += 1),
    lost: () => {},
  });
  const worker = new Worker({
    ...shared,
    queue,
    executor,
    slots: 1,
    isInstant: instantRuns(tasks, tools),
  });
  scheduler.writer.early = worker.early;
  scheduler.onSoon = (taskId, revision) => tasks.prepare(taskId, revision);
  const following = [
    live.follow(ending.signal, () => {}),
    index.follow(ending.signal, () => scheduler.start()),
  ];
  worker.start();
  try {
    await clock.sleep(LEAD + times * APART + REST, signal);
  } catch (error) {
    if (!signal.aborted) throw error;
  } finally {
    await scheduler.stop();
    await worker.drain(0);
    ending.abort();
    await Promise.all(following);
  }
  return ended;
}

/**
 * Rehearses when many tasks are about to be due for the first time, and never again.
 *
 * @returns to be told how many are due in the next seconds
 */
export function rehearsingOnce(
  means: RehearsalMeans,
  signal: AbortSignal,
): (tasks: number) => void {
  let rehearsed = false;
  const { log } = means.telemetry;
  return (due) => {
    if (rehearsed || due < MANY) return;
    rehearsed = true;
    const begun = performance.now();
    rehearse(means, signal).then(
      (runs) => {
        const milliseconds = Math.round(performance.now() - begun);
        log.debug('many tasks are about to be due: that was rehearsed', {
          due,
          runs,
          milliseconds,
        });
      },
      (error: unknown) => log.warn('a rehearsal has failed, which harms nothing', { error }),
    );
  };
}

/** The tasks of a rehearsal, as the log would tell of them. */
function tasksDue(first: Instant, now: Instant, atOnce: number, times: number): RecordedEvent[] {
  return Array.from({ length: atOnce * times }, (_, index) => {
    const at = toIso(first + Math.floor(index / atOnce) * APART);
    const id = newId(now);
    const stream = streams.task(id);
    const definition = withDefaults({
      title: 'rehearsal',
      description: '',
      schedule_kind: 'once',
      schedule_expr: at,
      payload: { pipeline: [{ uses: 'echo', with: { index } }] },
      created_by: id,
    });
    const created = createTask({ status: 'none' }, definition, {
      anchor: toIso(now),
      next_fire_at: at,
    });
    const context = {
      commandId: id,
      actor: 'service',
      source: 'rehearsal',
      correlationId: id,
      now,
    };
    const [event] = toNewEvents(stream, created, context);
    if (event === undefined) throw new Error('a task begins with an event');
    // As they come from another process, and as they are made in this one: for V8 these are objects of two forms.
    const read = index % 2 === 0 ? (JSON.parse(JSON.stringify(event)) as typeof event) : event;
    return { ...read, stream, revision: 0, position: String(index), createdAt: toIso(now) };
  });
}

/** All comes from the log. */
const noViews: ReadableViews = {
  checkpoint: async () => {
    throw new ReadModelError('NO_VIEW', 'a rehearsal has no views');
  },
  find: async () => [],
};
