import type { Cancel } from '../../domain/clock.ts';
import type { ProjectionOrders } from '../../domain/operators/projection-orders.ts';
import type { Follower } from '../projector/follower.ts';
import type { ViewOptions } from '../projector/view-options.ts';
import type { Generations } from './generations.ts';

/** The generation before the live one. It is fed until its deadline, so that a rollback loses nothing. */
export class PreviousGeneration {
  readonly #clock: ViewOptions['clock'];
  readonly #generations: Generations;
  readonly #onDeadline: () => void;
  #follower: Follower | null = null;
  #cancelDeadline: Cancel = () => {};

  constructor(clock: ViewOptions['clock'], generations: Generations, onDeadline: () => void) {
    this.#clock = clock;
    this.#generations = generations;
    this.#onDeadline = onDeadline;
  }

  get version(): number | null {
    return this.#follower?.writer.generation ?? null;
  }

  wantedBy({ previous }: ProjectionOrders): number | null {
    return previous === null || previous.until <= this.#clock.now() ? null : previous.version;
  }

  /**
   * Starts or stops feeding it, as the orders and its deadline say.
   * @param live the generation that is read
   * @param build the generation that is being built
   */
  async keep(orders: ProjectionOrders, live?: number, build?: number): Promise<void> {
    const wanted = this.wantedBy(orders);
    if (this.#follower !== null && this.version !== wanted) {
      await this.stop();
      await this.#generations.keepOnly([build, wanted]);
    }
    const until = orders.previous?.until;
    if (wanted === null || until === undefined || this.#follower !== null) return;
    if (wanted === live || !(await this.#generations.all()).includes(wanted)) return;
    this.#follower = this.#generations.follow(wanted);
    this.#cancelDeadline();
    this.#cancelDeadline = this.#clock.at(until, this.#onDeadline, { background: true });
  }

  /** Hands over its follower if the generation has this version. */
  take(version: number | null): Follower | null {
    const follower = this.#follower;
    if (follower === null || version === null || this.version !== version) return null;
    this.#follower = null;
    return follower;
  }

  async stop(): Promise<void> {
    this.#cancelDeadline();
    const follower = this.#follower;
    this.#follower = null;
    await follower?.stop();
  }
}
