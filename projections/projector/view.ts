import type { Position } from '../../domain/event-store.ts';
import type { ProjectionEvent } from '../../domain/events/catalogue.ts';
import { runningRebuild, type ProjectionOrders } from '../../domain/operators/projection-orders.ts';
import type { Build } from '../generations/build.ts';
import { compareGenerations } from '../generations/compare-generations.ts';
import { Generations } from '../generations/generations.ts';
import { OlderShapeFollower } from '../generations/older-shape-follower.ts';
import { PreviousGeneration } from '../generations/previous-generation.ts';
import type { Projection } from '../read-model.ts';
import type { Follower } from './follower.ts';
import { settleParkedKey } from './parked-key.ts';
import type { ProjectionStatus } from './projection-status.ts';
import { RetryLoop } from './retry-loop.ts';
import type { ViewOptions } from './view-options.ts';
import { ViewOrders } from './view-orders.ts';
import { nextState, type EventIn, type ViewEvent, type ViewState } from './view-states.ts';
import { viewStatus } from './view-status.ts';

/**
 * The worker of each state: it does one step and returns the resulting event, or null while there is nothing more to
 * do.
 */
type Workers = {
  readonly [S in Exclude<ViewState, 'opening' | 'stopped'>]: (
    orders: ProjectionOrders,
    signal: AbortSignal,
  ) => Promise<EventIn<S> | null>;
};

/**
 * Takes one view through the states of view-states.ts. Orders of operators (events of `projection-<name>`) are compared
 * with the present state repeatedly. So the running projector carries out each order once, and after a crash the next
 * projector continues.
 */
export class View {
  readonly #options: ViewOptions;
  readonly #generations: Generations;
  readonly #orders: ViewOrders;
  readonly #retryLoop: RetryLoop;
  /** Read until there is a generation of the code's own shape. */
  readonly #older: OlderShapeFollower;
  readonly #previous: PreviousGeneration;
  readonly #workers: Workers = {
    missing: (orders, signal) => this.#missing(orders, signal),
    following: (orders) => this.#following(orders),
    filling: (orders) => this.#filling(orders),
    paused: async (orders) => (this.#isPaused(orders) ? null : 'resumed'),
    catching_up: (orders, signal) => this.#catchingUp(orders, signal),
    ready: async (orders) => this.#ready(orders),
    switching: (orders, signal) => this.#switching(orders, signal),
    failed: (orders) => this.#failed(orders),
  };
  #state: ViewState = 'opening';
  #live: Follower | null = null;
  /** The generation being built, or the one that failed last. */
  #build: Build | null = null;
  #isNotified = true;
  #wake: () => void = () => {};

