import {
  type Binary,
  type ClientSession,
  type Collection,
  type Db,
  MongoServerError,
} from 'mongodb';
import { BEGINNING, type Position } from '../../domain/event-store.ts';
import { ReadModelError, type ViewWriter } from '../../projections/read-model.ts';
import { isDuplicateKey, isOverTime } from './failures.ts';
import { CHECKPOINTS, type StoredCheckpoint } from './layout.ts';

type Batch = Parameters<ViewWriter['write']>[0];

/** How long the transaction of a writer before is waited for, in milliseconds, before it is ended. */
const PATIENCE = 2000;

/** One generation's place in the log, moved only by whoever knows where it is and has the right to. */
export class Checkpoint {
  readonly #db: Db;
  readonly #stored: Collection<StoredCheckpoint>;
  readonly #collection: string;
  readonly #fence: number;

  /** @param collection the generation's */
  constructor(db: Db, collection: string, fence: number) {
    this.#db = db;
    this.#stored = db.collection<StoredCheckpoint>(CHECKPOINTS);
    this.#collection = collection;
    this.#fence = fence;
  }

  /**
   * Makes the generation known, and this writer's fence the smallest that is let through from now on.
   *
   * A writer that died in a transaction has the checkpoint for as long as the server keeps that, which is a minute by
   * default: it outlives its connection. So who comes after it ends it.
   *
   * @param session in which this writer has its transactions
   * @throws ReadModelError `FENCED` when there was a larger one
   */
  async claim(view: string, generation: number, session?: Binary): Promise<void> {
    const known = { view, generation };
    try {
      await this.#claim(known, session, PATIENCE);
    } catch (error) {
      if (!isOverTime(error)) throw error;
      await this.#endOther();
      await this.#claim(known, session);
    }
  }

  /** Where it is. */
  async position(): Promise<Position> {
    return (await this.#stored.findOne({ _id: this.#collection }))?.position ?? BEGINNING;
  }

  /** @throws ReadModelError `FENCED` when it is not there any more, or somebody else's */
  async expect(from: Position): Promise<void> {
    const stored = await this.#stored.findOne(this.#mine(from));
    if (stored === null) throw await this.refusal(from);
  }

  /**
   * As {@link expect}, and marks that documents beyond the position are being written: until the checkpoint has moved,
   * a list read from them is of no one instant. The mark need not outlive a crash that the documents don't outlive
   * either, and the journal is written in order.
   *
   * @throws ReadModelError `FENCED`
   */
  async announce({ from, to }: Pick<Batch, 'from' | 'to'>): Promise<void> {
    const stored = await this.#stored.findOneAndUpdate(
      this.#mine(from),
      { $set: { writing: to } },
      { writeConcern: { w: 1, journal: false } },
    );
    if (stored === null) throw await this.refusal(from);
  }

  /** Moves it, with the landmark where there is one. @throws ReadModelError `FENCED` as {@link expect} */
  async move(
    { from, to, landmark }: Pick<Batch, 'from' | 'to' | 'landmark'>,
    session?: ClientSession,
  ): Promise<void> {
    const moved = await this.#stored.updateOne(
      this.#mine(from),
      {
        $set: { position: to, fence: this.#fence, ...(landmark && { landmark }) },
        $unset: { writing: '' },
      },
      session === undefined ? {} : { session },
    );
    if (moved.matchedCount === 0) throw await this.refusal(from);
  }

  /** Waits until everything written so far survives a crash and a change of the primary. */
  async settle(): Promise<void> {
    // The journal is written in order: once this is in it, so is whatever came before.
    await this.#stored.updateOne(
      { _id: this.#collection },
      { $set: { settled: true } },
      { writeConcern: { w: 'majority', journal: true } },
    );
  }

  /** Why a write is refused, in words. */
  async refusal(from?: Position): Promise<ReadModelError> {
    const stored = await this.#stored.findOne({ _id: this.#collection });
    const reason =
      stored === null
        ? 'the generation was thrown away'
        : stored.fence > this.#fence
          ? `a writer with fence ${stored.fence} came after this one's ${this.#fence}`
          : `the checkpoint is "${stored.position}", not "${from ?? ''}"`;
    return new ReadModelError('FENCED', `${this.#collection} can't be written: ${reason}`);
  }

  async #claim(
    known: Pick<StoredCheckpoint, 'view' | 'generation'>,
    session: Binary | undefined,
    maxTimeMS?: number,
  ): Promise<void> {
    // The second time is for two who claim a new generation at once: both insert, one meets the other's.
    for (const last of [false, true]) {
      try {
        await this.#stored.updateOne(
          { _id: this.#collection, fence: { $lte: this.#fence } },
          {
            $set: { fence: this.#fence, ...(session !== undefined && { session }) },
            $setOnInsert: { position: BEGINNING, ...known },
          },
          { upsert: true, ...(maxTimeMS !== undefined && { maxTimeMS }) },
        );
        return;
      } catch (error) {
        if (!isDuplicateKey(error)) throw error;
        if (last) throw await this.refusal();
      }
    }
  }

  /** Ends the transaction of the writer before. Any user may do so with sessions of their own. */
  async #endOther(): Promise<void> {
    const stored = await this.#stored.findOne({
      _id: this.#collection,
      fence: { $lte: this.#fence },
    });
    if (stored?.session === undefined) return;
    try {
      await this.#db.command({ killSessions: [{ id: stored.session }] });
    } catch (error) {
      // Where a server does not let it be done, it does so itself after its time.
      if (!(error instanceof MongoServerError)) throw error;
    }
  }

  #mine(from: Position) {
    return { _id: this.#collection, position: from, fence: { $lte: this.#fence } };
  }
}
