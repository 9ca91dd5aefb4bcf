import type { StreamShare } from '../../../domain/stream-share.ts';
import type { Telemetry } from '../../../observability/telemetry.ts';
import {
  ReadModelError,
  type Projection,
  type WriterOptions,
} from '../../../projections/read-model.ts';
import {
  describeFault,
  faultOf,
  inTransaction,
  keepPages,
  openDatabase,
  type Database,
} from '../database.ts';
import { deleteDatabase, fileNumber } from '../database-file.ts';
import { canGoOn, fillMark } from './fill-mark.ts';
import { createTallies } from './tallies.ts';
import type { ViewFiles } from './view-files.ts';
import {
  addLandmark,
  columnsOf,
  createIndexes,
  createTables,
  hasKeyIndex,
  KEPT_PAGES,
  LAYOUT_VERSION,
  type Column,
} from './view-table.ts';
import { FEWEST_PAGES } from './view-wal.ts';
import { finishFilling } from './view-writer.ts';

const PAGE_BYTES = 8_192;

/** A generation's file, open for writing. */
export interface OpenGeneration {
  readonly database: Database;
  readonly columns: readonly Column[];
  readonly file: string;
  readonly fileNumber: number | undefined;
  /** Whether it is being filled in bulk. */
  readonly bulk: boolean;
  /** Of it, where the others are not in it yet; else null. */
  readonly share: StreamShare | null;
  /** Whether the file was there before. */
  readonly goesOn: boolean;
}

/**
 * Opens a generation for writing, and makes it when it is not there. One that is damaged, or whose bulk
 * fill was cut short together with the machine, is thrown away and begun anew; one that was finished, or
 * that is not to be filled in bulk, has its indexes and is written durably.
 */
export function openGeneration(
  files: ViewFiles,
  telemetry: Telemetry,
  projection: Projection,
  options: WriterOptions,
): OpenGeneration {
  const { generation, bulk } = options;
  const share = options.share ?? null;
  const file = files.pathOf(projection, generation, share?.index);
  const columns = columnsOf(projection);
  const isBeside = share !== null && share.index > 0;
  return files.exclusively(() => {
    const whole = files.pathOf(projection, generation);
    if (isBeside && (files.live(projection) === generation || fileNumber(whole) === undefined)) {
      // Who fills it was overtaken: what is read has all shares, and what was thrown away needs none.
      throw new ReadModelError('FENCED', `there is no share for generation ${String(generation)}`);
    }
    const beginAnew = (why: string): Database => {
      telemetry.log.warn(`the view ${file} is begun anew: ${why}`, {
        projection: projection.name,
        generation,
      });
      // A share by itself; with the generation go those beside it.
      if (isBeside) deleteDatabase(file);
      else {
        files.delete(projection, generation);
        files.unsetLive(projection, generation);
      }
      return open(file, projection, columns, bulk, share);
    };
    // Share 0 may have the others already.
    const marks = isBeside ? [fillMark(share)] : [fillMark(null), fillMark(share)];
    const existed = fileNumber(file) !== undefined;
    if (!existed && !isBeside) {
      files.unsetLive(projection, generation);
      // Of a generation that had this number before.
      files.deleteShares(projection, generation);
    }
    const prepared = (opened: Database): OpenGeneration => {
      let database = opened;
      try {
        let filling = fillingOf(database);
        if (existed && filling !== null && !(canGoOn() && marks.includes(filling))) {
          database.close();
          database = beginAnew('its bulk fill was cut short');
          filling = fillingOf(database);
        }
        requireFields(database, projection, columns, file);
        addLandmark(database);
        if (filling !== null && !bulk) {
          inTransaction(database, () => createTallies(database, projection, columns));
          finishFilling(database, projection, columns);
        }
        const fills = filling !== null && bulk;
        const isPart = fills && filling !== fillMark(null);
        // They were taken in, and then the process ended.
        if (fills && existed && !isPart) files.deleteShares(projection, generation);
        database.exec(`PRAGMA synchronous = ${fills ? 'OFF' : 'NORMAL'}`);
        const touchesKeys = fills && hasKeyIndex(database);
        keepPages(database, touchesKeys ? KEPT_PAGES.fillingByKeys : KEPT_PAGES.usual);
        return {
          database,
          columns,
          file,
          fileNumber: fileNumber(file),
          bulk: fills,
          share: isPart ? share : null,
          goesOn: existed,
        };
      } catch (error) {
        if (database.isOpen) database.close();
        throw error;
      }
    };
    try {
      return prepared(open(file, projection, columns, bulk, share));
    } catch (error) {
      // Whichever page of it was met first: what is damaged stays so.
      if (faultOf(error) !== 'corrupt') throw error;
      return prepared(beginAnew(describeFault('view', file, error)));
    }
  });
}

function open(
  file: string,
  projection: Projection,
  columns: readonly Column[],
  bulk: boolean,
  share: StreamShare | null,
): Database {
  return openDatabase({
    file,
    what: 'view',
    version: LAYOUT_VERSION,
    migrate: (database) => {
      createTables(database, columns, bulk ? fillMark(share) : null);
      createTallies(database, projection, columns);
      if (!bulk) createIndexes(database, projection, columns);
    },
    journal: bulk ? 'rollback' : 'wal',
    synchronous: bulk ? 'OFF' : 'NORMAL',
    busyTimeout: 2_000,
    cacheMiB: KEPT_PAGES.usual,
    walMiB: (FEWEST_PAGES * PAGE_BYTES) / 2 ** 20,
    // Each page is a call of the system, and rows that come together are changed together. Larger ones bring little more,
    // and what changes at random places writes that much more.
    pageSize: PAGE_BYTES,
  });
}

/** Changed fields need a new schema number: the documents of the old one are kept without them. */
function requireFields(
  database: Database,
  projection: Projection,
  columns: readonly Column[],
  file: string,
): void {
  const rows = database.prepare("SELECT name FROM pragma_table_info('documents')").all() as {
    name: string;
  }[];
  const found = new Set(rows.map(({ name }) => name));
  const missing = columns.find(({ name }) => !found.has(name));
  if (missing === undefined) return;
  throw new TypeError(
    `${projection.name} has a field "${missing.field}" that ${file} lacks: give it a new schema number`,
  );
}

function fillingOf(database: Database): string | null {
  const row: unknown = database.prepare('SELECT filling FROM checkpoint').get();
  return typeof row === 'object' && row !== null && 'filling' in row && row.filling !== null
    ? (row.filling as string)
    : null;
}
