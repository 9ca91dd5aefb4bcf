import { availableParallelism } from 'node:os';
import { setFlagsFromString } from 'node:v8';

/** Processors that the event loop, the projector and the log's writer fill by themselves. */
const FEW = 2;

/**
 * Where processors are few, has each thread collect its young objects by itself. V8 shares that out to helpers, and the
 * thread stands still until the last of them is done: one that waits for a processor holds it up, as long as others
 * fill them. Before the threads are started; has V8 no such option any more, it says so by a line on standard error.
 *
 * @param processors that this process may use; default: as the system says
 */
export function collectAloneOnFewProcessors(processors: number = availableParallelism()): void {
  for (const option of collectionOptions(processors)) setFlagsFromString(option);
}

/** V8's options for so many processors. */
export function collectionOptions(processors: number): readonly string[] {
  return processors <= FEW ? ['--no-parallel-scavenge'] : [];
}
