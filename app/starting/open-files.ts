import { readFileSync } from 'node:fs';

/** Most files and connections of the process itself: about a hundred at rest, more while all views are rebuilt. */
const OWN_FILES = 192;

/** With fewer there is no room for clients, and with far fewer the service does not load. */
const MIN_FILES = 256;

/** How to raise the limit. */
export const raiseLimitAdvice =
  'raise the limit of open files (ulimit -n, LimitNOFILE=, --ulimit nofile=)';

/**
 * The limit of open files and connections of this process; Infinity if the system does not tell. Node has already raised
 * it as far as it can.
 * @param limits reads the process's limits as Linux lists them
 */
export function maxOpenFiles(limits: () => string = readLimits): number {
  const max = /^Max open files +(\d+)/m.exec(limits())?.[1];
  return max === undefined ? Infinity : Number(max);
}

/** Why the service cannot run within a limit, in one line; null if it can. */
export function tooFewOpenFiles(max: number): string | null {
  if (max >= MIN_FILES) return null;
  return `this process can open ${max} files and needs at least ${MIN_FILES}: ${raiseLimitAdvice}`;
}

/** Most connections of clients within a limit, so that the service can still open files. @param runs at a time, each with a connection */
export function maxClientConnections(max: number, runs: number): number {
  return Math.max(max - OWN_FILES - runs, minForClients(max));
}

/** Why a limit can be too low under load, in one line; null if it cannot. @param runs at a time */
export function openFilesWarning(max: number, runs: number): string | null {
  if (max - OWN_FILES - runs >= minForClients(max)) return null;
  return `this process can open ${max} files and may need more for ${runs} runs and its clients: ${raiseLimitAdvice}`;
}

const minForClients = (max: number): number => Math.floor(max / 8);

function readLimits(): string {
  try {
    return readFileSync('/proc/self/limits', 'utf8');
  } catch {
    return '';
  }
}
