import { chmodSync, existsSync, lstatSync, readdirSync, type Stats } from 'node:fs';
import { join } from 'node:path';
import type { Log } from '../../observability/telemetry.ts';
import { ANNOUNCEMENT } from './announcement.ts';
import { credentialsFile } from './credentials-file.ts';
import { KEY_FILE } from './keys.ts';

/** Permission bits of everybody but the owner. */
const OTHERS = 0o077;

/** What others could put in place of the service's files. */
const WRITABLE_BY_OTHERS = 0o022;

/** Files named in one line of the log. */
const NAMED = 5;

/**
 * Lets this process, all its threads and whatever they load create files for their owner alone, whatever the mode of
 * the folder. To be called on the main thread before any file is created. Windows has no such modes.
 */
export function createFilesPrivately(): void {
  process.umask(OTHERS);
}

/**
 * Names the files of the service in a data directory that others may open: of an older release, or copied there. What
 * else lies in the folder is not looked at, and neither are links: an operator may have mounted a key.
 */
export function filesOpenToOthers(directory: string): readonly string[] {
  if (process.platform === 'win32' || !existsSync(directory)) return [];
  return readdirSync(directory)
    .filter(isOfService)
    .filter((name) => isOpen(statOf(join(directory, name))));
}

/**
 * Closes the files of the service in a data directory to others. SQLite gives what it creates beside a database the
 * database's mode, so files of before must be closed for later ones to be private. Says in the log what it closed,
 * what it could not close, and why.
 */
export function closeFilesToOthers(directory: string, log: Log): void {
  const open = filesOpenToOthers(directory);
  const reasons = new Set<string>();
  for (const name of open) {
    try {
      const path = join(directory, name);
      // A folder must stay one that its owner can enter.
      chmodSync(path, statOf(path)?.isDirectory() === true ? 0o700 : 0o600);
    } catch (error) {
      reasons.add((error as NodeJS.ErrnoException).code ?? String(error));
    }
  }
  const left = filesOpenToOthers(directory);
  const closed = open.filter((name) => !left.includes(name));
  if (closed.length > 0) log.info('closed files to other users', { files: some(closed) });
  if (left.length > 0) {
    const reason = [...reasons].join(', ') || 'the file system keeps no permissions';
    const remedy = 'chown them to the user of the service, or use a file system with permissions';
    log.warn('other users may open files of the service', { files: some(left), reason, remedy });
  }
  const mode = statOf(directory)?.mode ?? 0;
  if (process.platform !== 'win32' && (mode & WRITABLE_BY_OTHERS) !== 0) {
    const remedy = `chmod 700 ${directory}`;
    log.warn('other users may replace files in the data directory', { directory, remedy });
  }
}

const isOfService = (name: string): boolean =>
  /\.(sqlite|db)(-wal|-shm|-journal)?$/.test(name) ||
  [KEY_FILE, credentialsFile('').replace(/\.json$/, ''), ANNOUNCEMENT].some((own) =>
    name.startsWith(own),
  ) ||
  name === 'peers';

const isOpen = (stat: Stats | undefined): boolean =>
  stat !== undefined && !stat.isSymbolicLink() && (stat.mode & OTHERS) !== 0;

/** undefined for a file that is gone: SQLite removes some. */
const statOf = (path: string): Stats | undefined => lstatSync(path, { throwIfNoEntry: false });

function some(names: readonly string[]): string {
  const first = names.slice(0, NAMED).join(', ');
  return names.length > NAMED ? `${first} and ${names.length - NAMED} more` : first;
}
