import { pipelineRunner } from '../../../app/roles/pipeline-runner.ts';
import { agentFold } from '../../../domain/agents/agent.ts';
import { toIso } from '../../../domain/clock.ts';
import type { RecordedEvent } from '../../../domain/event-store.ts';
import { load } from '../../../domain/handle.ts';
import type { JsonValue } from '../../../domain/json.ts';
import { requireRun, runFold, type KnownRun } from '../../../domain/runs/run.ts';
import { streams } from '../../../domain/streams.ts';
import { cancelRunCommand, requestManualRun } from '../../../domain/tasks/task-commands.ts';
import { quotasFrom, type QuotaSettings } from '../../../domain/namespaces/quotas.ts';
import type { TaskDefinition } from '../../../domain/tasks/task-definition.ts';
import { taskFold } from '../../../domain/tasks/task.ts';
import { LiveStreams } from '../../../projections/reading/live-streams.ts';
import type { Coordination } from '../../../scheduler/coordination.ts';
import { Membership } from '../../../scheduler/processes/membership.ts';
import { anyOwner, LiveOwners } from '../../../scheduler/owners/owners.ts';
import { PinnedTasks } from '../../../scheduler/pinned-tasks.ts';
import { FailurePause } from '../../../scheduler/runs/failure-pause.ts';
import { RunDeadlines } from '../../../scheduler/runs/run-deadlines.ts';
import { RunExecutor } from '../../../scheduler/runs/run-executor.ts';
import type { PipelineRunner } from '../../../scheduler/runs/run-work.ts';
import type { QueuedRun } from '../../../scheduler/runs/queued-run.ts';
import type { SlotLimits } from '../../../scheduler/runs/slots.ts';
import { RunRate } from '../../../scheduler/fairness/run-rate.ts';
import { RunQueue } from '../../../scheduler/runs/run-queue.ts';
import { TakeOver } from '../../../scheduler/runs/take-over.ts';
import { runAdmission } from '../../../scheduler/runs/task-admission.ts';
import { WaitResumer } from '../../../scheduler/waits/wait-resumer.ts';
import { WaitTimers } from '../../../scheduler/waits/wait-timers.ts';
import { Leadership } from '../../../scheduler/processes/leadership.ts';
import { basicTools } from '../../../scheduler/tools/basic-tools.ts';
import { waitingTools } from '../../../scheduler/tools/waiting-tools.ts';
import { ToolRegistry } from '../../../scheduler/tools/registry.ts';
import type { ToolCall } from '../../../scheduler/tools/tool.ts';
import type { CallSlots } from '../../../scheduler/call-slots.ts';
import { EarlyStarts } from '../../../scheduler/burst/early-starts.ts';
import { Worker } from '../../../scheduler/worker.ts';
import { collectingLines } from '../../support/reporting-to.ts';
import { deferred, Signal, type Deferred } from '../../support/signals.ts';
import { World } from '../scheduler-world.ts';
import type { WatchedStore } from '../watched-store.ts';
import { noSecrets } from '../../support/test-secrets.ts';

/** How long a heartbeat lasts here. Milliseconds. */
export const LEASE = 30_000;

/** A tool call with an outside effect. */
export interface Effect {
  readonly worker: string;
  readonly run: string;
  readonly step: string;
  readonly key: string;
}

/** A coordination store that can become unavailable to one process. */
class Reachable {
  away = false;
  readonly coordination: Coordination;

  constructor(coordination: Coordination) {
    this.coordination = new Proxy(coordination, {
      get: (target, property) => {
        const member: unknown = Reflect.get(target, property);
        if (typeof member !== 'function') return member;
        return (...given: readonly unknown[]): unknown =>
          this.away
            ? Promise.reject(new Error('the store is unreachable'))
            : Reflect.apply(member, target, given);
      },
    });
  }
}

const noKeys = { admit: () => ({ kind: 'go' }) as const, postpone: () => {} };

/** Options of a worker in a test. */
interface WorkerOptions {
  readonly slots?: number;
  readonly limits?: SlotLimits;
  readonly quotas?: QuotaSettings;
  readonly calls?: CallSlots;
  readonly runPipeline?: PipelineRunner;
  readonly isInstant?: (run: QueuedRun) => boolean;
  /** It follows the agents that own the tasks. */
  readonly owned?: boolean;
  /** Whether a run's start may be written with its end. Default: never. */
  readonly startsWithEnd?: (run: QueuedRun) => boolean;
}

