import { setMaxListeners } from 'node:events';
import { pipelineRunner } from '../../../app/roles/pipeline-runner.ts';
import type { NewEvent } from '../../../domain/event-store.ts';
import type { JsonValue } from '../../../domain/json.ts';
import { taskFold } from '../../../domain/tasks/task.ts';
import { silent } from '../../../observability/telemetry.ts';
import { LiveStreams } from '../../../projections/reading/live-streams.ts';
import type { Coordination } from '../../../scheduler/coordination.ts';
import { DueIndex } from '../../../scheduler/fires/due-index.ts';
import { instantRuns } from '../../../scheduler/runs/instant-runs.ts';
import { KeySemaphore } from '../../../scheduler/keys/key-semaphore.ts';
import { Leadership } from '../../../scheduler/processes/leadership.ts';
import { Membership } from '../../../scheduler/processes/membership.ts';
import { PinnedTasks } from '../../../scheduler/pinned-tasks.ts';
import { RunExecutor } from '../../../scheduler/runs/run-executor.ts';
import { RunQueue } from '../../../scheduler/runs/run-queue.ts';
import { RunRequester } from '../../../scheduler/fires/run-requester.ts';
import { createScheduler } from '../../../scheduler/burst/create-scheduler.ts';
import { EarlyStarts } from '../../../scheduler/burst/early-starts.ts';
import type { Scheduler } from '../../../scheduler/scheduler.ts';
import { TakeOver } from '../../../scheduler/runs/take-over.ts';
import { runAdmission } from '../../../scheduler/runs/task-admission.ts';
import { ToolRegistry } from '../../../scheduler/tools/registry.ts';
import { ToolError, type ToolCall } from '../../../scheduler/tools/tool.ts';
import { Worker } from '../../../scheduler/worker.ts';
import { Signal } from '../../support/signals.ts';
import type { World } from '../scheduler-world.ts';
import type { WatchedStore } from '../watched-store.ts';
import { noSecrets } from '../../support/test-secrets.ts';

/** Milliseconds that a lease and a heartbeat last here. */
export const LEASE = 3000;

/** An observed effect of a process: a call of a step's tool, or a step's success that the log accepted. */
export type Seen =
  | { readonly kind: 'call'; readonly run: string; readonly step: string; readonly key: string }
  | { readonly kind: 'recorded'; readonly run: string; readonly step: string };

/** Where a process dies: at its n-th append, either before it is written or before the response. */
export interface CrashPoint {
  readonly append: number;
  readonly when: 'before' | 'after';
}

/**
 * Scheduler, run requester and worker in one process, composed like the service's, with the clock and stores of a
 * world. The process dies as a whole, at an append that a test chooses.
 */
export class CrashProcess {
  readonly id: string;
  readonly store: WatchedStore;
  readonly ready = new Signal('the process to be ready');
  /** The event types of each append so far, in the order in which the appends began. */
  readonly appends: string[] = [];
  /** The numbers of the appends that the log accepted, from 1. The others lost a race. */
  readonly written = new Set<number>();
  /** Failures of work that should restart by itself. */
  readonly failures: unknown[] = [];
  readonly scheduler: Scheduler;
  readonly leadership: Leadership;
  readonly worker: Worker;
  readonly keeper: KeySemaphore;
  readonly membership: Membership;
  onDeath: () => void = () => {};
  #point: CrashPoint | null = null;
  readonly #seen: Seen[];
  readonly #controller = new AbortController();
  readonly #works: Promise<unknown>[] = [];

