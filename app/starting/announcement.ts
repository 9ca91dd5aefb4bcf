import { randomBytes } from 'node:crypto';
import { readFileSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { makeFolder } from '../../stores/folder.ts';

/** Where a service that runs on a data directory listens. */
export interface Announcement {
  /** `http://host:port` or `https://…`, as this machine reaches it. */
  readonly address: string;
  readonly pid: number;
  /** Process ids count on this machine only. */
  readonly host: string;
  /** As `/health/live` of the process shows it. */
  readonly instance: string;
  /** ISO 8601. */
  readonly started_at: string;
}

/** How the names of these files begin: each process that serves the interface has its own. */
export const ANNOUNCEMENT = 'service-';

/**
 * Says in the data directory where this process listens, so that `svc` finds it there. Removes what processes of this
 * machine that were killed have left.
 * @param address `http://host:port`, as the service was told to listen
 * @returns removes it again
 * @throws the file system's error where the directory can't be written
 */
export function announce(
  directory: string,
  { address, instance }: Pick<Announcement, 'address' | 'instance'>,
  startedAt: string,
): () => void {
  makeFolder(directory);
  for (const { file, announcement } of announcementsIn(directory)) {
    if (isGone(announcement)) rmSync(file, { force: true });
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
  // Whole or not at all: a command may read it at the same time.
  writeFileSync(draft, `${JSON.stringify(announcement)}\n`, { mode: 0o600 });
  renameSync(draft, file);
  return () => rmSync(file, { force: true });
}

/**
 * The services that a data directory knows, the newest first, without those whose process is gone from this machine.
 * Whether one answers, and is the one that wrote its file, is for the caller to ask.
 */
export function announced(directory: string): readonly Announcement[] {
  return announcementsIn(directory)
    .map(({ announcement }) => announcement)
    .filter((each): each is Announcement => each !== null && !isGone(each))
    .sort((one, other) => other.started_at.localeCompare(one.started_at));
}

/** `announcement` is null for a file that can't be read as one: it was removed meanwhile, or is somebody else's. */
function announcementsIn(
  directory: string,
): readonly { readonly file: string; readonly announcement: Announcement | null }[] {
  return namesIn(directory)
    .filter((name) => name.startsWith(ANNOUNCEMENT) && name.endsWith('.json'))
    .map((name) => join(directory, name))
    .map((file) => ({ file, announcement: read(file) }));
}

/** None where this user may not look, or where no folder is: whoever needs the folder itself says so better. */
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
    const told = JSON.parse(readFileSync(file, 'utf8')) as Partial<Record<string, unknown>>;
    const { address, pid, host, instance, started_at } = told;
    const texts = [address, host, instance, started_at];
    const isWhole = texts.every((text) => typeof text === 'string') && Number.isInteger(pid);
    return isWhole ? (told as unknown as Announcement) : null;
  } catch (error) {
    const isTold = error instanceof SyntaxError || 'code' in (error as object);
    if (isTold) return null;
    throw error;
  }
}

/** Of another machine nobody here can say. */
function isGone(announcement: Announcement | null): boolean {
  if (announcement === null || announcement.host !== hostname()) return false;
  try {
    process.kill(announcement.pid, 0);
    return false;
  } catch (error) {
    // Another user's process is there all the same.
    return (error as NodeJS.ErrnoException).code !== 'EPERM';
  }
}

/** Who listens on all addresses is reached by the loopback one. */
function reachable(address: string): string {
  return address
    .replace(/^(https?):\/\/0\.0\.0\.0:/, '$1://127.0.0.1:')
    .replace(/^(https?):\/\/\[::\]:/, '$1://[::1]:');
}
