import { BEGINNING } from '../../domain/event-store.ts';
import type { Following } from '../projector/following.ts';
import type { GenerationFeeder } from './generation-feeder.ts';
import { Generations } from './generations.ts';
import type { Reaching } from './reaching.ts';
import {
  ReadModelError,
  type Filter,
  type Projection,
  type Query,
  type ReadModel,
} from '../read-model.ts';
import type { ViewOptions } from '../projector/view-options.ts';

/**
 * A projection in the older shapes that its code can read too, the latest first. The release that made one may be asked
 * for anything there, and may come back.
 */
function olderShapes({ readsOlder = [], ...projection }: Projection): readonly Projection[] {
  return readsOlder
    .filter((schema) => schema < projection.schema)
    .toSorted((a, b) => b - a)
    .map((schema) => ({ ...projection, schema, unasked: {} }));
}

/**
 * The shape of a view that reads go to: the code's own, or until it has a live generation the latest older one that
 * has and that the code can read. null where there is none either.
 *
 * @throws ReadModelError `UNAVAILABLE`
 */
export async function shapeRead(
  readModel: ReadModel,
  projection: Projection,
): Promise<Projection | null> {
  for (const shape of [projection, ...olderShapes(projection)]) {
    if ((await readModel.liveGeneration(shape)) !== null) return shape;
  }
  return null;
}

/**
 * A read model that reads what an older release has left where the code can read it, until the view of this release's
 * own shape is made. All else it does as the one that it is given.
 */
export function readingOlderShapes(readModel: ReadModel): ReadModel {
  /** On the path of every read, where there mostly is nothing older that could be read. */
  const read = <T>(projection: Projection, act: (shape: Projection) => Promise<T>): Promise<T> => {
    const asked = act(projection);
    if (projection.readsOlder === undefined) return asked;
    return asked.catch(async (error: unknown) => {
      if (!(error instanceof ReadModelError) || error.code !== 'NO_VIEW') throw error;
      const shape = await shapeRead(readModel, projection);
      if (shape === null) throw error;
      return act(shape);
    });
  };
  return {
    // The shapes of a projection have documents that the code takes for each other, which the types can't say.
    get: ((projection: Projection, key: string) =>
      read(projection, (shape) => readModel.get(shape, key))) as ReadModel['get'],
    find: ((projection: Projection, query: Query) =>
      read(projection, (shape) => readModel.find(shape, query))) as ReadModel['find'],
    count: (projection: Projection, filters: readonly Filter[]) =>
      read(projection, (shape) => readModel.count(shape, filters)),
    list: (projection, query) => read(projection, (shape) => readModel.list(shape, query)),
    async checkpoint(projection) {
      const position = await readModel.checkpoint(projection);
      if (position !== BEGINNING || projection.readsOlder === undefined) return position;
      const shape = await shapeRead(readModel, projection);
      return shape === null ? BEGINNING : readModel.checkpoint(shape);
    },
    async landmark(projection) {
      const shape =
        projection.readsOlder === undefined ? projection : await shapeRead(readModel, projection);
      return shape === null ? null : readModel.landmark(shape);
    },
    // Of an older shape it says nothing: what is read of that is read anew each time.
    ...(readModel.version === undefined
      ? {}
      : { version: (projection) => readModel.version?.(projection) ?? '' }),
    openWriter: (projection, options) => readModel.openWriter(projection, options),
    liveGeneration: (projection) => readModel.liveGeneration(projection),
    switchTo: (projection, generation) => readModel.switchTo(projection, generation),
    withdraw: (projection) => readModel.withdraw(projection),
    schemas: (projection) => readModel.schemas(projection),
    generations: (projection) => readModel.generations(projection),
    discard: (projection, generation) => readModel.discard(projection, generation),
    ping: () => readModel.ping(),
    close: () => readModel.close(),
  };
}

/** Feeds what an older release has left of a view, as long as reads go there. */
export class OlderShape {
  readonly #options: ViewOptions;
  #following: Following | null = null;

  constructor(options: ViewOptions) {
    this.#options = options;
  }

  /** What feeds it; null where there is none, or it is not needed. */
  get following(): Following | null {
    return this.#following;
  }

  /** Begins, where there is one that the code can read. @throws ReadModelError; EventStoreError; the signal's reason */
  async begin(signal: AbortSignal): Promise<void> {
    if (this.#following !== null) return;
    const { readModel, projection } = this.#options;
    const shape = await shapeRead(readModel, projection);
    if (shape === null || shape.schema === projection.schema) return;
    const generations = new Generations(
      { ...this.#options, projection: shape },
      {
        live: () => this.#following,
        older: () => null,
        // It only follows, and each event comes to it once: none of them can have been skipped before.
        skipped: () => new Set(),
        onUnwanted: () => (this.#following = null),
        onChange: () => undefined,
      },
    );
    const live = await generations.findLive(signal);
    if (live === null) return;
    this.#following = generations.follow(live.generation);
    const { telemetry } = this.#options;
    const fields = { projection: projection.name, schema: projection.schema, read: shape.schema };
    telemetry.log.info('a view is read in an older shape until its own is made', fields);
  }

  /** Resolves when the next to be read has passed all that was read here, so that reads don't go back; or at the end. */
  async isPassed(next: GenerationFeeder, reaching: Reaching, signal: AbortSignal): Promise<void> {
    const passed = this.#following?.feeder.passed;
    if (passed !== undefined) await reaching.reaches(next, passed, signal);
  }

  async stop(): Promise<void> {
    const following = this.#following;
    this.#following = null;
    await following?.stop();
  }
}
