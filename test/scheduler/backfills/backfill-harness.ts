import { backfillFold, type KnownBackfill } from '../../../domain/backfills/backfill.ts';
import {
  planBackfill,
  requestBackfillCommand,
} from '../../../domain/backfills/backfill-commands.ts';
import { toIso } from '../../../domain/clock.ts';
import type { DomainEvent } from '../../../domain/events/catalogue.ts';
import type { RecordedEvent } from '../../../domain/event-store.ts';
import { load, toNewEvents } from '../../../domain/handle.ts';
import type { JsonObject } from '../../../domain/json.ts';
import { hasEnded, requireRun, runFold, type KnownRun } from '../../../domain/runs/run.ts';
import { idOf, streams } from '../../../domain/streams.ts';
import { taskFold } from '../../../domain/tasks/task.ts';
import { silent } from '../../../observability/telemetry.ts';
import { LiveStreams } from '../../../projections/reading/live-streams.ts';
import { Backfills } from '../../../scheduler/backfills/backfills.ts';
import { Leadership } from '../../../scheduler/processes/leadership.ts';
import { PinnedTasks } from '../../../scheduler/pinned-tasks.ts';
import { failure, success } from '../../projections/recorded.ts';
import { Signal } from '../../support/signals.ts';
import type { World } from '../scheduler-world.ts';
import type { WatchedStore } from '../watched-store.ts';

/** Backfills whose runs end when a test says so. */
export class BackfillWorld {
  readonly world: World;
  readonly processes: BackfillProcess[] = [];

  constructor(world: World) {
    this.world = world;
  }

  /**
   * Starts a process that executes backfills. `lead` is the name of its lease. With another name, it leads at the same
   * time as others.
   */
  async start(
    name: string,
    options: { readonly store?: WatchedStore; readonly lead?: string } = {},
  ): Promise<BackfillProcess> {
    const { store = this.world.connect(), lead = 'backfills' } = options;
    const process = new BackfillProcess(this.world, name, store, lead);
    this.processes.push(process);
    if (!store.dead) await process.ready.wait();
    await this.world.idle();
    return process;
  }

  /** Requests a backfill of a task as it is now. */
  async request(
    id: string,
    taskId: string,
    span: { readonly from: number; readonly to: number },
    more: {
      readonly only?: 'missing' | 'all';
      readonly concurrency?: number;
      readonly earlier?: readonly string[];
      readonly params?: JsonObject;
    } = {},
  ): Promise<void> {
    const { world } = this;
    const task = await world.task(taskId);
    const { only = 'missing', concurrency = 3, earlier = [], params } = more;
    const ask = { ...span, only, concurrency, params };
    const plan = planBackfill(taskId, task, ask, earlier, world.clock.now());
    await requestBackfillCommand(world.store, id, plan, world.context());
    await world.idle();
  }

  async backfill(id: string): Promise<KnownBackfill> {
    const { state } = await load(this.world.store, streams.backfill(id), backfillFold);
    if (state.state === 'none') throw new Error(`there is no backfill ${id}`);
    return state;
  }

  /** The runs that backfills requested, in the order of the log. */
  async requests(): Promise<readonly RecordedEvent[]> {
    const events = await this.world.events('run-');
    return events.filter(
      (event) => event.type === 'RunRequested' && event.data.trigger === 'backfill',
    );
  }

  /** The nominal times that backfills requested, in the order of the log. */
  async requested(): Promise<readonly string[]> {
    return (await this.requests()).map((event) =>
      event.type === 'RunRequested' ? (event.data.scheduled_for ?? '') : '',
    );
  }

  /** Runs of backfills that have not ended, oldest nominal time first. */
  async unfinished(): Promise<readonly { readonly id: string; readonly run: KnownRun }[]> {
    const going: { id: string; run: KnownRun }[] = [];
    for (const { stream } of await this.requests()) {
      const { state } = await load(this.world.store, stream, runFold);
      if (!hasEnded(state)) going.push({ id: idOf(stream), run: requireRun(state) });
    }
    const nominalOf = ({ run }: { run: KnownRun }): string => run.request.scheduled_for ?? '';
    return going.sort((a, b) => (nominalOf(a) < nominalOf(b) ? -1 : 1));
  }

  /** Appends a run's start and end. */
  async end(runId: string, how: 'succeeded' | 'failed' = 'succeeded'): Promise<void> {
    const { store } = this.world;
    const { state, revision } = await load(store, streams.run(runId), runFold);
    const { task_id } = requireRun(state).request;
    const at = toIso(this.world.clock.now());
    const started: DomainEvent = {
      type: 'RunStarted',
      data: { worker: 'w', attempt: 1, leased_until: at },
    };
    const ended: DomainEvent =
      how === 'succeeded'
        ? { type: 'RunSucceeded', data: success({ task_id, started_at: at }) }
        : { type: 'RunFailed', data: failure({ task_id, started_at: at }) };
    const stream = streams.run(runId);
    await store.append(
      stream,
      toNewEvents(stream, [started, ended], this.world.context()),
      revision,
    );
    await this.world.idle();
  }

  /** Ends runs until none is left. @returns the largest number of runs that were unfinished at once */
  async endAll(): Promise<number> {
    let most = 0;
    for (;;) {
      const going = await this.unfinished();
      most = Math.max(most, going.length);
      const [first] = going;
      if (first === undefined) return most;
      await this.end(first.id);
    }
  }

  async close(): Promise<void> {
    for (const process of this.processes) await process.stop();
  }
}

/** A process that executes backfills. */
export class BackfillProcess {
  readonly ready = new Signal('the backfills to be known');
  readonly store: WatchedStore;
  readonly leadership: Leadership;
  readonly backfills: Backfills;
  readonly failures: unknown[] = [];
  readonly #stop = new AbortController();
  readonly #works: Promise<unknown>[] = [];
  #stopped = false;

  constructor(world: World, name: string, store: WatchedStore, lead: string) {
    const { coordination, clock, readModel } = world;
    this.store = store;
    const shared = { store, clock, telemetry: silent };
    const lease = 3000;
    this.leadership = new Leadership({ ...shared, coordination, name: lead, owner: name, lease });
    const live = new LiveStreams(store, 'task-', taskFold);
    const tasks = new PinnedTasks(store, live);
    const { leadership } = this;
    this.backfills = new Backfills({ ...shared, readModel, leadership, tasks, name });
    const { signal } = this.#stop;
    this.#works.push(
      leadership.run(signal),
      live.follow(signal),
      this.#keep(() => this.backfills.follow(signal, () => this.ready.send())),
    );
  }

  async #keep(work: () => Promise<void>): Promise<void> {
    while (!this.#stop.signal.aborted) {
      await work().catch((error: unknown) => this.failures.push(error));
    }
  }

  /** Crashes. */
  kill(): void {
    this.store.dead = true;
    this.#stopped = true;
    this.#stop.abort();
  }

  async stop(): Promise<void> {
    if (this.#stopped) return;
    this.#stopped = true;
    this.#stop.abort();
    await Promise.all(this.#works);
  }
}
