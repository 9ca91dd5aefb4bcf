import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Db } from 'mongodb';
import type { Position } from '../../domain/event-store.ts';
import { CHECKPOINTS, type StoredCheckpoint } from './layout.ts';

/** A checkpoint that moves without documents. */
export interface CheckpointMove {
  /** Name of the generation's collection. */
  readonly collection: string;
  readonly from: Position;
  /** The writer's fence; the stored one must not be larger. */
  readonly fence: number;
  readonly change: { readonly position: Position } & Partial<StoredCheckpoint>;
}

interface WaitingMove extends CheckpointMove {
  readonly resolve: (isMoved: boolean) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * Moves the checkpoints of many views in one command. Most events concern few views, but all views pass them at the
 * same time, and separate commands would each wait for the journal and a majority. Moves requested during a command
 * share the next one.
 */
export class CheckpointMoves {
  #waiting: WaitingMove[] = [];
  #isMoving = false;

  /**
   * Moves one checkpoint. Use inside `run`.
   * @param db the same for all moves
   * @returns false if it had another position or belongs to a later writer
   * @throws the driver's errors, which concern all moves of the command
   */
  move(db: Db, move: CheckpointMove): Promise<boolean> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ ...move, resolve, reject });
      if (!this.#isMoving) void this.#moveWaiting(db);
    });
  }

  /** Never rejects, as each move has its own outcome. */
  async #moveWaiting(db: Db): Promise<void> {
    this.#isMoving = true;
    await nextTurn();
    while (this.#waiting.length > 0) {
      const moves = this.#waiting;
      this.#waiting = [];
      try {
        const moved = await moveAll(db, moves);
        for (const move of moves) move.resolve(moved.has(move));
      } catch (error) {
        for (const { reject } of moves) reject(error);
      }
    }
    this.#isMoving = false;
  }
}

/** @returns the moves that were made */
async function moveAll<M extends CheckpointMove>(
  db: Db,
  moves: readonly M[],
): Promise<ReadonlySet<M>> {
  const stored = db.collection<StoredCheckpoint>(CHECKPOINTS);
  const { matchedCount } = await stored.bulkWrite(
    moves.map(({ collection, from, fence, change }) => ({
      updateOne: {
        filter: { _id: collection, position: from, fence: { $lte: fence } },
        update: { $set: { ...change, fence }, $unset: { writing: '' as const } },
      },
    })),
    { ordered: false },
  );
  if (matchedCount === moves.length) return new Set(moves);
  // The server only returns the number. If another writer with the same fence has made a move, that is just as good.
  const found = await stored.find({ _id: { $in: moves.map((one) => one.collection) } }).toArray();
  const now = new Map(found.map((one) => [one._id, one]));
  return new Set(
    moves.filter(({ collection, fence, change }) => {
      const there = now.get(collection);
      return there?.position === change.position && there.fence === fence;
    }),
  );
}
