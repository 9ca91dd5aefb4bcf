import { BEGINNING, type Position } from '../../domain/event-store.ts';
import type { JsonObject } from '../../domain/json.ts';
import type { PoisonedKey } from './fold-batch.ts';
import type { ViewDocument, Projection, ReadModel, ViewWriter } from '../read-model.ts';
import { pagesOf, unlessMissing } from '../reading/pages.ts';

/** A key of a view that is parked because an event could not be folded into its document. */
export type ParkedDocument = JsonObject & {
  /** `<projection>/<generation>` */
  readonly view: string;
  readonly key: string;
  /** The position of the event that could not be folded. That event and all later events for the key are withheld. */
  readonly position: Position;
  readonly stream: string;
  /** The event's revision in its stream; missing if an older release parked the key. */
  readonly revision?: number;
  readonly type: string;
  readonly error: string;
};

/** The view of all parked keys. It follows no stream; the projector writes it. */
export const parkedProjection: Projection<ParkedDocument> = {
  name: 'parked',
  schema: 1,
  streams: [],
  fields: { view: 'text', key: 'text' },
  indexes: [['view', 'key']],
  keys: () => [],
  evolve: (document) => document,
};

/** Identifies a generation of a view among the parked keys. */
export function parkedView(projection: Projection, generation: number): string {
  return `${projection.name}.${projection.schema}/${generation}`;
}

const PAGE = 1000;

/**
 * Stores parked keys. A key is stored before the batch that leaves it out moves the checkpoint: after a crash, its
 * later events are not folded over the gap.
 */
export class Parking {
  readonly #readModel: ReadModel;
  readonly #fence: number;
  #writer: ViewWriter | null = null;
  #lastWrite: Promise<void> = Promise.resolve();

  constructor(readModel: ReadModel, fence: number) {
    this.#readModel = readModel;
    this.#fence = fence;
  }

  /** The parked keys of a view and the positions they are parked at. */
  async of(view: string): Promise<Map<string, Position>> {
    const kept = await this.#storedOf(view);
    return new Map(kept.map(({ document }) => [document.key, document.position]));
  }

  /** The event that a key of a view is parked at; null if it is not parked. */
  async find(view: string, key: string): Promise<PoisonedKey | null> {
    const stored = this.#readModel.get(parkedProjection, `${view}/${key}`);
    return (await unlessMissing(stored, null))?.document ?? null;
  }

  /** @throws ReadModelError as any write */
  park(view: string, poisoned: readonly PoisonedKey[]): Promise<void> {
    const documents = poisoned.map((each) => ({
      key: `${view}/${each.key}`,
      position: each.position,
      document: { view, ...each },
    }));
    return this.#write(documents);
  }

  /** Forgets all parked keys of a view that is built again. `at`: a position at or after all of them. */
  async forget(view: string, at: Position): Promise<void> {
    const kept = await this.#storedOf(view);
    if (kept.length === 0) return;
    await this.#write(kept.map(({ key }) => ({ key, position: at, document: null })));
  }

  /** Releases a key. `at`: a position at or after the event that it is parked at. */
  async release(view: string, key: string, at: Position): Promise<void> {
    await this.#write([{ key: `${view}/${key}`, position: at, document: null }]);
  }

  async close(): Promise<void> {
    await this.#lastWrite;
    await this.#writer?.close();
    this.#writer = null;
  }

  async #storedOf(view: string): Promise<readonly ViewDocument<ParkedDocument>[]> {
    const stored: ViewDocument<ParkedDocument>[] = [];
    const pages = pagesOf(this.#readModel, parkedProjection, {
      filters: [{ field: 'view', op: 'eq', value: view }],
      sort: [{ field: 'key', direction: 'ascending' }],
      limit: PAGE,
    });
    const read = async (): Promise<void> => {
      for await (const page of pages) stored.push(...page);
    };
    await unlessMissing(read(), undefined);
    return stored;
  }

  /** One write at a time: each needs the checkpoint that the previous one left. */
  #write(documents: Parameters<ViewWriter['write']>[0]['documents']): Promise<void> {
    const written = this.#lastWrite.then(async () => {
      const writer = (this.#writer ??= await this.#open());
      try {
        const from = await writer.checkpoint();
        const kept = await writer.load(documents.map(({ key }) => key));
        const positions = documents.map(({ position }) => position);
        const to = positions.reduce((one, other) => (one > other ? one : other), from);
        const positioned = documents.map((each) => {
          return { ...each, position: positionOf(each, kept.get(each.key)) };
        });
        await writer.write({ documents: positioned, from, to });
      } catch (error) {
        this.#writer = null;
        await closeQuietly(writer);
        throw error;
      }
    });
    this.#lastWrite = written.catch(() => undefined);
    return written;
  }

  async #open(): Promise<ViewWriter> {
    const live = await this.#readModel.liveGeneration(parkedProjection);
    const options = { generation: live ?? 1, bulk: false, fence: this.#fence };
    const writer = await this.#readModel.openWriter(parkedProjection, options);
    if (live !== null) return writer;
    try {
      // A checkpoint makes the view readable.
      const from = await writer.checkpoint();
      if (from === BEGINNING) await writer.write({ documents: [], from, to: from });
      await this.#readModel.switchTo(parkedProjection, options.generation);
      return writer;
    } catch (error) {
      await closeQuietly(writer);
      throw error;
    }
  }
}

/** Sorts after a position and before the next one. */
const AFTER_SUFFIX = '+';

type Written = Pick<
  Parameters<ViewWriter['write']>[0]['documents'][number],
  'position' | 'document'
>;

/**
 * A position at which a write takes effect. A key may have been released at the end of the log, and may then be parked
 * again at an earlier event.
 */
function positionOf({ position, document }: Written, kept: Written | undefined): Position {
  if (kept === undefined || kept.position < position) return position;
  const stays =
    document === null
      ? kept.document === null
      : kept.document !== null && eventOf(kept.document) >= eventOf(document);
  return stays ? position : `${kept.position}${AFTER_SUFFIX}`;
}

const eventOf = (document: JsonObject): Position => (document as ParkedDocument).position;

/** Closes a failed writer. Its first error says more than an error of closing would. */
async function closeQuietly(writer: ViewWriter): Promise<void> {
  await writer.close().catch(() => undefined);
}
