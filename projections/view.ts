import type { Clock } from '../domain/clock.ts';
import { fromIso } from '../domain/clock.ts';
import { BEGINNING, type EventStore, type Position } from '../domain/event-store.ts';
import type { Telemetry } from '../observability/telemetry.ts';
import { BackOff } from './back-off.ts';
import { Filling } from './filling.ts';
import { Following } from './following.ts';
import { GenerationFeeder } from './generation-feeder.ts';
import { parkedView, type Parking } from './parking.ts';
import type { ProjectionState, ProjectionStatus } from './projection-status.ts';
import type { Projection, ReadModel } from './read-model.ts';
import type { SharedFeed } from './shared-feed.ts';

export interface ViewOptions {
  readonly projection: Projection;
  readonly store: EventStore;
  readonly readModel: ReadModel;
  readonly feed: SharedFeed;
  readonly parking: Parking;
  readonly fence: number;
  readonly clock: Clock;
  readonly telemetry: Telemetry;
  readonly batchSize: number;
  readonly fillBatchSize: number;
  /** Told whenever the generation that is read has everything up to a position. */
  readonly onPassed: (position: Position) => void;
}

/** A rebuild was asked for while one is under way, or while the projector does not run. */
export class RebuildRefusedError extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'RebuildRefusedError';
  }
}

/**
 * One view through its life: opens its live generation, or makes the first one; follows the log; makes a
 * new generation beside the live one when asked to, and lets reads go to it when it is level.
 */