  constructor(options: ViewOptions) {
    this.#options = options;
    this.#orders = new ViewOrders(options);
    this.#older = new OlderShapeFollower(options);
    this.#retryLoop = new RetryLoop(options);
    this.#generations = new Generations(options, {
      live: () => this.#live,
      older: () => this.#older.follower,
      skipped: () => this.#orders.current.skipped,
      onUnwanted: (follower) => this.#lose(follower),
      onChange: () => this.notify(),
    });
    this.#previous = new PreviousGeneration(options.clock, this.#generations, () => this.notify());
  }

  get projection(): Projection {
    return this.#options.projection;
  }

  /** There may be something to do: a new order, or an event for which an order waits. */
  notify(): void {
    this.#isNotified = true;
    this.#wake();
  }

  /**
   * The live generation and its position; null if there is none. Discards generations that an earlier process left and
   * that nobody ordered, and views of another log. Retries until the stores answer. Also null when the signal is
   * aborted.
   */
  async findLive(
    signal: AbortSignal,
  ): Promise<{ readonly generation: number; readonly position: Position } | null> {
    const found = await this.#retryLoop.run(signal, async () => {
      const { live } = await this.#orders.load();
      // A projector may have crashed between recording a switch and making it.
      if (live !== null && (await this.#generations.all()).includes(live)) {
        await this.#generations.readFrom(live, this.#orders);
      }
      await this.#keepOrdered();
      return this.#generations.findLive(signal);
    });
    return found ?? null;
  }

  /** Runs until the signal is aborted. `live`: the generation that {@link findLive} found. */
  async run(live: number | null, signal: AbortSignal): Promise<void> {
    if (live !== null) this.#live = this.#generations.follow(live);
    this.#state = nextState('opening', live === null ? 'lost' : 'found');
    const end = (): void => {
      this.#state = 'stopped';
      this.#generations.catchUp.end();
      this.notify();
    };
    signal.addEventListener('abort', end, { once: true });
    if (signal.aborted) end();
    while (!signal.aborted) {
      this.#isNotified = false;
      await this.#retryLoop.run(signal, () => this.#step(signal));
      await this.#notified(signal);
    }
    await Promise.all([this.#build?.stop(), this.#previous.stop(), this.#live?.stop()]);
    await this.#older.stop();
  }

  status(): ProjectionStatus {
    return viewStatus({
      ...this.#options,
      state: this.#state,
      orders: this.#orders.current,
      live: this.#live,
      older: this.#older.follower,
      build: this.#build,
      previous: this.#previous.version,
      error: this.#retryLoop.error,
    });
  }

  /** One pass: side work, then the worker of the state. A new state is acted on in the next pass. */
  async #step(signal: AbortSignal): Promise<void> {
    const orders = await this.#orders.load();
    const live = this.#live?.writer.generation;
    await this.#previous.keep(orders, live, this.#build?.version);
    const event = await this.#nextEvent(orders, signal);
    if (event !== null && !signal.aborted) {
      this.#state = nextState(this.#state, event);
      this.notify();
    }
    await this.#settleParkedKeys(signal);
  }

  async #nextEvent(orders: ProjectionOrders, signal: AbortSignal): Promise<ViewEvent | null> {
    const state = this.#state;
    if (state === 'opening' || state === 'stopped') return null;
    if (state !== 'switching') {
      await this.#findReplacement();
      if (await this.#dropUnordered(orders)) return 'canceled';
      if (orders.wanted !== null && this.#previous.version === orders.wanted) return 'rolled_back';
    }
    return this.#workers[state](orders, signal);
  }

  async #missing(
    orders: ProjectionOrders,
    signal: AbortSignal,
  ): Promise<EventIn<'missing'> | null> {
    if (this.#live !== null) return 'found';
    await this.#build?.stop();
    await this.#older.begin(signal);
    const order = runningRebuild(orders);
    const known = await this.#generations.all();
    const version = order?.version ?? Math.max(0, orders.lastVersion, ...known) + 1;
    this.#build = await this.#generations.build(version, order?.rate ?? undefined);
    return 'begun';
  }

  async #following(orders: ProjectionOrders): Promise<EventIn<'following'> | null> {
    if (this.#live === null) return 'lost';
    const order = runningRebuild(orders);
    if (order === null) return null;
    this.#build ??= await this.#generations.build(order.version, order.rate ?? undefined);
    return 'begun';
  }

  async #filling(orders: ProjectionOrders): Promise<EventIn<'filling'> | null> {
    const build = this.#build;
    if (build === null) return 'canceled';
    if (build.error !== null) {
      const { version: generation, error: detail } = build;
      const fields = { projection: this.projection.name, generation, detail };
      this.#options.telemetry.log.error('could not build a view', fields);
      return 'poisoned';
    }
    if (this.#isPaused(orders)) {
      await build.pause();
      return 'paused';
    }
    build.begin();
    return build.follower === null ? null : 'filled';
  }

  async #catchingUp(
    orders: ProjectionOrders,
    signal: AbortSignal,
  ): Promise<EventIn<'catching_up'> | null> {
    const next = this.#build?.follower ?? null;
    if (next === null) return 'canceled';
    if (this.#isPaused(orders)) return 'paused';
    const order = runningRebuild(orders);
    if (order === null || order.ready) return 'level';
    const { catchUp } = this.#generations;
    const { clock } = this.#options;
    const before = this.#live?.writer ?? null;
    if (before !== null) await catchUp.level(before, next.writer, signal);
    if (signal.aborted) return null;
    const parts = { catchUp, clock, signal };
    const comparison =
      before === null ? null : await compareGenerations(before, next.writer, parts);
    const { version } = order;
    const data = { schema: this.projection.schema, version, comparison };
    await this.#record({ type: 'ProjectionRebuildReady', data });
    this.notify();
    return null;
  }

  #ready(orders: ProjectionOrders): EventIn<'ready'> | null {
    if (this.#isPaused(orders)) return 'paused';
    const order = runningRebuild(orders);
    const waits = order?.switch === 'manual' && !order.switchRequested;
    // While no generation can be read, the first one is released without an order.
    return waits && this.#live !== null ? null : 'released';
  }

  async #switching(
    orders: ProjectionOrders,
    signal: AbortSignal,
  ): Promise<EventIn<'switching'> | null> {
    const { wanted } = orders;
    const previous = this.#previous.take(wanted);
    const next = this.#build?.follower ?? null;
    const order = runningRebuild(orders);
    if (previous !== null) {
      await this.#switchTo(previous, (now) => now.wanted === wanted, signal);
    } else if (next !== null && order !== null) {
      this.#build = null;
      await this.#switchTo(
        next,
        (now) => runningRebuild(now)?.version === order.version && !this.#isPaused(now),
        signal,
      );
    } else if (next !== null) {
      await this.#switchToFirst(next, signal);
    }
    return 'settled';
  }

  async #failed(orders: ProjectionOrders): Promise<EventIn<'failed'> | null> {
    const build = this.#build;
    if (build === null) return 'canceled';
    const { version, error } = build;
    if (error === null || runningRebuild(orders)?.version !== version) return null;
    const data = { schema: this.projection.schema, version, error };
    await this.#record({ type: 'ProjectionRebuildFailed', data });
    await this.#generations.keepOnly([this.#previous.version]);
    return null;
  }

  /** Records the result of a rebuild that is still ordered. */
  async #record(event: ProjectionEvent): Promise<void> {
    await this.#orders.append((now) =>
      runningRebuild(now)?.version === event.data.version ? [event] : [],
    );
  }

  /** Whether the build is to pause. It never pauses while nothing can be read. */
  #isPaused(orders: ProjectionOrders): boolean {
    return runningRebuild(orders)?.paused === true && !this.#generations.isAlone;
  }

  /** Follows the live generation that another projector has put in place of a lost one. */
  async #findReplacement(): Promise<void> {
    if (this.#live === null) {
      const found = await this.#options.readModel.liveGeneration(this.projection);
      if (found === null) return;
      this.#live = this.#generations.follow(found);
    }
    await this.#older.stop();
  }

  /** Drops a build that is no longer requested. @returns whether there was one */
  async #dropUnordered(orders: ProjectionOrders): Promise<boolean> {
    const build = this.#build;
    const order = runningRebuild(orders);
    if (build === null || build.version === order?.version) return false;
    const isFirst = order === null && build.version > orders.lastVersion && this.#live === null;
    // A failed build is shown until the next order.
    const isShown = build.error !== null && orders.rebuild?.version === build.version;
    if (isFirst || isShown) return false;
    await build.stop();
    this.#build = null;
    await this.#generations.keepOnly([order?.version, this.#previous.version]);
    return true;
  }

  /** Discards generations that are neither read nor ordered. @throws ReadModelError */
  #keepOrdered(): Promise<void> {
    const { current } = this.#orders;
    const ordered = runningRebuild(current)?.version;
    return this.#generations.keepOnly([ordered, this.#previous.wantedBy(current)]);
  }

  /** The switch to a first generation, which nobody has ordered, is not recorded. */
  async #switchToFirst(next: Follower, signal: AbortSignal): Promise<void> {
    await this.#older.untilPassedBy(next.writer, this.#generations.catchUp, signal);
    if (signal.aborted) return;
    await this.#options.readModel.switchTo(this.projection, next.writer.generation);
    this.#build = null;
    this.#readFrom(next);
    await this.#generations.keepOnly([this.#previous.version]);
  }

  /** Moves reads to a generation. @param isOrdered whether the orders still say so */
  async #switchTo(
    next: Follower,
    isOrdered: (now: ProjectionOrders) => boolean,
    signal: AbortSignal,
  ): Promise<void> {
    const { catchUp } = this.#generations;
    const version = next.writer.generation;
    const live = this.#live;
    const before = live?.writer.generation ?? null;
    await this.#older.untilPassedBy(next.writer, catchUp, signal);
    if (live !== null) {
      // Reads never go back: the new generation passes the end of the old one first.
      await catchUp.reaches(next.writer, live.writer.passed, signal);
      await live.stop();
      await catchUp.reaches(next.writer, live.writer.passed, signal);
    }
    const data = { schema: this.projection.schema, version, before };
    const recorded = await this.#retryLoop.run(signal, () =>
      this.#orders.append((now) => (isOrdered(now) ? [{ type: 'ProjectionSwitched', data }] : [])),
    );
    if (recorded?.live !== version) {
      // Called off at the last instant, or the projector ends.
      await next.stop();
      if (before !== null && !signal.aborted) this.#live = this.#generations.follow(before);
      await this.#retryLoop.run(signal, () => this.#keepOrdered());
    } else {
      await this.#retryLoop.run(signal, () => this.#generations.readFrom(version, this.#orders));
      this.#readFrom(next);
      await this.#retryLoop.run(signal, () => this.#generations.keepOnly([version, before]));
    }
  }

  #readFrom(follower: Follower): void {
    this.#live = follower;
    this.#options.onPassed(follower.writer.passed);
  }

  /** The live generation was discarded (a damaged file), or another process replaced it. */
  #lose(follower: Follower): void {
    if (this.#live !== follower) return;
    this.#live = null;
    const fields = { projection: this.projection.name };
    this.#options.telemetry.log.warn('the live generation of a view is gone', fields);
    this.notify();
  }

  async #settleParkedKeys(signal: AbortSignal): Promise<void> {
    for (const key of this.#orders.current.parked.keys()) {
      const live = this.#live;
      const ordered = this.#orders.current.parked.get(key);
      if (live === null || ordered === undefined || signal.aborted) continue;
      const { generation } = live.writer;
      let isStopped = false;
      const stopFollower = (): Promise<void> => {
        isStopped = true;
        return live.stop();
      };
      const work = { key, ordered, generation, signal, stopFollower };
      try {
        await settleParkedKey(this.#options, this.#orders, work);
      } finally {
        if (isStopped) this.#live = this.#generations.follow(generation);
      }
    }
  }

  /** Resolves when there may be something to do, or at the end. */
  #notified(signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      this.#wake = resolve;
      if (this.#isNotified || signal.aborted) resolve();
    });
  }
}
