import { toIso, fromIso, type Clock } from '../../domain/clock.ts';
import { BEGINNING, type EventStore } from '../../domain/event-store.ts';
import { toNewEvents } from '../../domain/handle.ts';
import { streams } from '../../domain/streams.ts';
import type { Telemetry } from '../../observability/telemetry.ts';
import { keepRunning } from '../projector/retry-loop.ts';
import { projectorContext } from '../projector/view-orders.ts';
import type { Projection, ReadModel } from '../read-model.ts';
import { inShape } from './older-shape.ts';

/** How long a view in an older shape is kept after it was last fed. */
export const OLDER_SHAPES_KEPT_MS = 7 * 24 * 3_600_000;

const CHECK_INTERVAL_MS = 3_600_000;

/** The key under which the last checkpoint of a shape is remembered, and since when. */
const memoryOf = (name: string, schema: number): string => `older-shape ${name} ${schema}`;

/** Remembered between processes. Losing it costs another week of disk space. */
interface Memory {
  recall(name: string): Promise<string | null>;
  remember(name: string, value: string): Promise<boolean>;
}

/**
 * Discards views in older shapes once reads use the present shape and nobody has fed the older one for a week. A shape
 * is fed, and stays, while a release of it runs or this release reads it; a release that returns later rebuilds it.
 * Newer shapes are left to their releases.
 */
export class OlderShapesCleanup {
  readonly #options: ConstructorParameters<typeof OlderShapesCleanup>[0];

  constructor(options: {
    readonly store: EventStore;
    readonly readModel: ReadModel;
    readonly projections: readonly Projection[];
    readonly memory: Memory;
    readonly clock: Clock;
    readonly telemetry: Telemetry;
  }) {
    this.#options = options;
  }

  /** Checks every hour until the signal is aborted. Does not reject. */
  async run(signal: AbortSignal): Promise<void> {
    const { clock, telemetry } = this.#options;
    const failure = 'could not check older shapes of views; retrying';
    await keepRunning({ clock, telemetry, failure }, signal, async () => {
      await this.check();
      await clock.sleep(CHECK_INTERVAL_MS, signal);
    });
  }

  /** Checks once. @throws ReadModelError, EventStoreError, and errors of the memory */
  async check(): Promise<void> {
    const { readModel, projections } = this.#options;
    for (const projection of projections) {
      const schemas = await readModel.schemas(projection);
      const older = schemas.filter((schema) => schema < projection.schema);
      // Until the present shape is built, reads may use an older one.
      if (older.length === 0 || (await readModel.liveGeneration(projection)) === null) continue;
      for (const schema of older) await this.#checkShape(inShape(projection, schema));
    }
  }

  async #checkShape(shape: Projection): Promise<void> {
    const { readModel, memory, clock } = this.#options;
    const name = memoryOf(shape.name, shape.schema);
    const position = await readModel.checkpoint(shape);
    const known = parseMemory(await memory.recall(name));
    const now = clock.now();
    // A half discarded shape has no checkpoint. A time in the future: the clock was set back.
    const isUnchanged = known?.position === position || position === BEGINNING;
    if (known === null || !isUnchanged || known.since > now) {
      await memory.remember(name, `${toIso(now)} ${position}`);
    } else if (now - known.since >= OLDER_SHAPES_KEPT_MS) {
      await this.#discard(shape);
      await memory.remember(name, '');
    }
  }

  /** The record comes first: after a crash, the next check discards the rest. */
  async #discard(shape: Projection): Promise<void> {
    const { store, readModel, clock, telemetry } = this.#options;
    const generations = await readModel.generations(shape);
    const { name, schema } = shape;
    const stream = streams.projection(name);
    const data = { schema, version: Math.max(1, ...generations) };
    const event = { type: 'ProjectionShapeDiscarded', data } as const;
    await store.append(stream, toNewEvents(stream, [event], projectorContext(clock)), 'any');
    await readModel.withdraw(shape);
    for (const generation of generations) await readModel.discard(shape, generation);
    telemetry.log.info('discarded a view in an older shape', { projection: name, schema });
  }
}

/** null for nothing, and for a string of another release. */
function parseMemory(
  text: string | null,
): { readonly position: string; readonly since: number } | null {
  const [, since, position] = /^(\S+) (\S*)$/.exec(text ?? '') ?? [];
  if (since === undefined || position === undefined) return null;
  return { position, since: fromIso(since) };
}
