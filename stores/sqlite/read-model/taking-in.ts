import { existsSync } from 'node:fs';
import type { Position } from '../../../domain/event-store.ts';
import type { StreamShare } from '../../../domain/stream-share.ts';
import { ReadModelError, type Projection } from '../../../projections/read-model.ts';
import { inTransaction, type Database } from '../database.ts';
import { fillMark } from './fill-mark.ts';
import { addTallies } from './tallies.ts';
import type { Column } from './view-table.ts';

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
  columns: readonly Column[],
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
      // In the order of the shares, each key would change another page of it. It is made again with the others.
      database.exec('DROP INDEX IF EXISTS main.documents_key');
      let { landmark } = main;
      for (const { share, file } of shares) {
        const part = reachedIn(database, nameOf(share));
        if (part.filling !== fillMark(share)) throw unfit(file, 'is no such share');
        if (part.position !== main.position) throw unfit(file, 'is not where the others are');
        landmark ??= part.landmark;
        addDocuments(database, columns, nameOf(share));
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

function addDocuments(database: Database, columns: readonly Column[], from: string): void {
  const names = ['key', 'position', ...columns.map(({ name }) => name), 'document'].join(', ');
  database.exec(
    `INSERT INTO main.documents (${names}) SELECT ${names} FROM ${from}.documents ORDER BY id`,
  );
}

/** What a file says of itself. */
interface Reached {
  readonly position: Position;
  readonly landmark: string | null;
  readonly filling: string | null;
}

function reachedIn(database: Database, name: string): Partial<Reached> {
  return database.prepare(`SELECT position, landmark, filling FROM ${name}.checkpoint`).get() ?? {};
}

/** By which it is attached. */
const nameOf = ({ index }: StreamShare): string => `share_${String(index)}`;

function unfit(what: string, why: string): ReadModelError {
  return new ReadModelError('UNAVAILABLE', `the shares can't be taken together: ${what} ${why}`);
}