export class View {
  readonly #options: ViewOptions;
  /** While it runs. */
  #running: AbortSignal | null = null;
  #live: Following | null = null;
  /** The generation in the making, or the one that failed last. */
  #filling: Filling | null = null;
  #isMaking = false;
  #making: Promise<void> = Promise.resolve();
  /** Why there is no generation to read, and none in the making. */
  #halted: string | null = null;
  /** What keeps it from being opened. */
  #closed: string | null = null;
  #awaited: {
    readonly feeder: GenerationFeeder;
    readonly at: Position;
    readonly go: () => void;
  }[] = [];

  constructor(options: ViewOptions) {
    this.#options = options;
  }

  get projection(): Projection {
    return this.#options.projection;
  }

  /**
   * The live generation and where it is; null when there is none yet. Throws away what an earlier
   * process left unfinished. Tries until it is answered; null too when the signal is aborted.
   */
  async findLive(
    signal: AbortSignal,
  ): Promise<{ readonly generation: number; readonly position: Position } | null> {
    const { readModel, projection } = this.#options;
    const found = await this.#insist(signal, async () => {
      const live = await readModel.liveGeneration(projection);
      for (const generation of await readModel.generations(projection)) {
        if (generation > (live ?? 0)) await readModel.discard(projection, generation);
      }
      if (live === null) return null;
      return { generation: live, position: await readModel.checkpoint(projection) };
    });
    return found ?? null;
  }

  /** Runs until the signal is aborted. `live`: the generation that {@link findLive} found. */
  async run(live: number | null, signal: AbortSignal): Promise<void> {
    this.#running = signal;
    if (live === null) this.#make(1, undefined, signal);
    else this.#live = this.#followLive(live);
    if (!signal.aborted) {
      await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }));
    }
    for (const { go } of this.#awaited) go();
    await this.#making;
    await this.#live?.stop();
    this.#running = null;
  }

  /**
   * Begins to make the next generation; reads go to it by themselves when it is level. The one before stays
   * as it then is.
   *
   * @param rate events a second at most
   * @returns the number of the generation in the making
   * @throws RebuildRefusedError; ReadModelError
   */
  async rebuild(rate: number | undefined): Promise<number> {
    const signal = this.#running;
    if (signal === null || signal.aborted) {
      throw new RebuildRefusedError('the projector does not run');
    }
    if (this.#isMaking) throw new RebuildRefusedError(`${this.projection.name} is being built`);
    this.#isMaking = true;
    try {
      const generations = await this.#options.readModel.generations(this.projection);
      const generation = Math.max(0, ...generations) + 1;
      this.#make(generation, rate, signal);
      return generation;
    } catch (error) {
      this.#isMaking = false;
      throw error;
    }
  }

  /** @param feedFault what keeps the feed from going on, where something does */
  status(feedFault: { readonly newer: boolean; readonly detail: string } | null): ProjectionStatus {
    const { projection, feed, clock } = this.#options;
    const feeder = this.#live?.feeder;
    const position = feeder?.passed ?? BEGINNING;
    const caughtUp = feeder !== undefined && feed.isLevelAt(position);
    const lastAt = feeder?.lastOccurredAt ?? null;
    const lag = caughtUp || lastAt === null ? 0 : (clock.now() - fromIso(lastAt)) / 1000;
    const state = this.#state();
    const held = state === 'following' && feedFault !== null;
    const heldState = feedFault?.newer === true ? 'newer_schema' : 'waiting';
    return {
      name: projection.name,
      version: feeder?.generation ?? 0,
      schema: projection.schema,
      state: held ? heldState : state,
      position,
      lag_seconds: Math.max(0, lag),
      caught_up: caughtUp && !held,
      handled: feeder?.handled ?? 0,
      parked: feeder?.parked ?? 0,
      rebuild: this.#filling?.status() ?? null,
      detail: this.#halted ?? this.#closed ?? this.#live?.detail ?? feedFault?.detail ?? null,
    };
  }

  #state(): ProjectionState {
    if (this.#closed !== null) return 'waiting';
    if (this.#running === null) return 'opening';
    if (this.#running.aborted) return 'stopped';
    if (this.#halted !== null) return 'halted';
    return this.#live === null ? 'filling' : this.#live.state;
  }

  #make(generation: number, rate: number | undefined, signal: AbortSignal): void {
    this.#isMaking = true;
    this.#halted = null;
    const { store, clock, telemetry, fillBatchSize: batchSize } = this.#options;
    const feeder = this.#feederOf(generation);
    const filling = new Filling({ feeder, store, clock, telemetry, batchSize, rate });
    this.#filling = filling;
    this.#making = this.#build(filling, signal).then(
      () => {
        this.#filling = null;
        this.#isMaking = false;
      },
      (error: unknown) => {
        const detail = messageOf(error);
        filling.failed(detail);
        if (this.#live === null) this.#halted = detail;
        this.#isMaking = false;
        telemetry.log.error('a view could not be built', { ...this.#fields(), generation, detail });
      },
    );
  }

  async #build(filling: Filling, signal: AbortSignal): Promise<void> {
    const { readModel, store, parking, feed } = this.#options;
    const { projection } = this;
    const { feeder } = filling;
    await this.#insist(signal, async () =>
      parking.forget(parkedView(projection, feeder.generation), await store.head()),
    );
    if (!(await filling.run(signal))) return;
    feed.begin(feeder.passed);
    const before = this.#live;
    const next: Following = this.#follow(feeder, async () => {
      if (this.#live !== next) return true;
      return (await readModel.liveGeneration(projection)) === feeder.generation;
    });
    if (before !== null) {
      // Reads never go back: the new generation is where the old one ended before they go to it.
      await this.#reaches(feeder, before.feeder.passed, signal);
      await before.stop();
      await this.#reaches(feeder, before.feeder.passed, signal);
    }
    if (signal.aborted) return next.stop();
    await this.#insist(signal, () => readModel.switchTo(projection, feeder.generation));
    this.#live = next;
    this.#options.onPassed(feeder.passed);
    await this.#discardBefore(before?.feeder.generation ?? feeder.generation, signal);
  }

  async #discardBefore(kept: number, signal: AbortSignal): Promise<void> {
    const { readModel } = this.#options;
    await this.#insist(signal, async () => {
      for (const generation of await readModel.generations(this.projection)) {
        if (generation < kept) await readModel.discard(this.projection, generation);
      }
    });
  }

  #followLive(generation: number): Following {
    const { readModel, projection } = this.#options;
    return this.#follow(this.#feederOf(generation), async () => {
      return (await readModel.liveGeneration(projection)) === generation;
    });
  }

  #follow(feeder: GenerationFeeder, isWanted: () => Promise<boolean>): Following {
    const { feed, store, clock, telemetry, batchSize } = this.#options;
    const following: Following = new Following({
      ...{ feeder, feed, store, clock, telemetry, batchSize, isWanted },
      onUnwanted: () => {
        if (this.#live === following) void this.#startOver();
      },
    });
    return following;
  }

  /** The live generation was thrown away (a damaged file), or another process put another in its place. */
  async #startOver(): Promise<void> {
    const signal = this.#running;
    this.#live = null;
    if (signal === null) return;
    const { readModel, projection, telemetry } = this.#options;
    telemetry.log.warn('the live generation of a view is gone', this.#fields());
    const found = await this.#insist(signal, async () => ({
      live: await readModel.liveGeneration(projection),
      all: await readModel.generations(projection),
    }));
    // One that is in the making takes its place by itself.
    if (found === undefined || signal.aborted || this.#isMaking) return;
    if (found.live !== null) this.#live = this.#followLive(found.live);
    else this.#make(Math.max(0, ...found.all) + 1, undefined, signal);
  }

  #feederOf(generation: number): GenerationFeeder {
    const { readModel, projection, fence, parking, telemetry } = this.#options;
    const feeder: GenerationFeeder = new GenerationFeeder({
      ...{ readModel, projection, generation, fence, parking, telemetry },
      onPassed: (position) => {
        if (this.#live?.feeder === feeder) this.#options.onPassed(position);
        if (this.#awaited.length > 0) this.#release();
      },
    });
    return feeder;
  }

  /** Resolves when a generation in the making has passed a position, or at the end. */
  #reaches(feeder: GenerationFeeder, at: Position, signal: AbortSignal): Promise<void> {
    return new Promise((go) => {
      this.#awaited.push({ feeder, at, go });
      if (signal.aborted) go();
      this.#release();
    });
  }

  #release(): void {
    const there = this.#awaited.filter(({ feeder, at }) => feeder.passed >= at);
    this.#awaited = this.#awaited.filter((each) => !there.includes(each));
    for (const { go } of there) go();
  }

  /** Tries something until it works; undefined when the signal was aborted before. */
  async #insist<T>(signal: AbortSignal, action: () => Promise<T>): Promise<T | undefined> {
    const backOff = new BackOff(this.#options.clock);
    while (!signal.aborted) {
      try {
        const result = await action();
        this.#closed = null;
        return result;
      } catch (error) {
        this.#closed = messageOf(error);
        const fields = { ...this.#fields(), error: this.#closed };
        this.#options.telemetry.log.warn('a view can not be managed; it is tried again', fields);
        await backOff.wait(signal);
      }
    }
    return undefined;
  }

  #fields(): { readonly projection: string } {
    return { projection: this.projection.name };
  }
}

const messageOf = (error: unknown): string =>
  error instanceof Error ? error.message : String(error);
