import { setMaxListeners } from 'node:events';
import { pipelineRunner } from '../../../app/roles/pipeline-runner.ts';
import type { NewEvent, RecordedEvent } from '../../../domain/event-store.ts';
import type { EventOf } from '../../../domain/events/catalogue.ts';
import { load } from '../../../domain/handle.ts';
import { requireRun, runFold, type KnownRun } from '../../../domain/runs/run.ts';
import { streams } from '../../../domain/streams.ts';
import { cancelRunCommand, requestManualRun } from '../../../domain/tasks/task-commands.ts';
import type { TaskDefinition } from '../../../domain/tasks/task-definition.ts';
import { taskFold } from '../../../domain/tasks/task.ts';
import { silent, type Telemetry } from '../../../observability/telemetry.ts';
import { LiveStreams } from '../../../projections/reading/live-streams.ts';
import type { Coordination } from '../../../scheduler/coordination.ts';
import { PinnedTasks } from '../../../scheduler/pinned-tasks.ts';
import { Leadership } from '../../../scheduler/processes/leadership.ts';
import { Membership } from '../../../scheduler/processes/membership.ts';
import { RunDeadlines } from '../../../scheduler/runs/run-deadlines.ts';
import { RunExecutor } from '../../../scheduler/runs/run-executor.ts';
import { RunQueue } from '../../../scheduler/runs/run-queue.ts';
import { TakeOver } from '../../../scheduler/runs/take-over.ts';
import { taskAdmission } from '../../../scheduler/runs/task-admission.ts';
import { basicTools } from '../../../scheduler/tools/basic-tools.ts';
import { ToolRegistry } from '../../../scheduler/tools/registry.ts';
import { serviceTools, type ServiceActions } from '../../../scheduler/tools/service-tools.ts';
import { waitingTools } from '../../../scheduler/tools/waiting-tools.ts';
import { ChildRuns } from '../../../scheduler/waits/child-runs.ts';
import { EventMatching } from '../../../scheduler/waits/event-matching.ts';
import { WaitResumer } from '../../../scheduler/waits/wait-resumer.ts';
import { WaitTimers } from '../../../scheduler/waits/wait-timers.ts';
import { Worker } from '../../../scheduler/worker.ts';
import { deferred, Signal } from '../../support/signals.ts';
import { World } from '../scheduler-world.ts';
import type { WatchedStore } from '../watched-store.ts';

/** Milliseconds that a lease and a heartbeat last here. */
export const LEASE = 3000;

/** Workers over one log, with all that ends waits. */
export class WaitsWorld {
  readonly world: World;
  readonly processes: WaitsProcess[] = [];
  /** Ends the steps that `hold`, by step. */
  readonly gates = new Map<string, { readonly resolve: () => void }>();

  private constructor(world: World) {
    this.world = world;
  }

  static async open(): Promise<WaitsWorld> {
    return new WaitsWorld(await World.open());
  }

  get clock(): World['clock'] {
    return this.world.clock;
  }

  /** Starts a process. Resolves when it follows the log, and the first process leads. */
  async start(id: string, telemetry: Telemetry = silent): Promise<WaitsProcess> {
    const process = new WaitsProcess(this, id, telemetry);
    this.processes.push(process);
    await process.ready.wait();
    if (this.processes.length === 1) await process.untilLeading();
    await this.world.idle();
    return process;
  }

  /** A task that runs by hand. */
  task(
    id: string,
    pipeline: readonly object[],
    fields: Partial<TaskDefinition> = {},
  ): Promise<void> {
    const rule = { schedule_kind: 'event', schedule_expr: null } as const;
    const payload = { pipeline } as unknown as TaskDefinition['payload'];
    return this.world.createTask(id, { ...rule, payload, ...fields });
  }

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

  /** The runs of a task, in the order of their requests. */
  async runsOf(taskId: string): Promise<readonly string[]> {
    const events = await this.world.events('run-');
    return events.flatMap((event) => {
      const isFirst = event.type === 'RunRequested' || event.type === 'RunSkipped';
      return isFirst && event.data.task_id === taskId ? [event.stream.slice('run-'.length)] : [];
    });
  }

  async eventsOf(runId: string): Promise<readonly RecordedEvent[]> {
    return this.world.store.readStream(streams.run(runId));
  }

  /** The types of a run's events, in order. */
  async typesOf(runId: string): Promise<readonly string[]> {
    return (await this.eventsOf(runId)).map(({ type }) => type.replace(/^Run/, ''));
  }

  /** How the waits of a run ended, in order. */
  async resumptionsOf(runId: string): Promise<readonly EventOf<'RunStepResumed'>['data'][]> {
    const events = await this.eventsOf(runId);
    return events.flatMap((event) => (event.type === 'RunStepResumed' ? [event.data] : []));
  }

  /** Lets time pass until a condition is met. @param atMost milliseconds */
  async until(condition: () => Promise<boolean>, atMost = 120_000): Promise<void> {
    for (let passed = 0; ; passed += 500) {
      await this.world.idle();
      if (await condition()) return;
      if (passed >= atMost) throw new Error(`not met within ${atMost} ms`);
      await this.clock.advance(500);
    }
  }

  async untilEnded(runId: string, atMost?: number): Promise<KnownRun> {
    const ended = ['succeeded', 'failed', 'canceled', 'skipped'];
    await this.until(async () => ended.includes((await this.run(runId)).state), atMost);
    return this.run(runId);
  }

  async untilState(runId: string, state: KnownRun['state']): Promise<void> {
    await this.until(async () => (await this.run(runId)).state === state);
  }

  async close(): Promise<void> {
    for (const process of this.processes) await process.stop();
    await this.world.close();
  }
}

