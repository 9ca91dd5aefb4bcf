import type { ConnectionSettings } from './connection-url.ts';

/** How often the client sends a sign of life where the connection string does not say. Milliseconds. */
const KEEP_ALIVE = 10_000;

/** The longest that a timer of Node waits: -1 in the connection string. */
const LONGEST = 2 ** 31 - 1;

/** How many connections are apart from each other; signs of life are less than a second later for it. */
const DIFFERENT = 1_000;

let made = 0;

/**
 * The same settings, of a connection of its own: gRPC uses one for all in a process that are alike, so signs of life are
 * sent some milliseconds less often than by the others. One that is shared takes the calls of all, and one that gets no
 * answer lasts for as long as any of them is on it, also where each gives it up after a while.
 */
export function apart(settings: ConnectionSettings): ConnectionSettings {
  const { keepAliveInterval = KEEP_ALIVE } = settings.numbers;
  const place = made++ % DIFFERENT;
  const later = keepAliveInterval + place;
  const other = later < LONGEST ? later : keepAliveInterval - place;
  return { ...settings, numbers: { ...settings.numbers, keepAliveInterval: other } };
}
