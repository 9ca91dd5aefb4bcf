import { join } from 'node:path';
import { toIso, type Clock, type Instant } from '../../domain/clock.ts';
import { decorate } from '../../domain/decorate.ts';
import {
  BEGINNING,
  type EventStore,
  type Position,
  type RecordedEvent,
} from '../../domain/event-store.ts';
import { agentFold } from '../../domain/agents/agent.ts';
import { createEventCodec } from '../../domain/events/codec.ts';
import { load, type CommandContext } from '../../domain/handle.ts';
import { createTaskCommand, type TaskCommand } from '../../domain/tasks/task-commands.ts';
import type { TaskDefinition } from '../../domain/tasks/task-definition.ts';
import { requireTask, taskFold, type LiveTask } from '../../domain/tasks/task.ts';
import { silent } from '../../observability/telemetry.ts';
import { LiveStreams } from '../../projections/reading/live-streams.ts';
import { createProjector } from '../../projections/projector/projector.ts';
import type { Projection, ReadModel } from '../../projections/read-model.ts';
import type { Coordination } from '../../scheduler/coordination.ts';
import { DueIndex } from '../../scheduler/fires/due-index.ts';
import { LiveOwners } from '../../scheduler/owners/owners.ts';
import { OwnerEnforcement } from '../../scheduler/owners/owner-enforcement.ts';
import { Hold } from '../../scheduler/hold.ts';
import { Leadership } from '../../scheduler/processes/leadership.ts';
import { PinnedTasks } from '../../scheduler/pinned-tasks.ts';
import { RunRequester } from '../../scheduler/fires/run-requester.ts';
import { createScheduler } from '../../scheduler/burst/create-scheduler.ts';
import type { Scheduler } from '../../scheduler/scheduler.ts';
import { SystemClock } from '../../app/clock.ts';
import { openSqliteCoordination } from '../../stores/sqlite/coordination/coordination.ts';
import { openSqliteEventStore } from '../../stores/sqlite/event-log/event-store.ts';
import { openSqliteReadModel } from '../../stores/sqlite/read-model/read-model.ts';
import { definition } from '../projections/recorded.ts';
import { collectingLines } from '../support/reporting-to.ts';
import { Signal } from '../support/signals.ts';
import { makeTemporaryDirectory } from '../support/temporary-directory.ts';
import { VirtualClock } from '../support/virtual-clock.ts';
import { WatchedStore } from './watched-store.ts';

export const minute = 60_000;
export const START: Instant = Date.parse('2026-03-02T00:00:00.000Z');

/** Each minute from `from` to `to` after {@link START}, including both. */
export const minutes = (from: number, to: number): readonly string[] =>
  Array.from({ length: to - from + 1 }, (_, n) => toIso(START + (from + n) * minute));

/** A log, views and a coordination store on disk with a virtual clock, and processes over them. */
export class World {
  readonly clock: VirtualClock;
  readonly store: EventStore;
  readonly readModel: ReadModel;
  readonly coordination: Coordination;
  readonly processes: SchedulerProcess[] = [];
  readonly watched: WatchedStore[] = [];
  readonly #remove: () => Promise<void>;
  #commands = 0;
  /** Pending reads of the views, which threads answer in real time. */
  #reading = 0;

  private constructor(parts: {
    clock: VirtualClock;
    store: EventStore;
    readModel: ReadModel;
    coordination: Coordination;
    remove: () => Promise<void>;
  }) {
    this.clock = parts.clock;
    this.store = parts.store;
    this.readModel = this.#counted(parts.readModel);
    this.coordination = parts.coordination;
    this.#remove = parts.remove;
  }

  static async open(start: Instant = START): Promise<World> {
    const directory = await makeTemporaryDirectory();
    const opened: { world?: World } = {};
    const clock = new VirtualClock(start, { settle: async () => opened.world?.idle() });
    const store = await openSqliteEventStore({
      directory: join(directory.path, 'log'),
      codec: createEventCodec(),
      telemetry: silent,
    });
    const readModel = await openSqliteReadModel({
      directory: join(directory.path, 'views'),
      telemetry: silent,
    });
    const coordination = await openSqliteCoordination({
      directory: directory.path,
      telemetry: silent,
      clock: () => clock.now(),
    });
    const remove = (): Promise<void> => directory.remove();
    opened.world = new World({ clock, store, readModel, coordination, remove });
    return opened.world;
  }

