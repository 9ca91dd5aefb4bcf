import { randomBytes } from 'node:crypto';
import { readFileSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { makeFolder } from '../../stores/folder.ts';

/** A running service over a data directory. */
export interface Announcement {
  /** `http://host:port` or `https://…`, as this machine reaches it. */
  readonly address: string;
  readonly pid: number;
  /** The machine of the process id. */
  readonly host: string;
  /** The value of `instance` in `/health/live`. */
  readonly instance: string;
  /** ISO 8601. */
  readonly started_at: string;
}

/** The prefix of the files; each process with the role api has its own. */
export const ANNOUNCEMENT = 'service-';

/**
 * Announces this process's address in the data directory, for `svc`. Removes the files of this machine's dead processes.
 * Returns a function that removes the announcement.
 *
 * @param address `http://host:port`, as configured
 * @throws the file system's error if the directory cannot be written
 */
export function announce(
  directory: string,
  { address, instance }: Pick<Announcement, 'address' | 'instance'>,
  startedAt: string,
): () => void {
  makeFolder(directory);
  for (const { file, announcement } of announcementsIn(directory)) {
    if (isDead(announcement)) rmSync(file, { force: true });
  }
  const announcement: Announcement = {
    address: reachable(address),
    pid: process.pid,
    host: hostname(),
    instance,
    started_at: startedAt,
  };
  const file = join(directory, `${ANNOUNCEMENT}${instance}.json`);
  const draft = `${file}.${randomBytes(4).toString('hex')}`;
  writeFileSync(draft, `${JSON.stringify(announcement)}\n`, { mode: 0o600 });
  renameSync(draft, file);
  return () => rmSync(file, { force: true });
}

/**
 * The announced services of a data directory, newest first, without this machine's dead processes. The caller checks
 * whether one answers and is the announced instance.
 */
export function announced(directory: string): readonly Announcement[] {
  return announcementsIn(directory)
    .map(({ announcement }) => announcement)
    .filter((each): each is Announcement => each !== null && !isDead(each))
    .sort((one, other) => other.started_at.localeCompare(one.started_at));
}

/** `announcement` is null for a file that is gone or not an announcement. */
function announcementsIn(
  directory: string,
): readonly { readonly file: string; readonly announcement: Announcement | null }[] {
  return namesIn(directory)
    .filter((name) => name.startsWith(ANNOUNCEMENT) && name.endsWith('.json'))
    .map((name) => join(directory, name))
    .map((file) => ({ file, announcement: read(file) }));
}

/** Empty for a folder that is missing or unreadable; code that needs the folder reports that better. */
function namesIn(directory: string): readonly string[] {
  try {
    return readdirSync(directory);
  } catch (error) {
    const { code = '' } = error as NodeJS.ErrnoException;
    if (['ENOENT', 'ENOTDIR', 'EACCES', 'EPERM'].includes(code)) return [];
    throw error;
  }
}

function read(file: string): Announcement | null {
  try {
    const value = JSON.parse(readFileSync(file, 'utf8')) as Partial<Record<string, unknown>>;
    const { address, pid, host, instance, started_at } = value;
    const strings = [address, host, instance, started_at];
    const isValid = strings.every((each) => typeof each === 'string') && Number.isInteger(pid);
    return isValid ? (value as unknown as Announcement) : null;
  } catch (error) {
    if (error instanceof SyntaxError || 'code' in (error as object)) return null;
    throw error;
  }
}

/** False for processes of other machines. */
function isDead(announcement: Announcement | null): boolean {
  if (announcement === null || announcement.host !== hostname()) return false;
  try {
    process.kill(announcement.pid, 0);
    return false;
  } catch (error) {
    // EPERM: another user's process.
    return (error as NodeJS.ErrnoException).code !== 'EPERM';
  }
}

/** A service on all addresses is reached by the loopback address. */
function reachable(address: string): string {
  return address
    .replace(/^(https?):\/\/0\.0\.0\.0:/, '$1://127.0.0.1:')
    .replace(/^(https?):\/\/\[::\]:/, '$1://[::1]:');
}
