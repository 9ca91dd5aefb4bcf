import { chmodSync, existsSync, lstatSync, readdirSync, type Stats } from 'node:fs';
import { join } from 'node:path';
import type { Log } from '../../observability/telemetry.ts';
import { ANNOUNCEMENT } from './announcement.ts';
import { credentialsFile } from './credentials-file.ts';
import { KEY_FILE } from './keys.ts';
import { SECRET_KEY_PREFIX } from './secret-keyring.ts';

/** Permission bits of everyone but the owner. */
const OTHERS = 0o077;
const WRITABLE_BY_OTHERS = 0o022;

/** Most files named in one line of the log. */
const MAX_NAMED = 5;

/**
 * Makes files private to their owner by default, in all threads. Call it on the main thread before any file is created.
 * Windows has no such modes.
 */
export function createFilesPrivately(): void {
  process.umask(OTHERS);
}

/**
 * The service's files in a data directory that other users can open, from an older release or a copy. Other files and
 * links are ignored, because an operator may have mounted a key.
 */
export function filesOpenToOthers(directory: string): readonly string[] {
  if (process.platform === 'win32' || !existsSync(directory)) return [];
  return readdirSync(directory)
    .filter(isOfService)
    .filter((name) => isOpen(statOf(join(directory, name))));
}

/**
 * Closes the service's files in a data directory to other users, and logs which files were closed and which could not
 * be closed. SQLite creates files beside a database with its mode, so existing databases must be private first.
 */
export function closeFilesToOthers(directory: string, log: Log): void {
  const open = filesOpenToOthers(directory);
  const reasons = new Set<string>();
  for (const name of open) {
    try {
      const path = join(directory, name);
      chmodSync(path, statOf(path)?.isDirectory() === true ? 0o700 : 0o600);
    } catch (error) {
      reasons.add((error as NodeJS.ErrnoException).code ?? String(error));
    }
  }
  const left = filesOpenToOthers(directory);
  const closed = open.filter((name) => !left.includes(name));
  if (closed.length > 0) log.info('closed files to other users', { files: shorten(closed) });
  if (left.length > 0) {
    const reason = [...reasons].join(', ') || 'the file system has no permissions';
    const remedy = 'chown them to the user of the service, or use a file system with permissions';
    log.warn('other users can open files of the service', {
      files: shorten(left),
      reason,
      remedy,
    });
  }
  const mode = statOf(directory)?.mode ?? 0;
  if (process.platform !== 'win32' && (mode & WRITABLE_BY_OTHERS) !== 0) {
    const remedy = `chmod 700 ${directory}`;
    log.warn('other users can replace files in the data directory', { directory, remedy });
  }
}

const isOfService = (name: string): boolean =>
  /\.(sqlite|db)(-wal|-shm|-journal)?$/.test(name) ||
  [KEY_FILE, SECRET_KEY_PREFIX, credentialsFile('').replace(/\.json$/, ''), ANNOUNCEMENT].some(
    (prefix) => name.startsWith(prefix),
  ) ||
  ['peers', 'artifacts'].includes(name);

const isOpen = (stat: Stats | undefined): boolean =>
  stat !== undefined && !stat.isSymbolicLink() && (stat.mode & OTHERS) !== 0;

/** Undefined for a file that is gone; SQLite removes some. */
const statOf = (path: string): Stats | undefined => lstatSync(path, { throwIfNoEntry: false });

/** Names for a message; of many the first few and a count. */
function shorten(names: readonly string[]): string {
  const first = names.slice(0, MAX_NAMED).join(', ');
  return names.length > MAX_NAMED ? `${first} and ${names.length - MAX_NAMED} more` : first;
}