  /** A process's connection to the log. */
  connect(): WatchedStore {
    const store = new WatchedStore(this.store);
    this.watched.push(store);
    return store;
  }

  /** Starts a process with a scheduler. `lease`: long if no process dies, so that a day has few renewals. */
  async start(
    name: string,
    options: {
      readonly clock?: Clock;
      readonly lease?: number;
      readonly requester?: boolean;
      readonly store?: WatchedStore;
      /** It follows the hold of the service. */
      readonly held?: boolean;
      /** It follows the agents that own the tasks. */
      readonly owned?: boolean;
    } = {},
  ): Promise<SchedulerProcess> {
    const { store = this.connect(), clock = this.clock } = options;
    const process = new SchedulerProcess(this, name, { ...options, store, clock });
    this.processes.push(process);
    await process.ready.wait();
    await this.idle();
    return process;
  }

  /** Waits until all processes are idle. */
  async idle(): Promise<void> {
    while (!(await this.#staysQuiet()));
  }

  #counted(readModel: ReadModel): ReadModel {
    const counted = async <T>(read: Promise<T>): Promise<T> => {
      this.#reading += 1;
      try {
        return await read;
      } finally {
        this.#reading -= 1;
      }
    };
    return decorate(readModel, {
      get: (projection, key) => counted(readModel.get(projection, key)),
      find: (projection, query) => counted(readModel.find(projection, query)),
      count: (projection, filters) => counted(readModel.count(projection, filters)),
      checkpoint: (projection) => counted(readModel.checkpoint(projection)),
    });
  }

  /** Whether, in several turns of the event loop, no process works or is behind the log. */
  async #staysQuiet(): Promise<boolean> {
    const passed: Position[] = [];
    for (let turn = 0; turn < 6; turn += 1) {
      await new Promise<void>((resolve) => setImmediate(resolve));
      const living = this.watched.filter(({ dead }) => !dead);
      if (this.#reading > 0 || living.some(({ underWay }) => underWay > 0)) return false;
      for (const { following } of living) {
        for (const place of following) passed.push(place.passed);
      }
    }
    if (passed.length === 0) return true;
    // The head never goes back, so one read of it, the costly part, is enough for all turns.
    const head = await this.store.head();
    return passed.every((place) => place >= head);
  }

  async createTask(taskId: string, fields: Partial<TaskDefinition> = {}): Promise<void> {
    await createTaskCommand({
      store: this.store,
      taskId,
      definition: definition({ schedule_expr: '* * * * *', ...fields }),
      context: this.context(),
    });
    await this.idle();
  }

  command(taskId: string): TaskCommand {
    return { store: this.store, taskId, context: this.context(), mayChange: () => {} };
  }

  context(): CommandContext {
    this.#commands += 1;
    const commandId = `command-${this.#commands}`;
    const base = { actor: 'agent-1', source: 'test', correlationId: commandId };
    return { ...base, commandId, now: this.clock.now() };
  }

  async task(taskId: string): Promise<LiveTask> {
    return requireTask((await load(this.store, `task-${taskId}`, taskFold)).state);
  }

  /** The whole log, or its streams of a prefix. */
  async events(prefix = ''): Promise<readonly RecordedEvent[]> {
    const events: RecordedEvent[] = [];
    for (let after: Position = BEGINNING; ; after = events.at(-1)?.position ?? after) {
      const page = await this.store.readAll(after, 1000);
      if (page.length === 0) break;
      events.push(...page);
    }
    return events.filter(({ stream }) => stream.startsWith(prefix));
  }

  /** Nominal times that were fired, and the runs that were requested for them, each in the order of the log. */
  async outcome(taskId: string): Promise<{
    readonly fired: readonly string[];
    readonly skipped: readonly string[];
    readonly requested: readonly string[];
  }> {
    const fired: string[] = [];
    const skipped: string[] = [];
    const requested: string[] = [];
    for (const event of await this.events()) {
      if (event.stream === `fires-${taskId}`) {
        if (event.type === 'Fired') fired.push(event.data.nominal);
        if (event.type === 'FiresSkipped') {
          skipped.push(`${event.data.reason} ${event.data.count}`);
        }
      }
      if (event.type === 'RunRequested' && event.data.task_id === taskId) {
        requested.push(event.data.scheduled_for ?? event.stream);
      }
    }
    return { fired, skipped, requested };
  }

  /** Catches views up with the log, like a projector that then ends. */
  async project(projections: readonly Projection[]): Promise<void> {
    const head = await this.store.head();
    const passed = new Signal<{ name: string; position: Position }>('checkpoints');
    const { store, readModel } = this;
    const clock = new SystemClock();
    const fence = this.#commands;
    const projector = createProjector({
      store,
      readModel,
      projections,
      telemetry: silent,
      clock,
      fence,
    });
    projector.onCheckpoint((name, position) => passed.send({ name, position }));
    const stop = new AbortController();
    const running = projector.run(stop.signal);
    for (const { name } of projections) {
      await passed.wait((each) => each.name === name && each.position >= head);
    }
    stop.abort();
    await running;
  }

  async close(): Promise<void> {
    for (const process of this.processes) await process.stop();
    await this.readModel.close();
    await this.coordination.close();
    await this.store.close();
    await this.#remove();
  }
}

/** A process with the scheduler role. */
export class SchedulerProcess {
  readonly ready = new Signal('the index to be up to date');
  readonly store: WatchedStore;
  readonly index: DueIndex;
  readonly scheduler: Scheduler;
  readonly leadership: Leadership;
  readonly live: LiveStreams<
    Parameters<typeof taskFold.evolve>[0],
    Parameters<typeof taskFold.evolve>[1]
  >;
  /** Errors while following the log. */
  readonly failures: unknown[] = [];
  /** The messages of its log, except those of level debug. */
  readonly lines: string[] = [];
  readonly #stop = new AbortController();
  readonly #works: Promise<unknown>[] = [];
  #stopped = false;

