import type { Position } from '../../domain/event-store.ts';
import type { SkippedEvents } from '../../domain/operators/skipped-events.ts';
import { ParallelFiller } from '../parallel-fill/parallel-filler.ts';
import { Follower } from '../projector/follower.ts';
import { parkedView } from '../projector/parking.ts';
import type { ViewOptions } from '../projector/view-options.ts';
import type { ViewOrders } from '../projector/view-orders.ts';
import { Build, type Filler } from './build.ts';
import { CatchUp } from './catch-up.ts';
import { Filling } from './filling.ts';
import { discardForeign, isForeign } from './foreign-views.ts';
import { GenerationWriter } from './generation-writer.ts';

/** The view whose generations these are. */
export interface GenerationOwner {
  live(): Follower | null;
  /** Feeds an older shape, which is read until the present shape has a generation; null for none. */
  older(): Follower | null;
  skipped(): SkippedEvents;
  /** A follower ended: its generation was discarded, or belongs to another projector. */
  onUnwanted(follower: Follower): void;
  onChange(): void;
}

/** Builds, feeds and discards the generations of one view. */
export class Generations {
  readonly catchUp = new CatchUp();
  readonly #options: ViewOptions;
  readonly #owner: GenerationOwner;

  constructor(options: ViewOptions, owner: GenerationOwner) {
    this.#options = options;
    this.#owner = owner;
  }

  /** Whether nothing can be read. */
  get isAlone(): boolean {
    return this.#owner.live() === null && this.#owner.older() === null;
  }

  /** Feeds a generation from its checkpoint on. Starts at once. */
  follow(version: number): Follower {
    return this.#follow(this.#writerOf(version));
  }

  /**
   * Creates a build without starting it. A build that an earlier process left is continued.
   * @param asked events per second at most, while another generation can be read
   * @throws ReadModelError
   */
  async build(version: number, asked: number | undefined): Promise<Build> {
    const { store, parking, projection } = this.#options;
    if (!(await this.all()).includes(version)) {
      await parking.forget(parkedView(projection, version), await store.head());
    }
    const filler = await this.#filler(version, this.isAlone ? undefined : asked);
    return new Build({
      filler,
      follow: (writer) => this.#follow(writer),
      onChange: () => this.#owner.onChange(),
    });
  }

  async #filler(version: number, rate: number | undefined): Promise<Filler> {
    const { store, projection, fence, fillBatchSize, fillElsewhere: elsewhere } = this.#options;
    const endsAtPoison = !this.isAlone;
    const writer = this.#writerOf(version, endsAtPoison);
    const mayGo = elsewhere !== undefined && rate === undefined && projection.ownStreams === true;
    if (mayGo && elsewhere.isWorthIt(await store.head())) {
      return new ParallelFiller({ ...this.#options, writer, elsewhere }, (head) => ({
        name: projection.name,
        generation: version,
        fence,
        batchSize: fillBatchSize,
        endsAtPoison,
        head,
        skipped: this.#owner.skipped(),
      }));
    }
    // At a slow rate the batches are small: the rests between large ones would be long.
    const batchSize = Math.min(fillBatchSize, Math.ceil((rate ?? Infinity) / 4));
    return new Filling({ ...this.#options, writer, batchSize, rate });
  }

  all(): Promise<readonly number[]> {
    return this.#options.readModel.generations(this.#options.projection);
  }

  /**
   * The live generation and its position; null for none. A view of another log is discarded, with all its generations.
   * @throws ReadModelError; EventStoreError; the signal's reason
   */
  async findLive(
    signal: AbortSignal,
  ): Promise<{ readonly generation: number; readonly position: Position } | null> {
    const { readModel, projection } = this.#options;
    const generation = await readModel.liveGeneration(projection);
    if (generation === null) return null;
    if (!(await isForeign(this.#options, signal))) {
      return { generation, position: await readModel.checkpoint(projection) };
    }
    await discardForeign(this.#options);
    return null;
  }

  /**
   * Moves reads to a generation, and then to the one that the orders name by now. While a projector is suspended
   * between recording a switch and making it, another projector may move reads elsewhere.
   *
   * @throws ReadModelError; EventStoreError
   */
  async readFrom(version: number, orders: Pick<ViewOrders, 'load'>): Promise<void> {
    await this.#options.readModel.switchTo(this.#options.projection, version);
    const { live } = await orders.load();
    if (live === null || live === version || !(await this.all()).includes(live)) return;
    await this.readFrom(live, orders);
  }

  /** Discards all generations except these and the live one. */
  async keepOnly(versions: readonly (number | null | undefined)[]): Promise<void> {
    const { readModel, projection } = this.#options;
    const live = await readModel.liveGeneration(projection);
    for (const version of await this.all()) {
      if (version === live || versions.includes(version)) continue;
      await readModel.discard(projection, version);
    }
  }

  #follow(writer: GenerationWriter): Follower {
    const { readModel, projection } = this.#options;
    const follower: Follower = new Follower(this.#options, writer, {
      isWanted: async () => {
        if (this.#owner.live() !== follower) return true;
        return (await readModel.liveGeneration(projection)) === writer.generation;
      },
      onUnwanted: () => this.#owner.onUnwanted(follower),
    });
    return follower;
  }

  #writerOf(generation: number, endsAtPoison = true): GenerationWriter {
    const writer: GenerationWriter = new GenerationWriter({
      ...this.#options,
      generation,
      endsAtPoison,
      skipped: () => this.#owner.skipped(),
      onPassed: (position) => {
        if (this.#owner.live()?.writer === writer) this.#options.onPassed(position);
        this.catchUp.passed();
      },
    });
    return writer;
  }
}
