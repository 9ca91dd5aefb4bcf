import { readFileSync } from 'node:fs';

/**
 * Files and connections that a process takes for itself at most, before any client has one: some hundred when it is at
 * rest, and more while all views are made anew.
 */
const OWN = 192;

/** With less there is no room for clients, and with far less not even for loading the service. */
const LEAST = 256;

/** How the limit is raised, where services are started. */
export const raising = 'raise the limit of open files (ulimit -n, LimitNOFILE=, --ulimit nofile=)';

/**
 * How many files and connections this process may have open at a time; Infinity where the system does not say so in
 * this way. Node has raised the limit already as far as it may.
 *
 * @param limits what Linux says of a process's limits
 */
export function mostOpenFiles(limits: () => string = limitsOfThisProcess): number {
  const most = /^Max open files +(\d+)/m.exec(limits())?.[1];
  return most === undefined ? Infinity : Number(most);
}

/** Why a service can't run within a limit, in one line; null where it can. */
export function lackOfFiles(most: number): string | null {
  if (most >= LEAST) return null;
  return `this process may have ${most} files open at a time, and takes ${LEAST} at least: ${raising}`;
}

/**
 * How many connections clients may have within a limit: with more, the service itself could open none of its files,
 * nor a step its connection.
 *
 * @param runs at a time, each with a connection of its own
 */
export function roomForClients(most: number, runs: number): number {
  return Math.max(most - OWN - runs, leastForClients(most));
}

/** What may become short within a limit though a service runs, in one line; null for nothing. @param runs at a time */
export function scarcityOfFiles(most: number, runs: number): string | null {
  if (most - OWN - runs >= leastForClients(most)) return null;
  return `this process may have ${most} files open at a time, and may need more for ${runs} runs and its clients: ${raising}`;
}

const leastForClients = (most: number): number => Math.floor(most / 8);

function limitsOfThisProcess(): string {
  try {
    return readFileSync('/proc/self/limits', 'utf8');
  } catch {
    // Another system: what is short shows when it is.
    return '';
  }
}
