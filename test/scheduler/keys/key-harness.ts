import { expect } from 'chai';
import { toIso, type Clock } from '../../../domain/clock.ts';
import { BEGINNING, type EventStore, type RecordedEvent } from '../../../domain/event-store.ts';
import { createEventCodec } from '../../../domain/events/codec.ts';
import { load, type CommandContext } from '../../../domain/handle.ts';
import { newId } from '../../../domain/ids.ts';
import { requestRun, type Requested } from '../../../domain/runs/run-request.ts';
import { runFold, type RunState } from '../../../domain/runs/run.ts';
import { streams } from '../../../domain/streams.ts';
import { createTaskCommand } from '../../../domain/tasks/task-commands.ts';
import { taskDefaults, type TaskDefinition } from '../../../domain/tasks/task-definition.ts';
import { taskFold } from '../../../domain/tasks/task.ts';
import type { RunTrigger } from '../../../domain/vocabulary.ts';
import { silent } from '../../../observability/telemetry.ts';
import { LiveStreams } from '../../../projections/reading/live-streams.ts';
import { ReadModelError, type ReadModel } from '../../../projections/read-model.ts';
import type { Coordination } from '../../../scheduler/coordination.ts';
import { KeySemaphore } from '../../../scheduler/keys/key-semaphore.ts';
import { Membership } from '../../../scheduler/processes/membership.ts';
import { PinnedTasks } from '../../../scheduler/pinned-tasks.ts';
import { RunDeadlines } from '../../../scheduler/runs/run-deadlines.ts';
import { RunExecutor } from '../../../scheduler/runs/run-executor.ts';
import type { PipelineOutcome } from '../../../scheduler/runs/run-work.ts';
import type { QueuedRun } from '../../../scheduler/runs/queued-run.ts';
import { RunQueue } from '../../../scheduler/runs/run-queue.ts';
import { TakeOver } from '../../../scheduler/runs/take-over.ts';
import { runAdmission } from '../../../scheduler/runs/task-admission.ts';
import { Worker } from '../../../scheduler/worker.ts';
import { openSqliteCoordination } from '../../../stores/sqlite/coordination/coordination.ts';
import { openSqliteEventStore } from '../../../stores/sqlite/event-log/event-store.ts';
import { ShiftedClock } from '../../support/shifted-clock.ts';
import { deferred, eventually, type Deferred } from '../../support/signals.ts';
import {
  makeTemporaryDirectory,
  type TemporaryDirectory,
} from '../../support/temporary-directory.ts';
import { MortalStore } from './mortal-store.ts';

/** The heartbeat lease in milliseconds. It is long enough that a worker on a busy machine never counts as dead. */
export const LEASE = 30_000;

/** The lease of a worker that a test kills while others know it. They soon notice that it is dead. */
export const SHORT_LEASE = 1500;

/** How often each process checks for runs of dead workers, whatever the lease. Milliseconds. */
const TAKE_OVER_INTERVAL = 200;

export const OWNER = 'agent-1';

/** No view was ever built: loading one starts with the log. */
const noViews = {
  checkpoint: () => Promise.reject(new ReadModelError('NO_VIEW', 'there is no view')),
} as unknown as ReadModel;

/** A worker process, composed like the service's, whose pipelines end when a test says so. */
export class WorkerProcess {
  readonly store: MortalStore;
  readonly queue: RunQueue;
  readonly tasks: PinnedTasks;
  readonly keeper: KeySemaphore;
  readonly worker: Worker;
  readonly membership: Membership;
  /** Tests may replace it. */
  hasRoom = (run: QueuedRun): boolean => this.worker.hasRoom(run);
  readonly executed: string[] = [];
  readonly #deadlines: RunDeadlines;
  readonly #controller = new AbortController();
  readonly #gates = new Map<string, Deferred<PipelineOutcome>>();
  readonly #works: Promise<void>[] = [];
  readonly #hold: boolean;
  readonly #takeOver: TakeOver;

