import { getPriority, setPriority } from 'node:os';

/**
 * Niceness of a thread that helps to fill a view, of 0 to 19. No more: at 10, a processor whose others never rest would
 * leave it a tenth, and the folding would wait for it.
 */
const GIVES_WAY = 5;

/**
 * Lets others go first: whoever waits for an answer of the service shall not wait for the calling thread. On Linux the
 * priority is that thread's own; elsewhere it would be that of the whole process.
 */
export function giveWay(): void {
  if (process.platform === 'linux') setPriority(Math.max(getPriority(), GIVES_WAY));
}
