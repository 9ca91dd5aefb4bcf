import { backup } from '@photostructure/sqlite';
import { EventStoreError, type Position } from '../../../domain/event-store.ts';
import { describeFault, faultOf, type Database } from '../database.ts';
import { formatPosition } from './position.ts';
import { LOG, logFile, openLogForReading } from './schema.ts';

/** Pages copied at a time, between two checks of the abort signal. */
const PAGES_PER_STEP = 256;

const LAST_TYPE = `
  SELECT types.name FROM events
  JOIN streams ON streams.id = events.stream JOIN types ON types.id = events.type
  WHERE streams.name = ? ORDER BY events.revision DESC LIMIT 1`;

/** The extent of a copied log. */
export interface CopiedLog {
  readonly events: number;
  /** Positions of the first and the last event; empty if there is none. */
  readonly first: Position;
  readonly last: Position;
}

/**
 * Copies a consistent state of the embedded log while others write it. The copy is durable and complete in its file
 * when this resolves.
 * @param file path of the copy; must not exist
 * @param onShare receives the share that is done, 0 to 1
 * @throws EventStoreError `UNAVAILABLE`, naming the file that could not be read or written; the signal's reason
 */
export async function copyLog(
  directory: string,
  file: string,
  onShare: (share: number) => void,
  signal: AbortSignal,
): Promise<CopiedLog> {
  const source = logFile(directory);
  const database = openLogForReading(source);
  try {
    // A transaction pins the state: otherwise each commit of another process would restart the copy.
    database.exec('BEGIN');
    const copied = extentOf(database);
    onShare(0);
    await backup(database, file, {
      rate: PAGES_PER_STEP,
      progress: ({ totalPages, remainingPages }) => {
        signal.throwIfAborted();
        onShare(totalPages === 0 ? 1 : 1 - remainingPages / totalPages);
      },
    });
    onShare(1);
    return copied;
  } catch (error) {
    if (signal.aborted || error instanceof EventStoreError) throw error;
    const detail = describeFault(
      faultOf(error) === undefined ? 'copy' : `copy of the ${LOG}`,
      file,
      error,
    );
    throw new EventStoreError('UNAVAILABLE', detail, { cause: error });
  } finally {
    database.close();
  }
}

/**
 * Checks a whole log file for damage.
 * @throws EventStoreError `CORRUPT_EVENT` where it is damaged or not a log, `NEWER_SCHEMA`, `UNAVAILABLE`
 */
export function checkLog(directory: string): CopiedLog {
  const file = logFile(directory);
  try {
    const database = openLogForReading(file);
    try {
      const found = database.prepare('PRAGMA integrity_check(1)').get();
      const [verdict] = Object.values(found ?? {});
      if (verdict !== 'ok') {
        throw new EventStoreError('CORRUPT_EVENT', `${file}: ${String(verdict)}`);
      }
      return extentOf(database);
    } finally {
      database.close();
    }
  } catch (error) {
    if (error instanceof EventStoreError) throw error;
    throw new EventStoreError('CORRUPT_EVENT', describeFault(LOG, file, error), { cause: error });
  }
}

/** The type of a stream's last event; null if it has none. @throws EventStoreError `NEWER_SCHEMA`, `UNAVAILABLE` */
export function lastEventTypeOf(directory: string, stream: string): string | null {
  const database = openLogForReading(logFile(directory));
  try {
    const last = database.prepare(LAST_TYPE).get(stream)?.['name'];
    return last === undefined ? null : String(last);
  } finally {
    database.close();
  }
}

function extentOf(database: Database): CopiedLog {
  const row = database
    .prepare('SELECT count(*) AS events, min(position) AS first, max(position) AS last FROM events')
    .get();
  const events = Number(row?.['events']);
  const at = (name: 'first' | 'last'): Position => formatPosition(Number(row?.[name] ?? 0));
  return { events, first: at('first'), last: at('last') };
}
