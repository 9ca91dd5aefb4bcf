import { namespaceUse } from '../../api/access/present-counts.ts';
import type { ArtifactKeeping } from '../../domain/artifacts/keep-result.ts';
import type { Clock } from '../../domain/clock.ts';
import type { Wait } from '../../domain/runs/run-waits.ts';
import type { SecretAccess } from '../../domain/secrets/secret-access.ts';
import type { Telemetry } from '../../observability/telemetry.ts';
import { createQueueAudit } from '../../scheduler/audit/scheduler-audit.ts';
import { EarlyStarts } from '../../scheduler/burst/early-starts.ts';
import type { CallSlots } from '../../scheduler/call-slots.ts';
import { RunRate } from '../../scheduler/fairness/run-rate.ts';
import { slotLimits } from '../../scheduler/fairness/slot-limits.ts';
import type { Hold } from '../../scheduler/hold.ts';
import { KeySemaphore } from '../../scheduler/keys/key-semaphore.ts';
import { Leadership } from '../../scheduler/processes/leadership.ts';
import type { Membership } from '../../scheduler/processes/membership.ts';
import { FailurePause } from '../../scheduler/runs/failure-pause.ts';
import { instantRuns, runsStartingWithEnd } from '../../scheduler/runs/instant-runs.ts';
import { RunDeadlines } from '../../scheduler/runs/run-deadlines.ts';
import { RunExecutor } from '../../scheduler/runs/run-executor.ts';
import type { QueuedRun } from '../../scheduler/runs/queued-run.ts';
import type { RunQueue } from '../../scheduler/runs/run-queue.ts';
import type { PipelineRunner } from '../../scheduler/runs/run-work.ts';
import { TakeOver } from '../../scheduler/runs/take-over.ts';
import { runAdmission } from '../../scheduler/runs/task-admission.ts';
import type { ToolRegistry } from '../../scheduler/tools/registry.ts';
import { ChildRuns } from '../../scheduler/waits/child-runs.ts';
import { EventMatching } from '../../scheduler/waits/event-matching.ts';
import { WaitResumer } from '../../scheduler/waits/wait-resumer.ts';
import { WaitTimers } from '../../scheduler/waits/wait-timers.ts';
import { Worker } from '../../scheduler/worker.ts';
import type { SharingSettings } from '../configuration/sharing-settings.ts';
import type { Stores } from '../stores.ts';
import type { Supervisor } from './supervisor.ts';
import type { LiveIndexes } from './live-indexes.ts';
import { ExpressionPool } from './expressions/expression-pool.ts';
import { pipelineRunner } from './pipeline-runner.ts';

export interface WorkerRole {
  readonly worker: Worker;
  readonly queue: RunQueue;
  /** Leads the waits of all runs. */
  readonly waits: Pick<Leadership, 'leads'>;
  readonly runPipeline: PipelineRunner;
  /** Starts runs for the scheduler of this process. */
  readonly early: EarlyStarts;
  /** Begins to take runs. */
  start(): void;
  /** Finishes running runs, and hands back the rest. */
  drain(): Promise<void>;
}

/** How long a run with an unknown tool waits for the current list of workers' tools, in milliseconds. */
const MAX_TOOLS_LAG = 2000;

/** Milliseconds after which another worker takes over leading the waits from a dead one. */
const WAITS_LEASE = 3000;

