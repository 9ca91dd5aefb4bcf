import {
  type Binary,
  type ClientSession,
  type Collection,
  type Db,
  MongoServerError,
} from 'mongodb';
import { BEGINNING, type Position } from '../../domain/event-store.ts';
import { ReadModelError, type ViewWriter } from '../../projections/read-model.ts';
import type { CheckpointMoves } from './checkpoint-moves.ts';
import { isDuplicateKey, isTimeLimitError } from './driver-errors.ts';
import { CHECKPOINTS, type StoredCheckpoint } from './layout.ts';

type Batch = Parameters<ViewWriter['write']>[0];

/** Milliseconds to wait for a previous writer's transaction before ending it. */
const PREVIOUS_WRITER_TIMEOUT_MS = 2000;

/** A generation's place in the log, moved only by a writer that knows it and holds the fence. */
export class Checkpoint {
  readonly #db: Db;
  readonly #stored: Collection<StoredCheckpoint>;
  readonly #collection: string;
  readonly #fence: number;

  /** @param collection name of the generation's collection */
  constructor(db: Db, collection: string, fence: number) {
    this.#db = db;
    this.#stored = db.collection<StoredCheckpoint>(CHECKPOINTS);
    this.#collection = collection;
    this.#fence = fence;
  }

  /**
   * Registers the generation, and makes this writer's fence the smallest accepted from now on. A writer that died in a
   * transaction blocks the checkpoint for about a minute, longer than its connection lives; that transaction is ended.
   * @param session of this writer's transactions
   * @throws ReadModelError `FENCED` when there was a larger fence
   */
  async claim(view: string, generation: number, session?: Binary): Promise<void> {
    const known = { view, generation };
    try {
      await this.#claim(known, session, PREVIOUS_WRITER_TIMEOUT_MS);
    } catch (error) {
      if (!isTimeLimitError(error)) throw error;
      await this.#endPreviousTransaction();
      await this.#claim(known, session);
    }
  }

  async position(): Promise<Position> {
    return (await this.#stored.findOne({ _id: this.#collection }))?.position ?? BEGINNING;
  }

  /** @throws ReadModelError `FENCED` if it has another position or belongs to another writer */
  async expect(from: Position): Promise<void> {
    const stored = await this.#stored.findOne(this.#expected(from));
    if (stored === null) throw await this.fencedError(from);
  }

  /**
   * Like {@link expect}, and marks that documents beyond the position are being written, so a list read now belongs to
   * no single instant. The mark is written without waiting: a crash that loses it also loses those documents.
   * @throws ReadModelError `FENCED`
   */
  async announce({ from, to }: Pick<Batch, 'from' | 'to'>): Promise<void> {
    const stored = await this.#stored.findOneAndUpdate(
      this.#expected(from),
      { $set: { writing: to } },
      { writeConcern: { w: 1, journal: false } },
    );
    if (stored === null) throw await this.fencedError(from);
  }

  /** Moves it, with the landmark if given. @throws ReadModelError `FENCED` */
  async move(
    { from, to, landmark }: Pick<Batch, 'from' | 'to' | 'landmark'>,
    session?: ClientSession,
  ): Promise<void> {
    const moved = await this.#stored.updateOne(
      this.#expected(from),
      {
        $set: { position: to, fence: this.#fence, ...(landmark && { landmark }) },
        $unset: { writing: '' },
      },
      session === undefined ? {} : { session },
    );
    if (moved.matchedCount === 0) throw await this.fencedError(from);
  }

  /**
   * Like {@link move} without a session, but together with the moves of other views.
   * @throws ReadModelError `FENCED`
   */
  async moveWith(moves: CheckpointMoves, batch: Omit<Batch, 'documents'>): Promise<void> {
    const { from, to, landmark } = batch;
    const change = { position: to, ...(landmark && { landmark }) };
    const move = { collection: this.#collection, from, fence: this.#fence, change };
    if (!(await moves.move(this.#db, move))) throw await this.fencedError(from);
  }

  /** Waits until everything written so far survives a crash and a failover; the journal is written in order. */
  async settle(): Promise<void> {
    await this.#stored.updateOne(
      { _id: this.#collection },
      { $set: { settled: true } },
      { writeConcern: { w: 'majority', journal: true } },
    );
  }

  /** The error for a refused write. */
  async fencedError(from?: Position): Promise<ReadModelError> {
    const stored = await this.#stored.findOne({ _id: this.#collection });
    const reason =
      stored === null
        ? 'the generation was discarded'
        : stored.fence > this.#fence
          ? `a writer with fence ${stored.fence} came after this one's ${this.#fence}`
          : `the checkpoint is "${stored.position}", not "${from ?? ''}"`;
    return new ReadModelError('FENCED', `cannot write ${this.#collection}: ${reason}`);
  }

  async #claim(
    known: Pick<StoredCheckpoint, 'view' | 'generation'>,
    session: Binary | undefined,
    maxTimeMS?: number,
  ): Promise<void> {
    // Two writers that claim a new generation at once both insert; the loser retries once.
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
        if (last) throw await this.fencedError();
      }
    }
  }

  /** Ends the previous writer's transaction. Every user may end their own sessions. */
  async #endPreviousTransaction(): Promise<void> {
    const stored = await this.#stored.findOne({
      _id: this.#collection,
      fence: { $lte: this.#fence },
    });
    if (stored?.session === undefined) return;
    try {
      await this.#db.command({ killSessions: [{ id: stored.session }] });
    } catch (error) {
      // Without permission, the server ends it after its own timeout.
      if (!(error instanceof MongoServerError)) throw error;
    }
  }

  #expected(from: Position) {
    return { _id: this.#collection, position: from, fence: { $lte: this.#fence } };
  }
}
