import { BEGINNING, type Position } from '../../domain/event-store.ts';
import type { JsonObject } from '../../domain/json.ts';
import type { PoisonedKey } from './fold-batch.ts';
import {
  ReadModelError,
  type KeptDocument,
  type Projection,
  type ReadModel,
  type ViewWriter,
} from '../read-model.ts';

/** A key of a view that is held back because an event could not be folded into its document. */
export type ParkedDocument = JsonObject & {
  /** `<projection>/<generation>` */
  readonly view: string;
  readonly key: string;
  /** Of the event that could not be folded; it and all later ones for the key are held back. */
  readonly position: Position;
  readonly stream: string;
  /** In its stream; an older release has not remembered it. */
  readonly revision?: number;
  readonly type: string;
  readonly error: string;
};

/** Parked keys of all views. Follows no stream: the projector writes it when it parks. */
export const parkedProjection: Projection<ParkedDocument> = {
  name: 'parked',
  schema: 1,
  streams: [],
  fields: { view: 'text', key: 'text' },
  indexes: [['view', 'key']],
  keys: () => [],
  evolve: (document) => document,
};

/** What identifies a generation of a view among the parked keys. */
export function parkedView(projection: Projection, generation: number): string {
  return `${projection.name}.${projection.schema}/${generation}`;
}

const PAGE = 1000;

/**
 * Remembers parked keys. One is written before the batch that leaves it out moves the checkpoint, so that
 * after a crash its later events are not folded over the gap.
 */
export class Parking {
  readonly #readModel: ReadModel;
  readonly #fence: number;
  #writer: ViewWriter | null = null;
  #turn: Promise<void> = Promise.resolve();

  constructor(readModel: ReadModel, fence: number) {
    this.#readModel = readModel;
    this.#fence = fence;
  }

  /** The parked keys of a view, and since when. */
  async of(view: string): Promise<Map<string, Position>> {
    const kept = await this.#keptOf(view);
    return new Map(kept.map(({ document }) => [document.key, document.position]));
  }

  /** What a key of a view is held back for; null where it is not. */
  async find(view: string, key: string): Promise<PoisonedKey | null> {
    try {
      const kept = await this.#readModel.get(parkedProjection, `${view}/${key}`);
      return kept?.document ?? null;
    } catch (error) {
      if (error instanceof ReadModelError && error.code === 'NO_VIEW') return null;
      throw error;
    }
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

  /** Forgets all of a view that begins anew. `at`: a position at or behind everything parked. */
  async forget(view: string, at: Position): Promise<void> {
    const kept = await this.#keptOf(view);
    if (kept.length === 0) return;
    await this.#write(kept.map(({ key }) => ({ key, position: at, document: null })));
  }

  /** A key is held back no longer. `at`: a position at or behind the event that it was held back for. */
  async release(view: string, key: string, at: Position): Promise<void> {
    await this.#write([{ key: `${view}/${key}`, position: at, document: null }]);
  }

  async close(): Promise<void> {
    await this.#turn;
    await this.#writer?.close();
    this.#writer = null;
  }

  async #keptOf(view: string): Promise<readonly KeptDocument<ParkedDocument>[]> {
    const kept: KeptDocument<ParkedDocument>[] = [];
    for (;;) {
      const page = await this.#pageOf(view, kept.at(-1));
      kept.push(...page);
      if (page.length < PAGE) return kept;
    }
  }

  async #pageOf(
    view: string,
    last: KeptDocument<ParkedDocument> | undefined,
  ): Promise<readonly KeptDocument<ParkedDocument>[]> {
    try {
      return await this.#readModel.find(parkedProjection, {
        filters: [{ field: 'view', op: 'eq', value: view }],
        sort: [{ field: 'key', direction: 'ascending' }],
        limit: PAGE,
        ...(last === undefined ? {} : { after: { values: [last.document.key], key: last.key } }),
      });
    } catch (error) {
      if (error instanceof ReadModelError && error.code === 'NO_VIEW') return [];
      throw error;
    }
  }

  /** One write at a time, as each needs the checkpoint that the one before left. */
  #write(documents: Parameters<ViewWriter['write']>[0]['documents']): Promise<void> {
    const written = this.#turn.then(async () => {
      const writer = (this.#writer ??= await this.#open());
      try {
        const from = await writer.checkpoint();
        const kept = await writer.load(documents.map(({ key }) => key));
        const positions = documents.map(({ position }) => position);
        const to = positions.reduce((one, other) => (one > other ? one : other), from);
        const placed = documents.map((each) => {
          return { ...each, position: placeOf(each, kept.get(each.key)) };
        });
        await writer.write({ documents: placed, from, to });
      } catch (error) {
        this.#writer = null;
        await closed(writer);
        throw error;
      }
    });
    this.#turn = written.catch(() => undefined);
    return written;
  }

  async #open(): Promise<ViewWriter> {
    const live = await this.#readModel.liveGeneration(parkedProjection);
    const options = { generation: live ?? 1, bulk: false, fence: this.#fence };
    const writer = await this.#readModel.openWriter(parkedProjection, options);
    if (live !== null) return writer;
    try {
      // A checkpoint makes it a view that can be read.
      const from = await writer.checkpoint();
      if (from === BEGINNING) await writer.write({ documents: [], from, to: from });
      await this.#readModel.switchTo(parkedProjection, options.generation);
      return writer;
    } catch (error) {
      await closed(writer);
      throw error;
    }
  }
}

/** Behind a position, and before the next one. */
const BEHIND = '+';

type Placed = Pick<
  Parameters<ViewWriter['write']>[0]['documents'][number],
  'position' | 'document'
>;

/**
 * Where a write stands, so that it counts: a key may be held back again for the event that it was held back for before
 * it was let go of, at the end of the log as that was then.
 */
function placeOf({ position, document }: Placed, kept: Placed | undefined): Position {
  if (kept === undefined || kept.position < position) return position;
  const stays =
    document === null
      ? kept.document === null
      : kept.document !== null && eventOf(kept.document) >= eventOf(document);
  return stays ? position : `${kept.position}${BEHIND}`;
}

/** The event that a key is held back for. */
const eventOf = (document: JsonObject): Position => (document as ParkedDocument).position;

/** Lets go of a writer that has failed; why it did says more than that it could not be closed in order either. */
async function closed(writer: ViewWriter): Promise<void> {
  await writer.close().catch(() => undefined);
}
