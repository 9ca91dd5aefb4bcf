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

/** What the outside saw of a process: a call of a step's tool, or a success of a step that the log has taken. */
export type Seen =
  | { readonly kind: 'call'; readonly run: string; readonly step: string; readonly key: string }
  | { readonly kind: 'recorded'; readonly run: string; readonly step: string };

/** A point at which a process dies: its n-th append, before it is written or when only the answer is missing. */
export interface CrashPoint {
  readonly append: number;
  readonly when: 'before' | 'after';
}

/**
 * Scheduler, run requester and worker as the service puts them together, in a world's time and over its stores, as
 * one process: it dies as a whole, at an append of a test's choice.
 */
export class CrashProcess {
  readonly id: string;
  readonly store: WatchedStore;
  readonly ready = new Signal('the process to be ready');
  /** What was appended so far, in the order in which it was begun: the types of the events of each. */
  readonly appends: string[] = [];
  /** Which of them the log took, counted from 1; others lost a race. */
  readonly written = new Set<number>();
  /** What failed that is to begin anew by itself. */
  readonly failures: unknown[] = [];
  readonly scheduler: Scheduler;
  readonly leadership: Leadership;
  readonly worker: Worker;
  readonly keeper: KeySemaphore;
  readonly membership: Membership;
  onDeath: () => void = () => {};
  private point: CrashPoint | null = null;
  private readonly seen: Seen[];
  private readonly controller = new AbortController();
  private readonly works: Promise<unknown>[] = [];

  constructor(world: World, id: string, seen: Seen[]) {
    this.id = id;
    this.seen = seen;
    const store = (this.store = world.connect());
    this.watch();
    const { clock, readModel } = world;
    const telemetry = silent;
    const coordination = whileAlive(world.coordination, () => !store.dead);
    const { signal } = this.controller;
    // All that it does ends with it.
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
    const tools = this.tools();
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
    const started = [new Signal('what is due'), new Signal('runs'), new Signal('keys')] as const;
    void Promise.all(started.map((each) => each.wait())).then(() => this.ready.send());
    this.works.push(
      leadership.run(signal),
      membership.run(signal),
      live.follow(signal),
      keeper.recheckPeriodically(signal),
      takeOver.run(signal),
      this.keep(() => requester.follow(signal)),
      this.keep(() => keeper.follow(signal, () => started[2].send())),
      this.keep(() =>
        index.follow(signal, () => {
          this.scheduler.start();
          started[0].send();
        }),
      ),
      this.keep(() =>
        queue.follow(signal, () => {
          this.worker.start();
          started[1].send();
        }),
      ),
    );
  }

  /** Dies at an append; counted from the first of its life. */
  crashAt(point: CrashPoint): void {
    this.point = point;
  }

  private watch(): void {
    // Of several that are under way at once each is known by its events.
    const numbers = new Map<readonly NewEvent[], number>();
    const { store } = this;
    const reached = (append: number, when: CrashPoint['when']): void => {
      if (this.point?.append === append && this.point.when === when) this.die();
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
        this.seen.push({ kind: 'recorded', run: stream.slice('run-'.length), step });
      }
      const append = numbers.get(events) ?? 0;
      this.written.add(append);
      reached(append, 'after');
    };
  }

  /** `act` has an effect outside, `note` too and answers at once, `nap` takes time besides, `flaky` fails in a run's first attempt. */
  private tools(): ToolRegistry {
    const tools = new ToolRegistry();
    const register = (name: string, run: (args: JsonValue, call: ToolCall) => unknown): void => {
      tools.register({ name, description: name, schema: {}, run });
    };
    const called = async ({ runId, step, idempotencyKey: key }: ToolCall): Promise<void> => {
      if (this.store.dead) await new Promise<never>(() => {});
      this.seen.push({ kind: 'call', run: runId, step, key });
    };
    register('act', async (_args, call) => called(call));
    tools.register({
      name: 'note',
      description: 'note',
      schema: {},
      synchronous: true,
      run: (_args, { runId: run, step, idempotencyKey: key }) => {
        this.seen.push({ kind: 'call', run, step, key });
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

  /** Gone from one moment to the next: nothing more comes from it, and nothing it calls returns. */
  die(): void {
    if (this.store.dead) return;
    this.store.dead = true;
    this.controller.abort();
    this.onDeath();
  }

  private async keep(work: () => Promise<void>): Promise<void> {
    while (!this.controller.signal.aborted) {
      await work().catch((error: unknown) => this.failures.push(error));
    }
  }

  async stop(): Promise<void> {
    if (this.store.dead) return;
    await this.scheduler.stop();
    await this.worker.drain(0);
    await this.keeper.settled();
    this.controller.abort();
    await Promise.all(this.works);
  }
}

/** The coordination store as a process has it: out of its reach once it is dead. */
function whileAlive(coordination: Coordination, isAlive: () => boolean): Coordination {
  return new Proxy(coordination, {
    get: (target, property) => {
      const member: unknown = Reflect.get(target, property);
      if (typeof member !== 'function') return member;
      return (...given: readonly unknown[]): unknown =>
        isAlive()
          ? Reflect.apply(member, target, given)
          : Promise.reject(new Error('whoever asks is dead'));
    },
  });
}
