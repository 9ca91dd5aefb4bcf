import type { Worker } from 'node:worker_threads';
import type { Clock } from '../../domain/clock.ts';
import type { Telemetry } from '../../observability/telemetry.ts';
import { startThread } from '../../stores/sqlite/read-model/start-thread.ts';
import { runProjector } from './projector-host.ts';
import type {
  ProjectorThreadData,
  ProjectorThreadMessage,
  ProjectorWord,
} from './projector-protocol.ts';

/** The projector of this process. */
export interface RunningProjector {
  stop(): Promise<void>;
}

/**
 * The heap of the projector's thread. Folding makes much that is thrown away at once. Where there is room for more of it,
 * less is still in use when it is collected; but memory that is touched for the first time, and is in no processor's
 * cache, costs more than that. MiB; taken only as it is needed.
 */
export const PROJECTOR_HEAP = { maxYoungGenerationSizeMb: 48 } as const;

/** Pause before a projector that fell over is started again. Milliseconds. */
const RESTART_AFTER = 1000;

/**
 * Starts the projector: in a thread of its own where the views are embedded, as folding into files keeps a
 * thread busy; in this one where they are on a server. One that falls over is started again.
 */
export function startProjector(options: {
  readonly data: ProjectorThreadData;
  readonly clock: Clock;
  readonly telemetry: Telemetry;
  readonly onWord: (word: ProjectorWord) => void;
}): RunningProjector {
  const { data, clock, telemetry, onWord } = options;
  const stop = new AbortController();
  const tell = (word: ProjectorWord): void => {
    if (word.kind === 'count') telemetry.count(word.name, word.labels, word.by);
    else if (word.kind === 'observe') telemetry.observe(word.name, word.value, word.labels);
    else onWord(word);
  };
  const runOnce = (): Promise<void> =>
    data.settings.readModelUrl === undefined
      ? runInThread(data, stop.signal, tell)
      : runProjector({ data, clock, signal: stop.signal, tell, traces: telemetry.traces });
  const running = (async () => {
    while (!stop.signal.aborted) {
      try {
        await runOnce();
      } catch (error) {
        if (stop.signal.aborted) throw error;
        telemetry.log.error('the projector fell over; it is started again', { error });
        await clock.sleep(RESTART_AFTER, stop.signal).catch(() => {});
      }
    }
  })();
  return {
    async stop() {
      stop.abort();
      await running;
    },
  };
}

function runInThread(
  data: ProjectorThreadData,
  signal: AbortSignal,
  tell: (word: ProjectorWord) => void,
): Promise<void> {
  return new Promise((resolve, reject) => {
    const thread: Worker = startThread('./projector-thread', import.meta.url, data, PROJECTOR_HEAP);
    const stop = (): void => {
      thread.postMessage({ kind: 'stop' } satisfies ProjectorThreadMessage);
    };
    if (signal.aborted) stop();
    else signal.addEventListener('abort', stop, { once: true });
    thread.on('message', tell);
    thread.once('error', reject);
    thread.once('exit', (code) => {
      signal.removeEventListener('abort', stop);
      if (code === 0) resolve();
      else reject(new Error(`the projector's thread ended with code ${code}`));
    });
  });
}