  constructor(options: {
    readonly id: string;
    readonly store: MortalStore;
    readonly clock: Clock;
    readonly coordination: Coordination;
    readonly slots: number;
    readonly lease: number;
    /** Pipelines wait for {@link finish}; otherwise they succeed at once. */
    readonly hold: boolean;
  }) {
    const { id, store, clock, coordination, slots, lease } = options;
    this.store = store;
    this.#hold = options.hold;
    const { signal } = this.#controller;
    const about = { roles: ['worker'] };
    const telemetry = silent;
    const onAlive = (): void => this.worker.wake();
    const member = { id, lease, about, onAlive };
    this.membership = new Membership({ ...member, coordination, clock, telemetry });
    this.queue = new RunQueue(store, noViews, clock, telemetry);
    const live = new LiveStreams(store, 'task-', taskFold);
    this.tasks = new PinnedTasks(store, live);
    const { queue, membership, tasks } = this;
    const shared = { store, queue, tasks, membership, clock, telemetry };
    const keeper = new KeySemaphore({ ...shared, hasRoom: (run) => this.hasRoom(run) });
    this.keeper = keeper;
    const executor = new RunExecutor({
      ...shared,
      runPipeline: ({ run, stop }) => this.#execute(run.id, stop.signal),
      admit: runAdmission(tasks, keeper, clock),
      handOver: (run, task, end) => keeper.handOver(run, task, end),
      released: (run, task) => keeper.released(run, task),
      lost: (run, task) => keeper.lost(run, task),
      random: Math.random,
    });
    this.worker = new Worker({
      queue,
      executor,
      membership,
      clock,
      telemetry,
      slots,
      parks: (run) => keeper.park(run),
      affinityOf: (run) => keeper.affinityOf(run),
    });
    this.#takeOver = new TakeOver({ ...shared, coordination });
    this.#deadlines = new RunDeadlines(shared);
    store.onDeath = () => this.#controller.abort();
    this.#works.push(
      membership.run(signal),
      live.follow(signal),
      keeper.follow(signal),
      keeper.recheckPeriodically(signal),
      this.#takeOverOften(clock, signal),
      queue.follow(signal, () => this.worker.start()),
    );
  }

  async #takeOverOften(clock: Clock, signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      // After a failure, the next pass tries again.
      await this.#takeOver.pass().catch(() => {});
      await clock.sleep(TAKE_OVER_INTERVAL, signal).catch(() => {});
    }
  }

  #execute(runId: string, stop: AbortSignal): Promise<PipelineOutcome> {
    this.executed.push(runId);
    if (!this.#hold) return Promise.resolve(succeeded);
    const gate = deferred<PipelineOutcome>();
    this.#gates.set(runId, gate);
    const aborted = { kind: 'aborted', steps: [], output: {} } as const;
    stop.addEventListener('abort', () => gate.resolve(aborted), { once: true });
    return gate.promise;
  }

  /** Ends a run's pipeline. */
  finish(runId: string, outcome: PipelineOutcome = succeeded): void {
    const gate = this.#gates.get(runId);
    if (gate === undefined) throw new Error(`${runId} is not executed here`);
    this.#gates.delete(runId);
    gate.resolve(outcome);
  }

  /** The runs that are being executed here. */
  running(): readonly string[] {
    return [...this.#gates.keys()];
  }

  /** Crashes: it appends nothing more. */
  async kill(): Promise<void> {
    this.store.die();
    void this.#deadlines.stop();
    await Promise.allSettled(this.#works);
  }

  async stop(): Promise<void> {
    if (!this.store.dead) {
      for (const runId of this.running()) this.finish(runId);
      await this.worker.drain(0);
      await this.#deadlines.stop();
      await this.keeper.settled();
    }
    this.#controller.abort();
    await Promise.allSettled(this.#works);
  }
}

const succeeded: PipelineOutcome = { kind: 'succeeded', steps: [], output: {} };

/** A pipeline that fails and may be tried again. */
export const failed: PipelineOutcome = {
  kind: 'failed',
  error: 'out of paper',
  step: null,
  retryable: true,
  steps: [],
  output: {},
};

/** A log that several processes write, in its own folder. */
export class KeyWorld {
  readonly clock = new ShiftedClock();
  readonly store: EventStore;
  readonly #directory: TemporaryDirectory;
  readonly #coordination: Coordination;
  readonly #opened: EventStore[] = [];
  readonly #processes: WorkerProcess[] = [];

  private constructor(
    directory: TemporaryDirectory,
    store: EventStore,
    coordination: Coordination,
  ) {
    this.#directory = directory;
    this.store = store;
    this.#coordination = coordination;
  }

  static async open(): Promise<KeyWorld> {
    const directory = await makeTemporaryDirectory();
    const store = await openLog(directory.path);
    const coordination = await openSqliteCoordination({
      directory: directory.path,
      telemetry: silent,
    });
    return new KeyWorld(directory, store, coordination);
  }

  /** Opens the log like another process. */
  async connect(): Promise<MortalStore> {
    const store = await openLog(this.#directory.path);
    this.#opened.push(store);
    return new MortalStore(store);
  }

  async process(
    id: string,
    options: {
      readonly slots?: number;
      readonly hold?: boolean;
      readonly store?: MortalStore;
      readonly lease?: number;
    } = {},
  ): Promise<WorkerProcess> {
    const { slots = 8, hold = true, store = await this.connect(), lease = LEASE } = options;
    const { clock } = this;
    const coordination = this.#coordination;
    const process = new WorkerProcess({ id, store, clock, coordination, slots, lease, hold });
    this.#processes.push(process);
    return process;
  }

  async task(id: string, changes: Partial<TaskDefinition> = {}): Promise<void> {
    await createTaskCommand({
      store: this.store,
      taskId: id,
      definition: {
        ...taskDefaults,
        title: id,
        description: id,
        schedule_kind: 'event',
        payload: { pipeline: [] },
        created_by: OWNER,
        ...changes,
      },
      context: this.context(`create ${id}`),
    });
  }

  /** Requests a run of a task, by default manually. */
  async request(
    taskId: string,
    runId: string,
    options: {
      readonly store?: EventStore;
      readonly trigger?: RunTrigger;
      readonly scheduledFor?: string;
      readonly priority?: number;
      readonly retryOf?: string;
    } = {},
  ): Promise<Requested> {
    const { state } = await load(this.store, streams.task(taskId), taskFold);
    if (state.status === 'none') throw new Error(`there is no task ${taskId}`);
    const { definition, revision } = state;
    const context = this.context(`request ${runId}`);
    return requestRun(options.store ?? this.store, {
      runId,
      rules: definition,
      context,
      request: {
        task_id: taskId,
        task_revision: revision,
        created_by: OWNER,
        trigger: options.trigger ?? 'manual',
        scheduled_for: options.scheduledFor ?? null,
        priority: options.priority ?? definition.priority,
        run_at: options.scheduledFor ?? toIso(context.now),
        event: null,
        retry_of: options.retryOf ?? null,
        prior_steps: [],
        overlap_policy: definition.overlap_policy,
      },
    });
  }

  context(commandId: string): CommandContext {
    const now = this.clock.now();
    return { commandId, actor: OWNER, source: 'test', correlationId: newId(now), now };
  }

  async run(runId: string): Promise<RunState> {
    return (await load(this.store, streams.run(runId), runFold)).state;
  }

  /** Waits until a run is in a state. */
  async reaches(runId: string, state: RunState['state']): Promise<void> {
    const what = `${runId} to be ${state}`;
    await soon(async () => expect((await this.run(runId)).state).to.equal(state), what);
  }

  async log(): Promise<readonly RecordedEvent[]> {
    const events: RecordedEvent[] = [];
    for (let after = BEGINNING; ; after = events.at(-1)?.position ?? after) {
      const page = await this.store.readAll(after, 1000);
      events.push(...page);
      if (page.length === 0) return events;
    }
  }

  async close(): Promise<void> {
    for (const process of this.#processes) await process.stop();
    await this.#coordination.close();
    await Promise.all([...this.#opened, this.store].map((store) => store.close()));
    await this.#directory.remove();
  }
}

/** Waits until a check succeeds. */
export function soon(check: () => unknown, what = 'what is expected'): Promise<void> {
  return eventually(
    async () => {
      await check();
    },
    { what },
  );
}

function openLog(directory: string): Promise<EventStore> {
  return openSqliteEventStore({ directory, codec: createEventCodec(), telemetry: silent });
}

/**
 * Reads a log and reports where a key had more holders than its limit, or a run started without the key that it needs.
 */
export function faultsOfKeys(
  log: readonly RecordedEvent[],
  kind: 'concurrency' | 'overlap',
  limit: number,
): readonly string[] {
  const faults: string[] = [];
  const running = new Set<string>();
  let holders = new Set<string>();
  for (const event of log) {
    if (event.stream.startsWith('run-')) {
      const id = event.stream.slice('run-'.length);
      if (event.type === 'RunStarted') running.add(id);
      else if (!['RunStepCompleted', 'RunCancelRequested'].includes(event.type)) running.delete(id);
    } else if (event.stream.startsWith('key-') && 'holders' in event.data) {
      if (event.data.kind !== kind) continue;
      holders = new Set(event.data.holders.map(({ run_id }) => run_id));
      if (holders.size > limit) faults.push(`${event.position}: ${[...holders].join()} hold it`);
    }
    for (const id of running) {
      if (!holders.has(id)) faults.push(`${event.position} ${event.type}: ${id} runs without it`);
    }
  }
  return faults;
}
