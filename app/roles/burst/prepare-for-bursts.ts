import { collectGarbageBefore } from './collect-garbage.ts';
import { warmUpOnce, type WarmUpOptions } from './warm-up.ts';
import type { DueEntry } from '../../../scheduler/fires/due-index.ts';

/**
 * Keeps runs on time when many tasks are due at one instant: compiles the code and collects garbage before.
 *
 * @returns a function to call with the tasks that are due in the next seconds
 */
export function prepareForBursts(
  options: WarmUpOptions,
  signal: AbortSignal,
): (due: readonly DueEntry[]) => void {
  const warmUp = warmUpOnce(options, signal);
  const collectGarbage = collectGarbageBefore(options.clock);
  return (due) => {
    warmUp(due);
    collectGarbage(due);
  };
}
