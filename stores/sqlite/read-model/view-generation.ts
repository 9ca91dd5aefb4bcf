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
  setPageCache,
  openDatabase,
  type Database,
} from '../database.ts';
import { deleteDatabase, fileNumber } from '../database-file.ts';
import { canResume, fillMark } from './filling/fill-mark.ts';
import { finishFilling } from './filling/finish-filling.ts';
import { createTallies } from './tallies.ts';
import type { ViewFiles } from './view-files.ts';
import {
  addLandmark,
  columnsOf,
  createIndexes,
  createTables,
  hasKeyIndex,
  PAGE_CACHE_MIB,
  LAYOUT_VERSION,
  type Column,
} from './view-table.ts';
import { MIN_WAL_PAGES } from './view-wal.ts';

const PAGE_BYTES = 8_192;

/** A generation's file, open for writing. */
export interface OpenGeneration {
  readonly database: Database;
  readonly columns: readonly Column[];
  readonly file: string;
  readonly fileNumber: number | undefined;
  /** Whether it is filled in bulk. */
  readonly bulk: boolean;
  /** The share that it holds, where it is not whole; else null. */
  readonly share: StreamShare | null;
  /** Whether the file existed before. */
  readonly existed: boolean;
}

/**
 * Opens a generation for writing, and creates it if missing. A damaged one, or one whose bulk fill was interrupted by a
 * reboot, is deleted and started over. A finished one, or one not filled in bulk, has its indexes and is durable.
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
  const isFurtherShare = share !== null && share.index > 0;
  return files.exclusively(() => {
    const whole = files.pathOf(projection, generation);
    if (
      isFurtherShare &&
      (files.live(projection) === generation || fileNumber(whole) === undefined)
    ) {
      // This filler was overtaken: the generation is live already, or was discarded.
      throw new ReadModelError('FENCED', `there is no share for generation ${String(generation)}`);
    }
    const startOver = (why: string): Database => {
      telemetry.log.warn(`starting the view ${file} over: ${why}`, {
        projection: projection.name,
        generation,
      });
      // A share is deleted by itself, the generation with all its shares.
      if (isFurtherShare) deleteDatabase(file);
      else {
        files.delete(projection, generation);
        files.unsetLive(projection, generation);
      }
      return open(file, projection, columns, bulk, share);
    };
    // Share 0 may have merged the others already.
    const marks = isFurtherShare ? [fillMark(share)] : [fillMark(null), fillMark(share)];
    const existed = fileNumber(file) !== undefined;
    if (!existed && !isFurtherShare) {
      files.unsetLive(projection, generation);
      // Leftovers of an earlier generation with this number.
      files.deleteShares(projection, generation);
    }
    const prepare = (opened: Database): OpenGeneration => {
      let database = opened;
      try {
        let filling = fillingOf(database);
        if (existed && filling !== null && !(canResume() && marks.includes(filling))) {
          database.close();
          database = startOver('its bulk fill was interrupted');
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
        // The process ended after merging the shares.
        if (fills && existed && !isPart) files.deleteShares(projection, generation);
        database.exec(`PRAGMA synchronous = ${fills ? 'OFF' : 'NORMAL'}`);
        const touchesKeys = fills && hasKeyIndex(database);
        setPageCache(database, touchesKeys ? PAGE_CACHE_MIB.fillingByKeys : PAGE_CACHE_MIB.usual);
        return {
          database,
          columns,
          file,
          fileNumber: fileNumber(file),
          bulk: fills,
          share: isPart ? share : null,
          existed: existed,
        };
      } catch (error) {
        if (database.isOpen) database.close();
        throw error;
      }
    };
    try {
      return prepare(open(file, projection, columns, bulk, share));
    } catch (error) {
      // Damage on any page does not go away by itself.
      if (faultOf(error) !== 'corrupt') throw error;
      return prepare(startOver(describeFault('view', file, error)));
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
    cacheMiB: PAGE_CACHE_MIB.usual,
    walMiB: (MIN_WAL_PAGES * PAGE_BYTES) / 2 ** 20,
    // Each page is a system call, and rows that are written together are stored together. Larger pages would amplify
    // random writes.
    pageSize: PAGE_BYTES,
  });
}

/** Changed fields need a new schema number, as existing documents lack them. */
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
  const filling = database.prepare('SELECT filling FROM checkpoint').get()?.['filling'];
  return typeof filling === 'string' ? filling : null;
}