  constructor(world: World, id: string, seen: Seen[]) {
    this.id = id;
    this.#seen = seen;
    const store = (this.store = world.connect());
    this.#watch();
    const { clock, readModel } = world;
    const telemetry = silent;
    const coordination = whileAlive(world.coordination, () => !store.dead);
    const { signal } = this.#controller;
    // All work of the process listens to this signal, which would cause a warning.
    setMaxListeners(50, signal);
    const live = new LiveStreams(store, 'task-', taskFold);
    const tasks = new PinnedTasks(store, live);
    const shared = { store, coordination, clock, telemetry, tasks };
    this.leadership = new Leadership({ ...shared, name: 'scheduler', owner: id, lease: LEASE });
    const { leadership } = this;
    const index = new DueIndex(store, readModel, telemetry);
    const requester = new RunRequester({ ...shared, leadership, name: id });
    const about = { roles: ['worker'] };
    const onAlive = (): void => this.worker.wake();
    const membership = new Membership({ ...shared, id, lease: LEASE, about, onAlive });
    this.membership = membership;
    const queue = new RunQueue(store, readModel, clock, telemetry);
    const forWork = { ...shared, queue, membership };
    const keeper = (this.keeper = new KeySemaphore({ ...forWork, hasRoom: () => false }));
    const tools = this.#tools();
    const executor = new RunExecutor({
      ...forWork,
      runPipeline: pipelineRunner({ ...shared, tools, secrets: noSecrets }),
      admit: runAdmission(tasks, keeper, clock),
      handOver: (run, task, end) => keeper.handOver(run, task, end),
      released: (run, task) => keeper.released(run, task),
      lost: (run, task) => keeper.lost(run, task),
      random: () => 0.5,
    });
    const isInstant = instantRuns(tasks, tools);
    const worker = (this.worker = new Worker({
      ...forWork,
      executor,
      slots: 8,
      isInstant,
      parks: (run) => keeper.park(run),
      affinityOf: (run) => keeper.affinityOf(run),
    }));
    const early = new EarlyStarts({ ...forWork, executor, worker, isInstant });
    const forSchedule = { ...shared, index, leadership, early, requests: requester };
    this.scheduler = createScheduler({ ...forSchedule, name: id });
    const takeOver = new TakeOver(forWork);
    const started = [
      new Signal('the due index'),
      new Signal('the queue'),
      new Signal('keys'),
    ] as const;
    void Promise.all(started.map((each) => each.wait())).then(() => this.ready.send());
    this.#works.push(
      leadership.run(signal),
      membership.run(signal),
      live.follow(signal),
      keeper.recheckPeriodically(signal),
      takeOver.run(signal),
      this.#keep(() => requester.follow(signal)),
      this.#keep(() => keeper.follow(signal, () => started[2].send())),
      this.#keep(() =>
        index.follow(signal, () => {
          this.scheduler.start();
          started[0].send();
        }),
      ),
      this.#keep(() =>
        queue.follow(signal, () => {
          this.worker.start();
          started[1].send();
        }),
      ),
    );
  }

  /** Makes the process die at an append. Its first append has number 1. */
  crashAt(point: CrashPoint): void {
    this.#point = point;
  }

  #watch(): void {
    // Concurrent appends are distinguished by their events.
    const numbers = new Map<readonly NewEvent[], number>();
    const { store } = this;
    const reached = (append: number, when: CrashPoint['when']): void => {
      if (this.#point?.append === append && this.#point.when === when) this.die();
    };
    store.onAppend = (_stream, events) => {
      const append = this.appends.push(events.map(({ type }) => type).join('+'));
      numbers.set(events, append);
      reached(append, 'before');
    };
    store.afterAppend = (stream, events) => {
      for (const { type, data } of events) {
        if (type !== 'RunStepCompleted') continue;
        const { step, status } = data;
        if (status !== 'succeeded') continue;
        this.#seen.push({ kind: 'recorded', run: stream.slice('run-'.length), step });
      }
      const append = numbers.get(events) ?? 0;
      this.written.add(append);
      reached(append, 'after');
    };
  }

  /**
   * All tools have an outside effect. `note` is synchronous, `nap` also takes time, and `flaky` fails in the first
   * attempt of a run.
   */
  #tools(): ToolRegistry {
    const tools = new ToolRegistry();
    const register = (name: string, run: (args: JsonValue, call: ToolCall) => unknown): void => {
      tools.register({ name, description: name, schema: {}, run });
    };
    const called = async ({ runId, step, idempotencyKey: key }: ToolCall): Promise<void> => {
      if (this.store.dead) await new Promise<never>(() => {});
      this.#seen.push({ kind: 'call', run: runId, step, key });
    };
    register('act', async (_args, call) => called(call));
    tools.register({
      name: 'note',
      description: 'note',
      schema: {},
      synchronous: true,
      run: (_args, { runId: run, step, idempotencyKey: key }) => {
        this.#seen.push({ kind: 'call', run, step, key });
      },
    });
    register('nap', async (seconds, call) => {
      await called(call);
      await call.clock.sleep(Number(seconds) * 1000, call.signal);
    });
    register('flaky', async (attempt, call) => {
      await called(call);
      if (attempt === 1) throw new ToolError('the first attempt', { retryable: true });
    });
    return tools;
  }

  /** Dies at once: it does nothing more, and none of its calls return. */
  die(): void {
    if (this.store.dead) return;
    this.store.dead = true;
    this.#controller.abort();
    this.onDeath();
  }

  async #keep(work: () => Promise<void>): Promise<void> {
    while (!this.#controller.signal.aborted) {
      await work().catch((error: unknown) => this.failures.push(error));
    }
  }

  async stop(): Promise<void> {
    if (this.store.dead) return;
    await this.scheduler.stop();
    await this.worker.drain(0);
    await this.keeper.settled();
    this.#controller.abort();
    await Promise.all(this.#works);
  }
}

/** The coordination store as seen by a process. It is unreachable once the process is dead. */
function whileAlive(coordination: Coordination, isAlive: () => boolean): Coordination {
  return new Proxy(coordination, {
    get: (target, property) => {
      const member: unknown = Reflect.get(target, property);
      if (typeof member !== 'function') return member;
      return (...given: readonly unknown[]): unknown =>
        isAlive()
          ? Reflect.apply(member, target, given)
          : Promise.reject(new Error('the process is dead'));
    },
  });
}