/** Workers over one log. Their tools act on this world, which records the effects. */
export class WorkerWorld {
  readonly world: World;
  readonly workers: WorkerProcess[] = [];
  readonly effects: Effect[] = [];
  readonly arrived = new Signal<Effect>('effects');
  /** Waiting steps, by worker, run and step. */
  readonly gates = new Map<string, Deferred<void>>();
  /** The number that the quota `events` limits. */
  eventsInLog = 0;
  /** What `act` does, by step. Default: nothing. */
  readonly acts = new Map<string, (call: ToolCall) => unknown>();

  private constructor(world: World) {
    this.world = world;
  }

  static async open(): Promise<WorkerWorld> {
    return new WorkerWorld(await World.open());
  }

  get clock(): World['clock'] {
    return this.world.clock;
  }

  async start(id: string, options: WorkerOptions = {}): Promise<WorkerProcess> {
    const worker = new WorkerProcess(this, id, options);
    this.workers.push(worker);
    await worker.ready.wait();
    await this.world.idle();
    return worker;
  }

  /**
   * Creates a task whose steps call `act` and have these names. `hold:<name>` waits until a test releases it, and
   * `quick:<name>` calls a tool that counts as instant.
   */
  async task(
    id: string,
    steps: readonly string[],
    fields: Partial<TaskDefinition> = {},
  ): Promise<void> {
    const pipeline = steps.map((step) => {
      const [kind, name] = step.includes(':') ? step.split(':') : ['act', step];
      return { id: name ?? step, uses: kind ?? 'act', timeout_seconds: 86_400 };
    });
    const rule = { schedule_kind: 'event', schedule_expr: null } as const;
    const retries = { backoff_strategy: 'fixed', retry_delay_seconds: 10 } as const;
    await this.world.createTask(id, { ...rule, ...retries, payload: { pipeline }, ...fields });
  }

  /** Makes a step fail this many times; then it returns its name. */
  fails(step: string, times = Infinity, error = new Error('out of paper')): void {
    let left = times;
    this.acts.set(step, () => {
      if (left === 0) return { done: step };
      left -= 1;
      throw error;
    });
  }

  /** Requests a manual run. */
  async request(taskId: string): Promise<string> {
    const task = await this.world.task(taskId);
    const { runId } = await requestManualRun(this.world.store, taskId, task, this.world.context());
    await this.world.idle();
    return runId;
  }

  async cancel(runId: string): Promise<void> {
    await cancelRunCommand(this.world.store, runId, this.world.context());
    await this.world.idle();
  }

  async run(runId: string): Promise<KnownRun> {
    return requireRun((await load(this.world.store, streams.run(runId), runFold)).state);
  }

  async eventsOf(runId: string): Promise<readonly RecordedEvent[]> {
    return this.world.store.readStream(streams.run(runId));
  }

  /** Types of a run's events, in order. */
  async typesOf(runId: string): Promise<readonly string[]> {
    return (await this.eventsOf(runId)).map(({ type }) => type.replace(/^Run/, ''));
  }

  /** Steps that had an effect, in order, without their workers. */
  stepsOf(runId: string): readonly string[] {
    return this.effects.filter(({ run }) => run === runId).map(({ step }) => step);
  }

  /** Lets a waiting step continue. */
  async let(worker: string, runId: string, step: string): Promise<void> {
    const gate = this.gates.get(`${worker} ${runId} ${step}`);
    if (gate === undefined) throw new Error(`${step} of ${runId} does not wait in ${worker}`);
    gate.resolve();
    await this.world.idle();
  }

  call(worker: string, kind: string, call: ToolCall): unknown {
    const effect = { worker, run: call.runId, step: call.step, key: call.idempotencyKey };
    this.effects.push(effect);
    this.arrived.send(effect);
    if (kind === 'act') return this.acts.get(call.step)?.(call) ?? null;
    const gate = deferred();
    this.gates.set(`${worker} ${call.runId} ${call.step}`, gate);
    // A `deaf` step ignores its signal.
    if (kind === 'hold') {
      const stop = (): void => gate.reject(new Error('told to stop'));
      call.signal.addEventListener('abort', stop, { once: true });
    }
    return gate.promise.then(() => ({ at: toIso(this.clock.now()) }));
  }

  async close(): Promise<void> {
    for (const worker of this.workers) await worker.stop();
    await this.world.close();
  }
}

export class WorkerProcess {
  readonly id: string;
  readonly store: WatchedStore;
  readonly reachable: Reachable;
  readonly membership: Membership;
  readonly queue: RunQueue;
  readonly worker: Worker;
  readonly early: EarlyStarts;
  readonly takeOver: TakeOver;
  readonly deadlines: RunDeadlines;
  readonly timers: WaitTimers;
  readonly ready = new Signal('the queue to be up to date');
  readonly failures: unknown[] = [];
  /** The messages of its log, except those of level debug. */
  readonly lines: string[] = [];
  readonly #stop = new AbortController();
  readonly #works: Promise<unknown>[] = [];
  readonly #world: WorkerWorld;
  #stopped = false;

