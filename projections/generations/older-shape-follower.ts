import type { Follower } from '../projector/follower.ts';
import type { ViewOptions } from '../projector/view-options.ts';
import type { CatchUp } from './catch-up.ts';
import type { GenerationWriter } from './generation-writer.ts';
import { Generations } from './generations.ts';
import { shapeRead } from './older-shape.ts';

/** Feeds what an older release has left of a view, while that is read. */
export class OlderShapeFollower {
  readonly #options: ViewOptions;
  #follower: Follower | null = null;

  constructor(options: ViewOptions) {
    this.#options = options;
  }

  get follower(): Follower | null {
    return this.#follower;
  }

  /** Starts, if the code can read one. @throws ReadModelError; EventStoreError; the signal's reason */
  async begin(signal: AbortSignal): Promise<void> {
    if (this.#follower !== null) return;
    const { readModel, projection, telemetry } = this.#options;
    const shape = await shapeRead(readModel, projection);
    if (shape === null || shape.schema === projection.schema) return;
    const generations = new Generations(
      { ...this.#options, projection: shape },
      {
        live: () => this.#follower,
        older: () => null,
        // It only follows: each event is new to it, so none can have been skipped before.
        skipped: () => new Set(),
        onUnwanted: () => (this.#follower = null),
        onChange: () => undefined,
      },
    );
    const live = await generations.findLive(signal);
    if (live === null) return;
    this.#follower = generations.follow(live.generation);
    const fields = { projection: projection.name, schema: projection.schema, read: shape.schema };
    telemetry.log.info('reading a view in an older shape until its own is built', fields);
  }

  /** Resolves when the next generation has passed all that was read here, or at the end: reads must not go back. */
  async untilPassedBy(
    next: GenerationWriter,
    catchUp: CatchUp,
    signal: AbortSignal,
  ): Promise<void> {
    const passed = this.#follower?.writer.passed;
    if (passed !== undefined) await catchUp.reaches(next, passed, signal);
  }

  async stop(): Promise<void> {
    const follower = this.#follower;
    this.#follower = null;
    await follower?.stop();
  }
}
