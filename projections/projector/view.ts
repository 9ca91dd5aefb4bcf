import type { Cancel } from '../../domain/clock.ts';
import { fromIso, toIso } from '../../domain/clock.ts';
import { BEGINNING, type Position } from '../../domain/event-store.ts';
import type { ProjectionEvent } from '../../domain/events/catalogue.ts';
import {
  rebuildUnderWay,
  type ProjectionOrders,
  type RebuildOrder,
} from '../../domain/operators/projection-orders.ts';
import { compareGenerations } from '../generations/compare-generations.ts';
import type { Following } from './following.ts';
import { Generations } from '../generations/generations.ts';
import { Insistence } from './insistence.ts';
import { OlderShape } from '../generations/older-shape.ts';
import { redoParkedKey } from './parked-key-work.ts';
import { rebuildStatus, type ProjectionState, type ProjectionStatus } from './projection-status.ts';
import type { Projection } from '../read-model.ts';
import type { Rebuild } from '../generations/rebuild.ts';
import { recordSkip } from './record-skip.ts';
import type { ViewOptions } from './view-options.ts';
import { ViewOrders } from './view-orders.ts';

/**
 * One view through its life: opens its live generation, or makes the first one; follows the log; and carries out what
 * operators order by events of `projection-<name>`. What is ordered is compared with what is, again and again: so an
 * order is carried out once, by whichever projector is there, and after a death it goes on where it was left.
 *
 *   filling ──► level and compared (Ready) ──► read (Switched); the one before is fed on, and can be gone back to
 *      └─ rests, fails, is canceled
 */
export class View {
  readonly #options: ViewOptions;
  readonly #generations: Generations;
  readonly #orders: ViewOrders;
  readonly #insistence: Insistence;
  /** Read until there is a generation of the code's own shape. */
  readonly #older: OlderShape;
  /** While it runs. */
  #running: AbortSignal | null = null;
  #live: Following | null = null;
  /** The generation in the making, or the one that failed last. */
  #rebuild: Rebuild | null = null;
  /** The generation before, as long as reads can go back to it. */
  #previous: Following | null = null;
  #cancelEndOfPrevious: Cancel = () => {};
  /** Why there is no generation to read, and none in the making. */
  #halted: string | null = null;
  /** Something may have to be done. */
  #noticed = true;
  #wake: () => void = () => {};

