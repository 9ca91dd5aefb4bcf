import { availableParallelism } from 'node:os';
import { setFlagsFromString } from 'node:v8';

/** The event loop, the projector and the log's writer keep this many processors busy. */
const MAX_BUSY_PROCESSORS = 2;

/** How many bytes of bytecode V8 inlines into a function; its default is 920. */
const MAX_INLINED_BYTES = 100;

/**
 * Sets V8's options for all threads. Call it before the threads start. V8 reports unknown options on standard error.
 *
 * @param processors available to this process; default: as the system reports
 */
export function setEngineOptions(processors: number = availableParallelism()): void {
  for (const option of engineOptions(processors)) setFlagsFromString(option);
}

/**
 * V8's options for a number of processors (docs/decisions/0027).
 *
 * - Few processors: each thread collects its young objects alone. With helpers, the thread stops until the last of them has
 *   had a processor.
 * - Few processors: little inlining. Compiling otherwise takes a fifth of the first busy seconds; the code is as fast.
 * - Always: no pretenuring. When V8 changes its mind about an allocation site, it discards all compiled code that
 *   allocates there, some thirty functions in a busy service's first seconds, without a measurable gain.
 */
export function engineOptions(processors: number): readonly string[] {
  const always = ['--no-allocation-site-pretenuring'];
  if (processors > MAX_BUSY_PROCESSORS) return always;
  return [
    ...always,
    '--no-parallel-scavenge',
    `--max-inlined-bytecode-size-cumulative=${MAX_INLINED_BYTES}`,
  ];
}
