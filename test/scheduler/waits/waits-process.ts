import { setMaxListeners } from 'node:events';
import { pipelineRunner } from '../../../app/roles/pipeline-runner.ts';
import { decorate } from '../../../domain/decorate.ts';
import type { NewEvent } from '../../../domain/event-store.ts';
import { requestManualRun } from '../../../domain/tasks/task-commands.ts';
import { taskFold } from '../../../domain/tasks/task.ts';
import type { Telemetry } from '../../../observability/telemetry.ts';
import { LiveStreams } from '../../../projections/reading/live-streams.ts';
import type { WorkerDirectory } from '../../../projections/reading/worker-directory.ts';
import type { Coordination } from '../../../scheduler/coordination.ts';
import { Jobs } from '../../../scheduler/jobs/jobs.ts';
import { KeySemaphore } from '../../../scheduler/keys/key-semaphore.ts';
import { PinnedTasks } from '../../../scheduler/pinned-tasks.ts';
import { Leadership } from '../../../scheduler/processes/leadership.ts';
import { Membership } from '../../../scheduler/processes/membership.ts';
import type { QueuedRun } from '../../../scheduler/runs/queued-run.ts';
import { RunDeadlines } from '../../../scheduler/runs/run-deadlines.ts';
import { RunExecutor } from '../../../scheduler/runs/run-executor.ts';
import { RunQueue } from '../../../scheduler/runs/run-queue.ts';
import { TakeOver } from '../../../scheduler/runs/take-over.ts';
import { runAdmission } from '../../../scheduler/runs/task-admission.ts';
import { basicTools } from '../../../scheduler/tools/basic-tools.ts';
import { reveal } from '../../support/test-secrets.ts';
import { ToolRegistry } from '../../../scheduler/tools/registry.ts';
import { serviceTools, type ServiceActions } from '../../../scheduler/tools/service-tools.ts';
import { waitingTools } from '../../../scheduler/tools/waiting-tools.ts';
import { ChildRuns } from '../../../scheduler/waits/child-runs.ts';
import { EventMatching } from '../../../scheduler/waits/event-matching.ts';
import { WaitResumer } from '../../../scheduler/waits/wait-resumer.ts';
import { WaitTimers } from '../../../scheduler/waits/wait-timers.ts';
import { Worker } from '../../../scheduler/worker.ts';
import { deferred, Signal } from '../../support/signals.ts';
import type { World } from '../scheduler-world.ts';
import type { WatchedStore } from '../watched-store.ts';
import type { WaitsWorld } from './waits-world.ts';

/** Milliseconds that a lease and a heartbeat last here. */
export const LEASE = 3000;

/** Milliseconds that a silent worker keeps a job here. */
export const JOB_LEASE = 10_000;

/** A tool of workers. */
export const JOB_TOOL = 'mail.send';

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

/** A worker with everything that ends waits, wired as in the service. It may die at an append. */
export class WaitsProcess {
  readonly id: string;
  readonly store: WatchedStore;
  readonly queue: RunQueue;
  readonly worker: Worker;
  readonly leadership: Leadership;
  readonly timers: WaitTimers;
  readonly children: ChildRuns;
  readonly matching: EventMatching;
  readonly keeper: KeySemaphore;
  readonly jobs: Jobs;
  readonly ready = new Signal('the queue to be up to date');
  readonly failures: unknown[] = [];
  onDeath: () => void = () => {};
  /** Called around each lease of jobs that it takes. */
  onTakeJobs: (when: 'before' | 'after') => void = () => {};
  readonly #deadlines: RunDeadlines;
  readonly #world: WaitsWorld;
  readonly #stop = new AbortController();
  readonly #works: Promise<unknown>[] = [];

  constructor(world: WaitsWorld, id: string, telemetry: Telemetry) {
    this.id = id;
    this.#world = world;
    const { clock, readModel } = world.world;
    const { hold, secrets } = world;
    const store = (this.store = world.world.connect());
    const coordination = whileAlive(world.world.coordination, store);
    const { signal } = this.#stop;
    // Everything that it does ends with the process.
    setMaxListeners(50, signal);
    const artifacts = { store: world.artifacts, maxBytes: 16 * 1024 * 1024 };
    const common = { store, coordination, clock, telemetry, artifacts };
    const about = { roles: ['worker'] };
    const onAlive = (): void => this.worker.wake();
    const membership = new Membership({ ...common, id, lease: LEASE, about, onAlive });
    const live = new LiveStreams(store, 'task-', taskFold);
    const tasks = new PinnedTasks(store, live);
    const queue = (this.queue = new RunQueue(store, readModel, clock, telemetry));
    const shared = { ...common, queue, tasks, membership, hold, secrets: secrets.values };
    const hasRoom = (run: QueuedRun): boolean => this.worker.hasRoom(run);
    const keeper = (this.keeper = new KeySemaphore({ ...shared, hasRoom }));
    const executor = new RunExecutor({
      ...shared,
      runPipeline: pipelineRunner({ ...common, secrets, tools: this.#tools() }),
      admit: runAdmission(tasks, keeper, clock),
      handOver: (run, task, end) => keeper.handOver(run, task, end),
      released: (run, task) => keeper.released(run, task),
      lost: (run, task) => keeper.lost(run, task),
      random: () => 0.5,
    });
    this.worker = new Worker({
      ...shared,
      executor,
      slots: 100,
      parks: (run) => keeper.park(run),
      affinityOf: (run) => keeper.affinityOf(run),
    });
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
    this.jobs = new Jobs({
      ...shared,
      coordination: { jobs: this.#leases(coordination) },
      // Tests poll in the name of workers that are not registered.
      directory: {
        find: () => ({ state: 'active' }),
        workers: () => [],
        subscribe: () => {},
      } as unknown as WorkerDirectory,
      leaseSeconds: JOB_LEASE / 1000,
      begin: () => {},
    });
    this.#works.push(
      keeper.recheckPeriodically(signal),
      this.#keep(() => keeper.follow(signal)),
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

  /** Dies at the first matching append, before or after it is written. */
  dieAt(when: 'before' | 'after', fits: (stream: string, events: readonly NewEvent[]) => boolean) {
    const die = (stream: string, events: readonly NewEvent[]): void => {
      if (!this.store.dead && fits(stream, events)) this.kill();
    };
    if (when === 'before') this.store.onAppend = die;
    else this.store.afterAppend = die;
  }

  /** The hold has started or ended. */
  holdChanged(): void {
    this.worker.wake();
    this.timers.holdChanged();
    this.#deadlines.holdChanged();
  }

  /** Kills the process at once. It does nothing more, and nothing that it calls returns. */
  kill(): void {
    this.store.dead = true;
    this.#stop.abort();
    this.jobs.stop();
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
    await this.keeper.settled();
    this.jobs.stop();
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
    const own = serviceTools({ runTask, publishEvent });
    const offered = [...waitingTools, ...own, ...basicTools, reveal];
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
    const run = (): never => {
      throw new Error('workers run it');
    };
    tools.register({ name: JOB_TOOL, description: 'send', schema: {}, isExternal: true, run });
    return tools;
  }

  #leases({ jobs }: Coordination): Coordination['jobs'] {
    return decorate(whileAlive(jobs, this.store), {
      take: async (...claims) => {
        this.onTakeJobs('before');
        const taken = await whileAlive(jobs, this.store).take(...claims);
        this.onTakeJobs('after');
        return this.store.dead ? new Promise<never>(() => {}) : taken;
      },
    });
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

/** The coordination store as seen by a process. It is unreachable once the process is dead. */
function whileAlive<T extends object>(coordination: T, store: WatchedStore): T {
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
