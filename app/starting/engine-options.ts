import { availableParallelism } from 'node:os';
import { setFlagsFromString } from 'node:v8';

/** Processors that the event loop, the projector and the log's writer fill by themselves. */
const FEW = 2;

/**
 * How much a function that is compiled takes into itself of those that it calls, in bytes of bytecode; V8's own is 920.
 */
const MOST_INLINED = 100;

/**
 * Sets how V8 collects young objects and compiles, in every thread. Before the threads are started; has V8 no such option
 * any more, it says so by a line on standard error.
 *
 * @param processors that this process may use; default: as the system says
 */
export function setEngineOptions(processors: number = availableParallelism()): void {
  for (const option of engineOptions(processors)) setFlagsFromString(option);
}

/**
 * V8's options for so many processors.
 *
 * - Where they are few, each thread collects its young objects by itself. V8 shares that out to helpers, and the thread
 *   stands still until the last of them is done: one that waits for a processor holds it up, as long as others fill them.
 * - Where they are few, what V8 compiles meanwhile is taken from what the service does, a fifth of all in its first busy
 *   seconds. A function that takes little of others into itself is compiled in a part of the time, and is as fast.
 * - Objects are made among the young ones, also at a place of the program whose last ones have lived long. Each time V8
 *   changes its mind about such a place, it throws away all compiled code that makes objects there: some thirty
 *   functions of a busy service's first seconds, for nothing that could be measured.
 */
export function engineOptions(processors: number): readonly string[] {
  const always = ['--no-allocation-site-pretenuring'];
  if (processors > FEW) return always;
  return [
    ...always,
    '--no-parallel-scavenge',
    `--max-inlined-bytecode-size-cumulative=${MOST_INLINED}`,
  ];
}