  constructor(world: WorkerWorld, id: string, options: WorkerOptions) {
    this.id = id;
    this.#world = world;
    const { clock, readModel } = world.world;
    this.store = world.world.connect();
    this.reachable = new Reachable(world.world.coordination);
    const { coordination } = this.reachable;
    const { store } = this;
    const about = { roles: ['worker'] };
    const telemetry = collectingLines(this.lines, () => clock.steady());
    const onAlive = (): void => this.worker.wake();
    const member = { id, lease: LEASE, about, onAlive };
    this.membership = new Membership({ ...member, coordination, clock, telemetry });
    const { membership } = this;
    const live = new LiveStreams(store, 'task-', taskFold);
    const tasks = new PinnedTasks(store, live);
    const queue = (this.queue = new RunQueue(store, readModel, clock, telemetry));
    const shared = { store, queue, tasks, membership, clock, telemetry };
    const agents = new LiveStreams(store, 'agent-', agentFold);
    const owners = options.owned === true ? new LiveOwners(agents) : anyOwner;
    const tools = new ToolRegistry();
    for (const kind of ['act', 'hold', 'deaf']) {
      const run = (_args: JsonValue, call: ToolCall): unknown => world.call(id, kind, call);
      tools.register({ name: kind, description: kind, schema: {}, run });
    }
    tools.register({
      name: 'quick',
      description: 'quick',
      schema: {},
      synchronous: true,
      run: (_args: JsonValue, call: ToolCall): unknown => world.call(id, 'act', call),
    });
    for (const tool of [...basicTools, ...waitingTools]) tools.register(tool);
    const failurePause = new FailurePause({ ...shared, readModel, name: id });
    const rate = new RunRate({
      ...shared,
      coordination,
      quotas: quotasFrom(options.quotas),
      eventsOf: () => Promise.resolve(world.eventsInLog),
    });
    const parks = (run: QueuedRun): boolean => rate.park(run);
    const executor = new RunExecutor({
      ...shared,
      runPipeline:
        options.runPipeline ?? pipelineRunner({ ...shared, tools, owners, secrets: noSecrets }),
      admit: runAdmission(tasks, noKeys, clock, { rate, owners }),
      ...(options.startsWithEnd === undefined ? {} : { startsWithEnd: options.startsWithEnd }),
      released: (run, task) => failurePause.after(run, task),
      lost: () => {},
      random: () => 0.5,
    });
    const worker = (this.worker = new Worker({ ...shared, executor, slots: 8, parks, ...options }));
    const { isInstant = () => false } = options;
    this.early = new EarlyStarts({ ...shared, executor, worker, isInstant });
    this.takeOver = new TakeOver({
      ...shared,
      coordination,
      failed: (run, task) => failurePause.afterEnd(run, task),
    });
    this.deadlines = new RunDeadlines({
      ...shared,
      failed: (run, task) => failurePause.afterEnd(run, task),
    });
    const { signal } = this.#stop;
    const leading = { owner: id, lease: 3000, coordination, clock, telemetry };
    const leadership = new Leadership({ ...leading, name: 'waits' });
    const resumer = new WaitResumer({ ...shared, source: id, secrets: noSecrets.values });
    this.timers = new WaitTimers({ ...shared, resumer, leadership });
    this.#works.push(
      membership.run(signal),
      leadership.run(signal),
      live.follow(signal),
      this.#keep(() => agents.follow(signal)),
      this.#keep(() => queue.follow(signal, () => this.#begin())),
      this.takeOver.run(signal),
    );
  }

  #begin(): void {
    this.worker.start();
    this.ready.send();
  }

  async #keep(work: () => Promise<void>): Promise<void> {
    while (!this.#stop.signal.aborted) {
      await work().catch((error: unknown) => this.failures.push(error));
    }
  }

  /** Dies at once: no more appends or heartbeats. */
  kill(): void {
    this.store.dead = true;
    this.reachable.away = true;
    this.#stopped = true;
    this.#stop.abort();
    void this.deadlines.stop();
    void this.timers.stop();
  }

  async stop(): Promise<void> {
    if (this.#stopped) return;
    this.#stopped = true;
    const draining = this.worker.drain(0);
    for (const [name, gate] of this.#world.gates) if (name.startsWith(this.id)) gate.resolve();
    await this.#world.clock.advance(30_000);
    await draining;
    await this.deadlines.stop();
    await this.timers.stop();
    this.#stop.abort();
    await Promise.all(this.#works);
  }
}
