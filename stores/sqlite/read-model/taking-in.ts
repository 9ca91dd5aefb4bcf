import { existsSync } from 'node:fs';
import type { Position } from '../../../domain/event-store.ts';
import type { StreamShare } from '../../../domain/stream-share.ts';
import { ReadModelError, type Projection } from '../../../projections/read-model.ts';
import { inTransaction, type Database } from '../database.ts';
import { fillMark } from './fill-mark.ts';
import { addTallies } from './tallies.ts';

/** The file of another share, beside the one that takes it in. */
export interface ShareFile {
  readonly share: StreamShare;
  readonly file: string;
}

/**
 * Puts the documents of other shares of a generation to those of the first, in one transaction, which also says that it is
 * whole. All of them have come to the same position.
 *
 * @param database of the first share, outside a transaction
 * @param fence of the writer
 * @throws ReadModelError where a share is not there, or elsewhere; the driver's errors
 */
export function takeInShares(
  database: Database,
  projection: Projection,
  shares: readonly ShareFile[],
  fence: number,
): void {
  const first = { index: 0, of: shares.length + 1 };
  const attached: string[] = [];
  try {
    for (const { share, file } of shares) {
      // To attach what is not there would make it.
      if (!existsSync(file)) throw unfit(file, 'is not there');
      const name = nameOf(share);
      database.prepare(`ATTACH DATABASE ? AS ${name}`).run(file);
      attached.push(name);
      // It is only read, and goes when it has been.
      database.exec(`PRAGMA ${name}.synchronous = OFF`);
    }
    inTransaction(database, () => {
      const main = reachedIn(database, 'main');
      if (main.filling !== fillMark(first)) throw unfit('the view', 'has its shares');
      // SQLite copies rows as they are only where no index is to be kept up. It is made again with the others.
      database.exec('DROP INDEX IF EXISTS main.documents_key');
      let { landmark } = main;
      for (const { share, file } of shares) {
        const part = reachedIn(database, nameOf(share));
        if (part.filling !== fillMark(share)) throw unfit(file, 'is no such share');
        if (part.position !== main.position) throw unfit(file, 'is not where the others are');
        if (part.columns !== main.columns) throw unfit(file, 'has other columns');
        landmark ??= part.landmark;
        addDocuments(database, share);
        addTallies(database, projection, nameOf(share));
      }
      database
        .prepare('UPDATE main.checkpoint SET landmark = ?, filling = ?, fence = ?')
        .run(landmark, fillMark(null), fence);
    });
  } finally {
    for (const name of attached) database.exec(`DETACH DATABASE ${name}`);
  }
}

/**
 * Ids of a share that follow on those of the one before: rows are then copied as they are, which takes a third of the time
 * that it takes to make them anew.
 */
const IDS_OF_A_SHARE = 2 ** 40;

/** Begins the ids of a share where no other has any: with a row of no document. */
export function beginIds(database: Database, { index }: StreamShare): void {
  database
    .prepare("INSERT INTO documents (id, key, position, document) VALUES (?, '', '', '{}')")
    .run(index * IDS_OF_A_SHARE);
}

/** All columns in their order, without a condition: else SQLite does not copy whole rows. */
function addDocuments(database: Database, share: StreamShare): void {
  database.exec(`INSERT INTO main.documents SELECT * FROM ${nameOf(share)}.documents`);
  database.prepare('DELETE FROM main.documents WHERE id = ?').run(share.index * IDS_OF_A_SHARE);
}

/** What a file says of itself. */
interface Reached {
  readonly position: Position;
  readonly landmark: string | null;
  readonly filling: string | null;
  readonly columns: string;
}

function reachedIn(database: Database, name: string): Partial<Reached> {
  const row = database
    .prepare(
      `SELECT position, landmark, filling,
         (SELECT group_concat(name) FROM pragma_table_info('documents', ?)) AS columns
       FROM ${name}.checkpoint`,
    )
    .get(name);
  return row ?? {};
}

/** By which it is attached. */
const nameOf = ({ index }: StreamShare): string => `share_${String(index)}`;

function unfit(what: string, why: string): ReadModelError {
  return new ReadModelError('UNAVAILABLE', `the shares can't be taken together: ${what} ${why}`);
}