/** Requests runs as the task's owner. */
const actionsOf = (world: World, store: WatchedStore): Pick<ServiceActions, 'runTask'> => ({
  async runTask({ task_id, parent, actor, commandId, causation }) {
    const { runId } = causation;
    const context = { commandId, actor, source: `run ${runId}`, correlationId: runId };
    const task = await world.task(task_id);
    const at = { ...context, now: world.clock.now() };
    const requested = await requestManualRun(store, task_id, task, at, { parent });
    return { run_id: requested.runId };
  },
});

/** A worker with all that ends waits, as the service puts them together. It may die at an append. */
export class WaitsProcess {
  readonly id: string;
  readonly store: WatchedStore;
  readonly queue: RunQueue;
  readonly worker: Worker;
  readonly leadership: Leadership;
  readonly timers: WaitTimers;
  readonly children: ChildRuns;
  readonly matching: EventMatching;
  readonly ready = new Signal('the queue to be level');
  readonly failures: unknown[] = [];
  onDeath: () => void = () => {};
  readonly #deadlines: RunDeadlines;
  readonly #world: WaitsWorld;
  readonly #stop = new AbortController();
  readonly #works: Promise<unknown>[] = [];

  constructor(world: WaitsWorld, id: string, telemetry: Telemetry) {
    this.id = id;
    this.#world = world;
    const { clock, readModel } = world.world;
    const store = (this.store = world.world.connect());
    const coordination = whileAlive(world.world.coordination, store);
    const { signal } = this.#stop;
    // All that it does ends with it.
    setMaxListeners(50, signal);
    const common = { store, coordination, clock, telemetry };
    const about = { roles: ['worker'] };
    const onAlive = (): void => this.worker.wake();
    const membership = new Membership({ ...common, id, lease: LEASE, about, onAlive });
    const live = new LiveStreams(store, 'task-', taskFold);
    const tasks = new PinnedTasks(store, live);
    const queue = (this.queue = new RunQueue(store, readModel, clock, telemetry));
    const shared = { ...common, queue, tasks, membership };
    const executor = new RunExecutor({
      ...shared,
      runPipeline: pipelineRunner({ ...shared, tools: this.#tools(), secrets: () => undefined }),
      admit: taskAdmission(tasks, clock),
      released: () => {},
      lost: () => {},
      random: () => 0.5,
    });
    this.worker = new Worker({ ...shared, executor, slots: 100 });
    const takeOver = new TakeOver(shared);
    this.#deadlines = new RunDeadlines(shared);
    const leadership = new Leadership({ ...common, name: 'waits', owner: id, lease: LEASE });
    this.leadership = leadership;
    const resumer = new WaitResumer({ ...shared, source: id });
    const awaiting = { ...shared, resumer, leadership, source: id };
    const children = (this.children = new ChildRuns(awaiting));
    const matching = (this.matching = new EventMatching(awaiting));
    this.timers = new WaitTimers({
      ...awaiting,
      isUnmet: async (run, wait) =>
        (await children.isUnmet(run, wait)) && matching.isUnmet(run, wait),
    });
    this.#works.push(
      membership.run(signal),
      live.follow(signal),
      leadership.run(signal),
      takeOver.run(signal),
      this.#keep(() => children.run(signal)),
      this.#keep(() => matching.run(signal)),
      this.#keep(() => queue.follow(signal, () => this.#begin())),
    );
  }

  untilLeading(): Promise<void> {
    return this.leadership.untilLeading(this.#stop.signal);
  }

  /** Dies at the first append that fits, before or after it is written. */
  dieAt(when: 'before' | 'after', fits: (stream: string, events: readonly NewEvent[]) => boolean) {
    const die = (stream: string, events: readonly NewEvent[]): void => {
      if (!this.store.dead && fits(stream, events)) this.kill();
    };
    if (when === 'before') this.store.onAppend = die;
    else this.store.afterAppend = die;
  }

  /** Gone at once: nothing more comes from it, and nothing that it calls returns. */
  kill(): void {
    this.store.dead = true;
    this.#stop.abort();
    this.onDeath();
  }

  async stop(): Promise<void> {
    if (this.store.dead) return;
    const draining = this.worker.drain(0);
    for (const { resolve } of this.#world.gates.values()) resolve();
    if (this.worker.active > 0) await this.#world.clock.advance(30_000);
    await draining;
    await this.timers.stop();
    await this.children.stop();
    await this.matching.stop();
    await this.#deadlines.stop();
    this.#stop.abort();
    await Promise.all(this.#works);
  }

  /** `hold` waits until its gate is opened; it ends when it is told to stop. */
  #tools(): ToolRegistry {
    const tools = new ToolRegistry();
    const { runTask } = actionsOf(this.#world.world, this.store);
    const publishEvent = (): never => {
      throw new Error('nothing is published here');
    };
    const offered = [...waitingTools, ...serviceTools({ runTask, publishEvent }), ...basicTools];
    for (const tool of offered) tools.register(tool);
    tools.register({
      name: 'hold',
      description: 'hold',
      schema: {},
      run: (_args, call) => {
        const gate = deferred();
        this.#world.gates.set(call.step, gate);
        const stop = (): void => gate.reject(new Error('told to stop'));
        call.signal.addEventListener('abort', stop, { once: true });
        return gate.promise;
      },
    });
    return tools;
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
}

/** The coordination store as a process has it: unreachable once it is dead. */
function whileAlive(coordination: Coordination, store: WatchedStore): Coordination {
  return new Proxy(coordination, {
    get: (target, property) => {
      const member: unknown = Reflect.get(target, property);
      if (typeof member !== 'function') return member;
      return (...given: readonly unknown[]): unknown =>
        store.dead
          ? Promise.reject(new Error('the process is dead'))
          : Reflect.apply(member, target, given);
    },
  });
}
