import { once } from 'node:events';
import { PROJECTOR_HEAP } from '../../app/projecting/start-projector.ts';
import { setEngineOptions } from '../../app/starting/engine-options.ts';
import { startThread } from '../../stores/sqlite/start-thread.ts';
import { withBenchFolder } from '../bench-folder.ts';
import { atLeast, type Benchmark } from '../benchmark.ts';
import type { RebuildRates } from './rebuild-thread.ts';
import { EVENTS_PER_RUN, writeRunLog } from './run-log.ts';

/** Rebuilds the view of runs (read, check, fold, write, index, sync, switch), beside reading and parsing the log. */
export const rebuild: Benchmark = {
  targets: [atLeast('ratio', 0.25, 'beside plain reading and parsing')],
  count: ({ events }) => events,
  measure: ({ events }) =>
    withBenchFolder('rebuild', async (directory) => {
      const runs = Math.ceil(events / EVENTS_PER_RUN);
      await writeRunLog(directory, runs);
      // In a thread with the heap and the engine options of the projector's.
      setEngineOptions();
      const order = { directory, runs };
      const thread = startThread('./rebuild-thread', import.meta.url, order, PROJECTOR_HEAP);
      const ended = once(thread, 'exit');
      const [{ ours, raw }] = (await once(thread, 'message')) as [RebuildRates];
      await ended;
      return {
        'events/s': Math.round(ours),
        'plain events/s': Math.round(raw),
        ratio: Number((ours / raw).toFixed(3)),
      };
    }),
};
