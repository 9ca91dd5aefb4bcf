import type { Position } from '../../domain/event-store.ts';
import type { SkippedEvents } from '../../domain/operators/skipped-events.ts';
import { FillingBeside, type FillOrder } from './filling-beside.ts';
import { Filling } from './filling.ts';
import { Following } from '../projector/following.ts';
import { GenerationFeeder } from './generation-feeder.ts';
import type { Making } from './making.ts';
import { isOfOtherLog, throwAway } from './other-log.ts';
import { parkedView } from '../projector/parking.ts';
import { Reaching } from './reaching.ts';
import { Rebuild } from './rebuild.ts';
import type { ViewOptions } from '../projector/view-options.ts';
import type { ViewOrders } from '../projector/view-orders.ts';

/** Whom the generations of a view tell. */
export interface GenerationListener {
  /** What feeds the generation that is read; null for none. */
  live(): Following | null;
  /** What feeds an older shape, which is read until there is one to read of this; null for none. */
  older(): Following | null;
  /** Events that an operator had left out. */
  skipped(): SkippedEvents;
  /** What fed a generation has ended by itself: the generation was thrown away, or is another projector's. */
  onUnwanted(following: Following): void;
  /** A generation in the making is filled, or has failed. */
  onChange(): void;
}

/** Makes, feeds and throws away the generations of one view. */
export class Generations {
  readonly reaching = new Reaching();
  readonly #options: ViewOptions;
  readonly #listener: GenerationListener;

  constructor(options: ViewOptions, listener: GenerationListener) {
    this.#options = options;
    this.#listener = listener;
  }

  /** Whether there is nothing that could be read. */
  get isAlone(): boolean {
    return this.#listener.live() === null && this.#listener.older() === null;
  }

  /** Feeds a generation from where it is. Begins at once. */
  follow(version: number): Following {
    return this.#follow(this.#feederOf(version));
  }

  /**
   * A generation in the making, which has not begun; one that was left goes on.
   * @param asked events a second at most, where there is something to read meanwhile
   * @throws ReadModelError
   */
  async make(version: number, asked: number | undefined): Promise<Rebuild> {
    const { store, feed, parking, projection } = this.#options;
    if (!(await this.all()).includes(version)) {
      await parking.forget(parkedView(projection, version), await store.head());
    }
    const { isAlone } = this;
    const rate = isAlone ? undefined : asked;
    const filling = await this.#filling(version, rate, !isAlone);
    const { feeder } = filling;
    return new Rebuild({
      filling,
      follow: () => {
        feed.begin(feeder.passed);
        return this.#follow(feeder);
      },
      onChange: () => this.#listener.onChange(),
    });
  }

  /** @param rate events a second at most */
  async #filling(
    version: number,
    rate: number | undefined,
    endsAtPoison: boolean,
  ): Promise<Making> {
    const { store, clock, telemetry, parking, projection, fence } = this.#options;
    const { fillBatchSize, fillElsewhere: elsewhere } = this.#options;
    const feeder = this.#feederOf(version, endsAtPoison);
    const mayGo = elsewhere !== undefined && rate === undefined && projection.ownStreams === true;
    if (mayGo && elsewhere.isWorthIt(await store.head())) {
      const order = (head: Position): FillOrder => ({
        ...{ name: projection.name, generation: version, fence, endsAtPoison, head },
        batchSize: fillBatchSize,
        skipped: this.#listener.skipped(),
      });
      return new FillingBeside({ feeder, elsewhere, order, parking, store, clock, telemetry });
    }
    // At a slow rate, a little at a time: a rest between large batches would be long.
    const batchSize = Math.min(fillBatchSize, Math.ceil((rate ?? Infinity) / 4));
    return new Filling({ feeder, store, clock, telemetry, batchSize, rate });
  }

  /** Those that there are, ascending. */
  all(): Promise<readonly number[]> {
    return this.#options.readModel.generations(this.#options.projection);
  }

  /**
   * The one that is read, and where it is; null for none. Where it is of another log, all are thrown away.
   *
   * @throws ReadModelError; EventStoreError; the signal's reason
   */
  async findLive(
    signal: AbortSignal,
  ): Promise<{ readonly generation: number; readonly position: Position } | null> {
    const { readModel, projection, store, clock, telemetry } = this.#options;
    const generation = await readModel.liveGeneration(projection);
    if (generation === null) return null;
    const isOfOther = await isOfOtherLog(projection, store, readModel, clock, signal);
    if (!isOfOther) return { generation, position: await readModel.checkpoint(projection) };
    await throwAway(projection, store, readModel, telemetry);
    return null;
  }

  /**
   * Lets reads go to a generation, and then to what is ordered by now. A projector may be stopped between what it has
   * said and this, and go on when another one has long led reads elsewhere: whoever does this last looks last.
   *
   * @throws ReadModelError; EventStoreError
   */
  async readFrom(version: number, orders: Pick<ViewOrders, 'load'>): Promise<void> {
    await this.#options.readModel.switchTo(this.#options.projection, version);
    const { live } = await orders.load();
    if (live === null || live === version || !(await this.all()).includes(live)) return;
    await this.readFrom(live, orders);
  }

  /** Throws away all that are not among these. */
  async keepOnly(versions: readonly (number | null | undefined)[]): Promise<void> {
    const { readModel, projection } = this.#options;
    const live = await readModel.liveGeneration(projection);
    for (const version of await this.all()) {
      if (version === live || versions.includes(version)) continue;
      await readModel.discard(projection, version);
    }
  }

  #follow(feeder: GenerationFeeder): Following {
    const { feed, store, clock, telemetry, batchSize, gatherMs, readModel, projection } =
      this.#options;
    const following: Following = new Following({
      ...{ feeder, feed, store, clock, telemetry, batchSize, gatherMs },
      isWanted: async () => {
        if (this.#listener.live() !== following) return true;
        return (await readModel.liveGeneration(projection)) === feeder.generation;
      },
      onUnwanted: () => this.#listener.onUnwanted(following),
    });
    return following;
  }

  #feederOf(generation: number, endsAtPoison = true): GenerationFeeder {
    const { readModel, projection, fence, parking, telemetry, onPassed } = this.#options;
    const feeder: GenerationFeeder = new GenerationFeeder({
      ...{ readModel, projection, generation, fence, parking, telemetry, endsAtPoison },
      skipped: () => this.#listener.skipped(),
      onPassed: (position) => {
        if (this.#listener.live()?.feeder === feeder) onPassed(position);
        this.reaching.passed();
      },
    });
    return feeder;
  }
}