  constructor(options: ViewOptions) {
    this.#options = options;
    const { clock, telemetry, projection } = options;
    this.#orders = new ViewOrders(options);
    this.#older = new OlderShape(options);
    this.#insistence = new Insistence(clock, telemetry, projection.name);
    this.#generations = new Generations(options, {
      live: () => this.#live,
      older: () => this.#older.following,
      skipped: () => this.#orders.current.skipped,
      onUnwanted: (following) => this.#lost(following),
      onChange: () => this.notice(),
    });
  }

  get projection(): Projection {
    return this.#options.projection;
  }

  /** There is a new order, or something that one waits for has come. */
  notice(): void {
    this.#noticed = true;
    this.#wake();
  }

  /**
   * The live generation and where it is; null when there is none yet. Throws away what nobody wants of what an
   * earlier process left, and what is of another log. Tries until it is answered; null too when the signal is aborted.
   */
  async findLive(
    signal: AbortSignal,
  ): Promise<{ readonly generation: number; readonly position: Position } | null> {
    const found = await this.#insistence.on(signal, async () => {
      const orders = await this.#orders.load();
      if (orders.live !== null && (await this.#generations.all()).includes(orders.live)) {
        // A projector may have ended between saying so and doing it.
        await this.#generations.readFrom(orders.live, this.#orders);
      }
      await this.#keepOrdered();
      return this.#generations.findLive(signal);
    });
    return found ?? null;
  }

  /** Runs until the signal is aborted. `live`: the generation that {@link findLive} found. */
  async run(live: number | null, signal: AbortSignal): Promise<void> {
    this.#running = signal;
    if (live !== null) this.#live = this.#generations.follow(live);
    const end = (): void => {
      this.#generations.reaching.end();
      this.notice();
    };
    signal.addEventListener('abort', end, { once: true });
    while (!signal.aborted) {
      this.#noticed = false;
      await this.#insistence.on(signal, async () =>
        this.#carryOut(await this.#orders.load(), signal),
      );
      await this.#somethingNew(signal);
    }
    this.#cancelEndOfPrevious();
    await Promise.all([this.#rebuild?.stop(), this.#previous?.stop(), this.#live?.stop()]);
    await this.#older.stop();
    this.#running = null;
  }

  /** @param feedFault what keeps the feed from going on, where something does */
  status(feedFault: { readonly newer: boolean; readonly detail: string } | null): ProjectionStatus {
    const { projection, feed, clock } = this.#options;
    const feeder = (this.#live ?? this.#older.following)?.feeder;
    const position = feeder?.passed ?? BEGINNING;
    const caughtUp = feeder !== undefined && feed.isLevelAt(position);
    const lastAt = feeder?.lastOccurredAt ?? null;
    const lag = caughtUp || lastAt === null ? 0 : (clock.now() - fromIso(lastAt)) / 1000;
    const state = this.#state();
    const held = state === 'following' && feedFault !== null;
    const heldState = feedFault?.newer === true ? 'newer_schema' : 'waiting';
    const { previous, rebuild } = this.#orders.current;
    return {
      name: projection.name,
      version: this.#live?.feeder.generation ?? 0,
      schema: projection.schema,
      state: held ? heldState : state,
      position,
      lag_seconds: Math.max(0, lag),
      caught_up: caughtUp && !held,
      handled: feeder?.handled ?? 0,
      parked: feeder?.parked ?? 0,
      rebuild: rebuildStatus(rebuild, this.#rebuild?.status() ?? null),
      previous:
        this.#previous === null || previous === null
          ? null
          : { version: previous.version, until: toIso(previous.until) },
      detail:
        this.#halted ?? this.#insistence.fault ?? this.#live?.detail ?? feedFault?.detail ?? null,
    };
  }

  #state(): ProjectionState {
    if (this.#insistence.fault !== null) return 'waiting';
    if (this.#running === null) return 'opening';
    if (this.#running.aborted) return 'stopped';
    if (this.#halted !== null) return 'halted';
    return this.#live === null ? 'filling' : this.#live.state;
  }

  /** Does the next step of what is ordered; where more follows, that is noticed. */
  async #carryOut(orders: ProjectionOrders, signal: AbortSignal): Promise<void> {
    await this.#keepPrevious(orders);
    const order = rebuildUnderWay(orders);
    await this.#endOthers(orders, order);
    if (this.#live === null) await this.#open(order, signal);
    else await this.#older.stop();
    if (order !== null) await this.#advance(order, signal);
    const { wanted } = orders;
    const next = this.#previous;
    if (wanted !== null && next?.feeder.generation === wanted) {
      this.#previous = null;
      await this.#switchTo(next, (now) => now.wanted === wanted, signal);
    }
    for (const key of orders.parked.keys()) await this.#redo(key, signal);
  }

  /** The generation before, where it is still to be fed. */
  #keptOf({ previous }: ProjectionOrders): number | null {
    if (previous === null || previous.until <= this.#options.clock.now()) return null;
    return previous.version;
  }

  /** Throws away what is neither read nor ordered. @throws ReadModelError */
  #keepOrdered(): Promise<void> {
    const { current } = this.#orders;
    return this.#generations.keepOnly([rebuildUnderWay(current)?.version, this.#keptOf(current)]);
  }

  async #keepPrevious(orders: ProjectionOrders): Promise<void> {
    const kept = this.#keptOf(orders);
    if (this.#previous !== null && this.#previous.feeder.generation !== kept) {
      await this.#previous.stop();
      this.#previous = null;
      await this.#generations.keepOnly([this.#rebuild?.version, kept]);
    }
    const until = orders.previous?.until;
    if (kept === null || until === undefined || this.#previous !== null) return;
    if (kept === this.#live?.feeder.generation) return;
    if (!(await this.#generations.all()).includes(kept)) return;
    this.#previous = this.#generations.follow(kept);
    this.#cancelEndOfPrevious();
    const end = (): void => this.notice();
    this.#cancelEndOfPrevious = this.#options.clock.at(until, end, { background: true });
  }

  /** Ends a making that is not ordered any more. One that nobody has ordered, the first, goes on. */
  async #endOthers(
    { lastVersion, rebuild: last }: ProjectionOrders,
    order: RebuildOrder | null,
  ): Promise<void> {
    const rebuild = this.#rebuild;
    if (rebuild === null || rebuild.version === order?.version) return;
    if (order === null && rebuild.version > lastVersion && this.#live === null) return;
    // What failed is shown until something else is ordered.
    if (rebuild.error !== null && last?.version === rebuild.version) return;
    await rebuild.stop();
    this.#rebuild = null;
    await this.#generations.keepOnly([order?.version, this.#previous?.feeder.generation]);
  }

  /** There is nothing to read: another projector has put something there, or a generation has to be made. */
  async #open(order: RebuildOrder | null, signal: AbortSignal): Promise<void> {
    const { readModel, projection } = this.#options;
    const found = await readModel.liveGeneration(projection);
    if (found !== null) {
      this.#live = this.#generations.follow(found);
    } else if (this.#rebuild === null) {
      this.#halted = null;
      await this.#older.begin(signal);
      if (order !== null) return;
      const { lastVersion } = this.#orders.current;
      const version = Math.max(0, lastVersion, ...(await this.#generations.all())) + 1;
      this.#rebuild = await this.#generations.make(version, undefined);
      this.#rebuild.begin();
    } else if (order === null) {
      await this.#finishFirst(this.#rebuild, signal);
    }
  }

  async #finishFirst(rebuild: Rebuild, signal: AbortSignal): Promise<void> {
    const { following, error, version } = rebuild;
    if (error !== null) this.#reportFailure(version, error);
    if (following === null || signal.aborted) return;
    await this.#older.isPassed(following.feeder, this.#generations.reaching, signal);
    if (signal.aborted) return;
    await this.#options.readModel.switchTo(this.projection, version);
    this.#rebuild = null;
    this.notice();
    this.#readFrom(following);
    await this.#generations.keepOnly([this.#previous?.feeder.generation]);
  }

  async #advance(order: RebuildOrder, signal: AbortSignal): Promise<void> {
    const { version, paused } = order;
    const rebuild = (this.#rebuild ??= await this.#generations.make(
      version,
      order.rate ?? undefined,
    ));
    if (rebuild.error !== null) return this.#fail(version, rebuild.error);
    // Where nothing can be read, there is nothing that it could rest beside.
    if (paused && !this.#generations.isAlone) return rebuild.pause();
    this.#halted = null;
    rebuild.begin();
    const { following } = rebuild;
    if (following === null || signal.aborted) return;
    if (!order.ready) return this.#compare(version, following, signal);
    rebuild.ready();
    // Where nothing can be read, there is nothing to wait for.
    if (order.switch === 'manual' && !order.switchRequested && this.#live !== null) return;
    this.#rebuild = null;
    const isOrdered = (now: ProjectionOrders): boolean => {
      const under = rebuildUnderWay(now);
      return under?.version === version && (!under.paused || this.#generations.isAlone);
    };
    await this.#switchTo(following, isOrdered, signal);
  }

  async #compare(version: number, next: Following, signal: AbortSignal): Promise<void> {
    const { reaching } = this.#generations;
    const { schema } = this.projection;
    const before = this.#live?.feeder ?? null;
    const level = async (): Promise<void> => {
      if (before !== null) await reaching.level(before, next.feeder, signal);
    };
    await level();
    if (signal.aborted) return;
    const rest = (): Promise<void> => this.#options.clock.sleep(1, signal);
    const comparison =
      before === null ? null : await compareGenerations(before, next.feeder, level, rest);
    await this.#orders.say((now) =>
      rebuildUnderWay(now)?.version === version
        ? [{ type: 'ProjectionRebuildReady', data: { schema, version, comparison } }]
        : [],
    );
    this.notice();
  }

  async #fail(version: number, error: string): Promise<void> {
    const { schema } = this.projection;
    this.#reportFailure(version, error);
    await this.#orders.say((now) =>
      rebuildUnderWay(now)?.version === version
        ? [{ type: 'ProjectionRebuildFailed', data: { schema, version, error } }]
        : [],
    );
    await this.#generations.keepOnly([this.#previous?.feeder.generation]);
  }

  #reportFailure(generation: number, detail: string): void {
    if (this.#live === null && this.#halted === detail) return;
    if (this.#live === null) this.#halted = detail;
    const fields = { projection: this.projection.name, generation, detail };
    this.#options.telemetry.log.error('a view could not be built', fields);
  }

  /** Lets reads go to a generation. @param isOrdered whether that is still so */
  async #switchTo(
    next: Following,
    isOrdered: (now: ProjectionOrders) => boolean,
    signal: AbortSignal,
  ): Promise<void> {
    const { reaching } = this.#generations;
    const { schema } = this.projection;
    const version = next.feeder.generation;
    const live = this.#live;
    const before = live?.feeder.generation ?? null;
    await this.#older.isPassed(next.feeder, reaching, signal);
    if (live !== null) {
      // Reads never go back: the new generation is where the old one ended before they go to it.
      await reaching.reaches(next.feeder, live.feeder.passed, signal);
      await live.stop();
      await reaching.reaches(next.feeder, live.feeder.passed, signal);
    }
    const switched: ProjectionEvent = {
      type: 'ProjectionSwitched',
      data: { schema, version, before },
    };
    const said = await this.#insistence.on(signal, () =>
      this.#orders.say((now) => (isOrdered(now) ? [switched] : [])),
    );
    if (said?.live !== version) {
      // Called off in the last moment, or the projector ends.
      await next.stop();
      if (before !== null && !signal.aborted) this.#live = this.#generations.follow(before);
      await this.#insistence.on(signal, () => this.#keepOrdered());
    } else {
      await this.#insistence.on(signal, () => this.#generations.readFrom(version, this.#orders));
      this.#readFrom(next);
      await this.#insistence.on(signal, () => this.#generations.keepOnly([version, before]));
    }
    this.notice();
  }

  #readFrom(following: Following): void {
    this.#live = following;
    this.#halted = null;
    this.#options.onPassed(following.feeder.passed);
  }

  /** The live generation was thrown away (a damaged file), or another process put another in its place. */
  #lost(following: Following): void {
    if (this.#live !== following) return;
    this.#live = null;
    const fields = { projection: this.projection.name };
    this.#options.telemetry.log.warn('the live generation of a view is gone', fields);
    this.notice();
  }

  /** Carries out what is ordered of a key that is held back. */
  async #redo(key: string, signal: AbortSignal): Promise<void> {
    const live = this.#live;
    const ordered = this.#orders.current.parked.get(key);
    if (live === null || ordered === undefined || signal.aborted) return;
    const { generation } = live.feeder;
    const isSkip = ordered.order === 'skip';
    let error = isSkip ? await recordSkip(this.#options, this.#orders, generation, key) : null;
    if (error === null) {
      try {
        const rest = (): Promise<void> => live.stop();
        const ask = { generation, key, order: ordered.order, signal, rest };
        error = await redoParkedKey(this.#options, ask);
      } finally {
        await live.stop();
        this.#live = this.#generations.follow(generation);
      }
    }
    if (signal.aborted) return;
    const { schema } = this.projection;
    const { version } = ordered;
    await this.#orders.say(({ parked }) =>
      parked.has(key) ? [{ type: 'ParkedKeySettled', data: { schema, version, key, error } }] : [],
    );
  }

  /** Resolves when something may have to be done, or at the end. */
  #somethingNew(signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      this.#wake = resolve;
      if (this.#noticed || signal.aborted) resolve();
    });
  }
}