  constructor(
    world: World,
    name: string,
    options: {
      readonly store: WatchedStore;
      readonly clock: Clock;
      readonly lease?: number;
      readonly requester?: boolean;
      readonly held?: boolean;
      readonly owned?: boolean;
    },
  ) {
    const { coordination, readModel } = world;
    const { store, clock, lease = 365 * 86_400_000 } = options;
    this.store = store;
    const telemetry = collectingLines(this.lines, () => clock.steady());
    const shared = { store, coordination, clock, telemetry };
    this.leadership = new Leadership({ ...shared, name: 'scheduler', owner: name, lease });
    this.index = new DueIndex(store, readModel, silent);
    const { leadership, index } = this;
    const hold = options.held === true ? new Hold(store) : null;
    const obeying = hold === null ? {} : { hold };
    const { signal } = this.#stop;
    this.live = new LiveStreams(store, 'task-', taskFold);
    const tasks = new PinnedTasks(store, this.live);
    const requester =
      options.requester === true
        ? new RunRequester({ ...shared, leadership, tasks, name })
        : undefined;
    const agents = new LiveStreams(store, 'agent-', agentFold);
    const owners = options.owned === true ? new LiveOwners(agents) : undefined;
    const parts = { ...shared, index, leadership, name, requests: requester, owners };
    this.scheduler = createScheduler({ ...parts, ...obeying });
    if (hold !== null) {
      hold.onChange(() => this.scheduler.holdChanged());
      this.#works.push(this.#keep(() => hold.follow(signal, () => {})));
    }
    if (owners !== undefined) {
      const enforcement = new OwnerEnforcement({
        ...shared,
        readModel,
        agents,
        index,
        leadership,
        name,
      });
      this.#works.push(this.#keep(() => agents.follow(signal)));
      this.#works.push(enforcement.run(signal));
    }
    this.#works.push(leadership.run(signal));
    this.#works.push(this.live.follow(signal));
    if (requester !== undefined) {
      this.#works.push(this.#keep(() => requester.follow(signal)));
    }
    this.#works.push(
      this.#keep(() =>
        index.follow(signal, () => {
          this.scheduler.start();
          this.ready.send();
        }),
      ),
    );
  }

  /** Restarts failed work, like the process. */
  async #keep(work: () => Promise<void>): Promise<void> {
    while (!this.#stop.signal.aborted) {
      await work().catch((error: unknown) => this.failures.push(error));
    }
  }

  /** Dies at once. */
  kill(): void {
    this.store.dead = true;
    this.#stopped = true;
    this.#stop.abort();
  }

  async stop(): Promise<void> {
    if (this.#stopped) return;
    this.#stopped = true;
    await this.scheduler.stop();
    this.#stop.abort();
    await Promise.all(this.#works);
  }
}
