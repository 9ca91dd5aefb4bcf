import { toIso, fromIso, type Clock } from '../../domain/clock.ts';
import { BEGINNING, type EventStore } from '../../domain/event-store.ts';
import { toNewEvents, type CommandContext } from '../../domain/handle.ts';
import { newId } from '../../domain/ids.ts';
import { streams } from '../../domain/streams.ts';
import type { Telemetry } from '../../observability/telemetry.ts';
import type { Projection, ReadModel } from '../read-model.ts';
import { inShape } from './shapes.ts';

/** How long a view in an older shape is kept after it was fed last. Milliseconds. */
export const OLDER_SHAPES_KEPT = 7 * 24 * 3_600_000;

/** Between two looks. Milliseconds. */
const PAUSE = 3_600_000;

/** Under which name it is remembered since when a shape stands still. */
const memoryOf = (name: string, schema: number): string => `older-shape ${name} ${schema}`;

/** What is remembered between processes: losing it costs another week of disk space. */
interface Memory {
  recall(name: string): Promise<string | null>;
  remember(name: string, value: string): Promise<boolean>;
}

/**
 * Throws away what older releases have left of the views: each generation of an older shape, once reads go to the
 * present one and nobody has fed the older one for a week. As long as a release of that shape runs, or this one reads
 * it, it is fed and stays; a release that comes back after that makes its view anew. Shapes of newer releases are
 * theirs.
 */
export class OlderShapesGoing {
  readonly #options: ConstructorParameters<typeof OlderShapesGoing>[0];

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

  /** Looks now and then, until the signal is aborted. Does not reject. */
  async run(signal: AbortSignal): Promise<void> {
    const { clock, telemetry } = this.#options;
    while (!signal.aborted) {
      try {
        await this.pass();
      } catch (error) {
        if (signal.aborted) return;
        telemetry.log.warn('older shapes of views could not be looked at; it is tried again', {
          error: error instanceof Error ? error.message : String(error),
        });
      }
      await clock.sleep(PAUSE, signal).catch(() => {});
    }
  }

  /** Looks once. @throws ReadModelError, EventStoreError, and what the memory throws */
  async pass(): Promise<void> {
    const { readModel, projections } = this.#options;
    for (const projection of projections) {
      const schemas = await readModel.schemas(projection);
      const older = schemas.filter((schema) => schema < projection.schema);
      // Until there is one of the present shape, reads may go to an older one.
      if (older.length === 0 || (await readModel.liveGeneration(projection)) === null) continue;
      for (const schema of older) await this.#look(inShape(projection, schema));
    }
  }

  async #look(shape: Projection): Promise<void> {
    const { readModel, memory, clock } = this.#options;
    const name = memoryOf(shape.name, shape.schema);
    const position = await readModel.checkpoint(shape);
    const known = standingOf(await memory.recall(name));
    const now = clock.now();
    // One that is thrown away by half is nowhere. A time that lies ahead: the clock was put back.
    const stands = known?.position === position || position === BEGINNING;
    if (known === null || !stands || known.since > now) {
      await memory.remember(name, `${toIso(now)} ${position}`);
    } else if (now - known.since >= OLDER_SHAPES_KEPT) {
      await this.#discard(shape);
      await memory.remember(name, '');
    }
  }

  /** What is recorded comes first: killed in between, the next look throws the rest away. */
  async #discard(shape: Projection): Promise<void> {
    const { store, readModel, telemetry } = this.#options;
    const generations = await readModel.generations(shape);
    const { name, schema } = shape;
    const version = Math.max(1, ...generations);
    const stream = streams.projection(name);
    const data = { schema, version };
    const events = toNewEvents(
      stream,
      [{ type: 'ProjectionShapeDiscarded', data }],
      this.#context(),
    );
    await store.append(stream, events, 'any');
    await readModel.withdraw(shape);
    for (const generation of generations) await readModel.discard(shape, generation);
    telemetry.log.info('a view in an older shape was thrown away', { projection: name, schema });
  }

  #context(): CommandContext {
    const now = this.#options.clock.now();
    const id = newId(now);
    return { commandId: id, actor: 'service', source: 'projector', correlationId: id, now };
  }
}

/** null for nothing, and for text that is of another release. */
function standingOf(
  text: string | null,
): { readonly position: string; readonly since: number } | null {
  const [, since, position] = /^(\S+) (\S*)$/.exec(text ?? '') ?? [];
  if (since === undefined || position === undefined) return null;
  return { position, since: fromIso(since) };
}
