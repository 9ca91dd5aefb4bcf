import type { Clock } from '../../domain/clock.ts';
import type { Telemetry } from '../../observability/telemetry.ts';
import type { CallSlots } from '../../scheduler/call-slots.ts';
import { createQueueAudit } from '../../scheduler/audit/scheduler-audit.ts';
import { FailurePause } from '../../scheduler/runs/failure-pause.ts';
import type { Hold } from '../../scheduler/hold.ts';
import { instantRuns, runsStartingWithEnd } from '../../scheduler/runs/instant-runs.ts';
import { KeyKeeper } from '../../scheduler/keys/key-keeper.ts';
import type { Membership } from '../../scheduler/processes/membership.ts';
import { RunDeadlines } from '../../scheduler/runs/run-deadlines.ts';
import { RunExecutor } from '../../scheduler/runs/run-executor.ts';
import { RunQueue, type QueuedRun } from '../../scheduler/runs/run-queue.ts';
import type { PipelineRunner } from '../../scheduler/runs/run-work.ts';
import { TakeOver } from '../../scheduler/runs/take-over.ts';
import { runAdmission } from '../../scheduler/runs/task-admission.ts';
import type { ToolRegistry } from '../../scheduler/tools/registry.ts';
import { Worker } from '../../scheduler/worker.ts';
import type { Going } from './going.ts';
import type { LiveIndexes } from './live-indexes.ts';
import { pipelineRunner } from './pipeline-runner.ts';
import type { Stores } from '../stores.ts';

export interface WorkerRole {
  readonly worker: Worker;
  readonly queue: RunQueue;
  readonly runPipeline: PipelineRunner;
  /** Finishes what runs, hands back the rest. */
  drain(): Promise<void>;
}

/** Starts the part that executes runs. */
export function startWorkerRole(options: {
  readonly stores: Stores;
  readonly indexes: LiveIndexes;
  readonly membership: Membership;
  readonly tools: ToolRegistry;
  readonly clock: Clock;
  readonly telemetry: Telemetry;
  readonly going: Going;
  readonly hold: Hold;
  readonly concurrency: number;
  /** Slots that tools take which are called directly. */
  readonly calls: CallSlots | undefined;
  readonly secrets: (name: string) => string | undefined;
}): WorkerRole {
  const { stores, indexes, membership, tools, clock, telemetry, going, hold, concurrency } =
    options;
  const { store, readModel, coordination } = stores;
  const queue = new RunQueue(store, readModel, clock, telemetry);
  const shared = { store, queue, membership, clock, telemetry, tasks: indexes.pinnedTasks };
  const keys = new KeyKeeper({ ...shared, hasRoom: (run) => worker.hasRoom(run) });
  const failures = new FailurePause({ ...shared, readModel, name: membership.id });
  const { secrets } = options;
  const runPipeline = pipelineRunner({ store, tools, clock, telemetry, secrets });
  const isInstant = instantRuns(indexes.pinnedTasks, tools, (run) => keys.isGranted(run));
  const executor = new RunExecutor({
    ...shared,
    runPipeline,
    startsWithEnd: runsStartingWithEnd(indexes.pinnedTasks, tools, isInstant),
    admit: runAdmission(indexes.pinnedTasks, keys, clock),
    handOver: (run, task, end) => keys.handOver(run, task, end),
    released: (run, task) => {
      keys.released(run, task);
      failures.after(run, task);
    },
    lost: (run, task) => keys.lost(run, task),
    random: Math.random,
  });
  const parks = (run: QueuedRun): boolean => keys.parks(run);
  const affinityOf = (run: QueuedRun): string => keys.affinityOf(run);
  const worker = new Worker({
    ...shared,
    executor,
    hold,
    slots: concurrency,
    calls: options.calls,
    isInstant,
    parks,
    affinityOf,
  });
  hold.onChange(() => worker.wake());
  const takeOver = new TakeOver({
    ...shared,
    coordination,
    failed: (run, task) => failures.afterEnd(run, task),
  });
  const deadlines = new RunDeadlines({
    ...shared,
    failed: (run, task) => failures.afterEnd(run, task),
  });
  const audit = createQueueAudit({ ...shared, readModel, coordination });
  const { signal } = going;
  membership.onAlive = () => worker.wake();
  going.keep('following runs', (started) =>
    queue.follow(signal, () => {
      worker.start();
      started();
    }),
  );
  going.keep('following keys', (started) => keys.follow(signal, started));
  going.keep('looking after keys', async (started) => {
    started();
    await keys.mind(signal);
  });
  going.keep('freeing runs of workers that are gone', async (started) => {
    started();
    await takeOver.run(signal);
  });
  going.keep('auditing the queue', async (started) => {
    started();
    await audit.run(signal);
  });
  const drain = async (): Promise<void> => {
    await worker.drain();
    await deadlines.stop();
    await keys.settled();
    await failures.settled();
  };
  return { worker, queue, runPipeline, drain };
}