/** Creates the role that executes runs. */
export function createWorkerRole(options: {
  readonly stores: Stores;
  readonly indexes: LiveIndexes;
  readonly membership: Membership;
  readonly queue: RunQueue;
  readonly tools: ToolRegistry;
  readonly clock: Clock;
  readonly telemetry: Telemetry;
  readonly supervisor: Supervisor;
  readonly hold: Hold;
  readonly concurrency: number;
  /** How many of those slots one agent or namespace may hold. */
  readonly sharing: Pick<SharingSettings, 'slotsPerAgent' | 'slotsPerNamespace'>;
  /** Slots that direct tool calls take. */
  readonly calls: CallSlots | undefined;
  readonly secrets: Pick<SecretAccess, 'values' | 'open'>;
  /** Stores large results. */
  readonly artifacts: ArtifactKeeping;
  /** The address of a callback. */
  readonly callbackUrl: (token: string) => string;
}): WorkerRole {
  const { stores, membership, tools, clock, telemetry, supervisor, hold, secrets } = options;
  const { callbackUrl, artifacts, sharing } = options;
  const { store, readModel, coordination } = stores;
  const { pinnedTasks: tasks, owners, eventPayloads } = options.indexes;
  const { queue } = options;
  const shared = { store, queue, membership, clock, telemetry, tasks };
  const keys = new KeySemaphore({ ...shared, hasRoom: (run) => worker.hasRoom(run) });
  const failures = new FailurePause({ ...shared, readModel, name: membership.id });
  const failed = failures.afterEnd.bind(failures);
  const evaluator = new ExpressionPool();
  const runPipeline = pipelineRunner({
    store,
    tools,
    clock,
    telemetry,
    secrets,
    callbackUrl,
    artifacts,
    evaluator,
    owners,
    eventPayloads,
    refreshTools: () => options.indexes.workers.catchUp(clock, MAX_TOOLS_LAG),
  });
  const { quotas } = options.indexes;
  const eventsOf = async (namespace: string) => (await namespaceUse(stores, namespace)).events;
  const rate = new RunRate({ ...shared, coordination, quotas, eventsOf });
  const isInstant = instantRuns(tasks, tools, (run) => keys.isGranted(run));
  const executor = new RunExecutor({
    ...shared,
    runPipeline,
    startsWithEnd: runsStartingWithEnd(tasks, tools, isInstant),
    admit: runAdmission(tasks, keys, clock, { rate, owners }),
    handOver: (run, task, end) => keys.handOver(run, task, end),
    released: (run, task) => {
      keys.released(run, task);
      failures.after(run, task);
    },
    lost: (run, task) => keys.lost(run, task),
    random: Math.random,
  });
  const worker = new Worker({
    ...shared,
    executor,
    hold,
    slots: options.concurrency,
    limits: slotLimits(options.concurrency, sharing.slotsPerAgent, sharing.slotsPerNamespace),
    calls: options.calls,
    isInstant,
    parks: (run: QueuedRun) => rate.park(run) || keys.park(run),
    affinityOf: (run: QueuedRun) => keys.affinityOf(run),
  });
  // A run that counts towards a quota must be admitted before it starts.
  const mayStartEarly = (run: QueuedRun, granted: boolean): boolean =>
    !rate.limits(run.namespace) && isInstant(run, granted);
  const early = new EarlyStarts({ ...shared, executor, worker, isInstant: mayStartEarly });
  const takeOver = new TakeOver({ ...shared, coordination, failed });
  const deadlines = new RunDeadlines({ ...shared, failed, hold });
  const leading = { ...shared, coordination, owner: membership.id };
  const leadership = new Leadership({ ...leading, name: 'waits', lease: WAITS_LEASE });
  const resumer = new WaitResumer({
    ...shared,
    source: membership.id,
    secrets: secrets.values,
    artifacts,
  });
  const awaiting = { ...shared, resumer, leadership, source: membership.id, artifacts };
  const children = new ChildRuns(awaiting);
  const matching = new EventMatching({ ...awaiting, coordination });
  const isUnmet = async (run: QueuedRun, wait: Wait): Promise<boolean> =>
    (await children.isUnmet(run, wait)) && matching.isUnmet(run, wait);
  const timers = new WaitTimers({ ...awaiting, hold, isUnmet });
  const audit = createQueueAudit({ ...shared, readModel, coordination });
  hold.onChange(() => {
    worker.wake();
    timers.holdChanged();
    deadlines.holdChanged();
  });
  const start = (): void => {
    const { signal } = supervisor;
    supervisor.supervise('following runs', (started) =>
      queue.follow(signal, () => {
        worker.start();
        started();
      }),
    );
    supervisor.supervise('following keys', (started) => keys.follow(signal, started));
    supervisor.superviseStarted('checking keys', () => keys.recheckPeriodically(signal));
    supervisor.superviseStarted('leading the waits', () => leadership.run(signal));
    supervisor.superviseStarted('following child runs', () => children.run(signal));
    supervisor.superviseStarted('matching events with waits', () => matching.run(signal));
    supervisor.superviseStarted('freeing runs of dead workers', () => takeOver.run(signal));
    supervisor.superviseStarted('auditing the queue', () => audit.run(signal));
  };
  const drain = async (): Promise<void> => {
    early.beginAll();
    await worker.drain();
    await timers.stop();
    await children.stop();
    await matching.stop();
    await deadlines.stop();
    await keys.settled();
    await failures.settled();
    await evaluator.close();
  };
  return { worker, queue, waits: leadership, runPipeline, early, start, drain };
}
