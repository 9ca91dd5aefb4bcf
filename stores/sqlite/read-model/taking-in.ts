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

/** What a file says of how far it is. */
interface Reached {
  readonly position: Position;
  readonly landmark: string | null;
}

/**
 * Puts the documents of other shares of a generation to those of the first, in one transaction, which also says that it is
 * whole. Its checkpoint is then that of the share that came least far: what lies behind it is given to all of it again, and
 * a document takes no event twice.
 *
 * @param database of the first share, outside a transaction
 * @throws ReadModelError where a share is not there; the driver's errors
 */
export function takeInShares(
  database: Database,
  projection: Projection,
  shares: readonly ShareFile[],
): void {
  const attached = shares.map(({ share, file }) => ({ share, file, name: `share_${share.index}` }));
  try {
    for (const { name, file } of attached) {
      // To attach what is not there would make it.
      if (!existsSync(file)) throw missing(file);
      database.prepare(`ATTACH DATABASE ? AS ${name}`).run(file);
    }
    inTransaction(database, () => {
      const reached = [reachedIn(database, 'main')];
      for (const { name, share, file } of attached) {
        if (markIn(database, name) !== fillMark(share)) throw missing(file);
        reached.push(reachedIn(database, name));
        addDocuments(database, share, name);
        addTallies(database, projection, name);
      }
      const { position, landmark } = reached.reduce((a, b) => (a.position <= b.position ? a : b));
      database
        .prepare('UPDATE main.checkpoint SET position = ?, landmark = ?, filling = ?')
        .run(position, landmark, fillMark(null));
    });
  } finally {
    for (const { name } of attached) {
      if (isAttached(database, name)) database.exec(`DETACH DATABASE ${name}`);
    }
  }
}

/**
 * Ids of a share that follow on those of the one before: rows are then copied as they are, which takes a third of the time
 * that it takes to make them anew.
 */
const IDS_OF_A_SHARE = 2 ** 40;

/** Begins the ids of a share where no other has any: with a row that is not taken in. */
export function beginIds(database: Database, { index }: StreamShare): void {
  database
    .prepare("INSERT INTO documents (id, key, position, document) VALUES (?, '', '', '{}')")
    .run(index * IDS_OF_A_SHARE);
}

/** All columns in their order, without a condition: else SQLite does not copy whole rows. */
function addDocuments(database: Database, { index }: StreamShare, from: string): void {
  database.exec(`INSERT INTO main.documents SELECT * FROM ${from}.documents`);
  database.prepare('DELETE FROM main.documents WHERE id = ?').run(index * IDS_OF_A_SHARE);
}

function markIn(database: Database, name: string): unknown {
  const row = database.prepare(`SELECT filling FROM ${name}.checkpoint`).get();
  return (row as { readonly filling: unknown } | undefined)?.filling;
}

function reachedIn(database: Database, name: string): Reached {
  return database.prepare(`SELECT position, landmark FROM ${name}.checkpoint`).get() as Reached;
}

function isAttached(database: Database, name: string): boolean {
  const found = database.prepare('SELECT 1 FROM pragma_database_list WHERE name = ?').get(name);
  return found !== undefined;
}

function missing(file: string): ReadModelError {
  return new ReadModelError('UNAVAILABLE', `${file} is no share of the view that is to take it in`);
}
