import { realpathSync } from 'node:fs';
import { url as debuggerUrl } from 'node:inspector';
import type { Worker } from 'node:worker_threads';
import type { Log } from '../../observability/telemetry.ts';
import { startThread } from '../../stores/sqlite/start-thread.ts';
import {
  BEAT,
  BEATS,
  DEBUGGED,
  type Blocked,
  type WatchdogData,
  type WatchedFolder,
} from './watchdog-protocol.ts';

/** Heap limits of the thread, which holds little. MiB. */
const HEAP = { maxOldGenerationSizeMb: 64, maxYoungGenerationSizeMb: 4 } as const;

/**
 * Names an extension that blocks the event loop. A thread watches the loop's heartbeat. When it stops, the thread asks the
 * process's debugger what is running and finds the file's extension. This also works after an `await`, and costs nothing
 * in normal operation. An endless loop cannot be ended within one process, but the log names it.
 *
 * It does not run if all extensions are built in, and pauses while the process is being debugged, because a breakpoint
 * also stops the loop.
 */
export class ExtensionWatchdog {
  readonly #options: ConstructorParameters<typeof ExtensionWatchdog>[0];
  #thread: Worker | null = null;
  #beating: NodeJS.Timeout | undefined;
  #begun = false;

  constructor(options: {
    /** Called once, at the start. */
    readonly extensions: () => readonly WatchedFolder[];
    /** Called once the loop continues. */
    readonly blocked: (blocked: Blocked) => void;
    readonly log: Log;
    readonly logLevel: WatchdogData['logLevel'];
  }) {
    this.#options = options;
  }

  /** Must be called before an extension's code runs. Starts with the first call. */
  begin(): void {
    if (this.#begun) return;
    this.#begun = true;
    const { extensions, blocked, log, logLevel } = this.#options;
    const beats = new SharedArrayBuffer(2 * Int32Array.BYTES_PER_ELEMENT);
    const data: WatchdogData = {
      beats,
      logLevel,
      extensions: extensions().map(({ id, folder }) => ({ id, folder: realPathOf(folder) })),
    };
    const count = new Int32Array(beats);
    this.#beating = setInterval(() => {
      Atomics.add(count, BEATS, 1);
      Atomics.store(count, DEBUGGED, debuggerUrl() === undefined ? 0 : 1);
    }, BEAT).unref();
    this.#thread = startThread('./watchdog-thread', import.meta.url, data, HEAP);
    this.#thread.on('message', blocked);
    this.#thread.on('error', (error) => {
      log.warn('watchdog failed: extensions can block the event loop unnoticed', { error });
    });
    this.#thread.unref();
  }

  async close(): Promise<void> {
    clearInterval(this.#beating);
    await this.#thread?.terminate();
    this.#thread = null;
  }
}

/** Resolves symbolic links, as module names do. A folder that no longer exists keeps its name. */
function realPathOf(folder: string): string {
  try {
    return realpathSync(folder);
  } catch {
    return folder;
  }
}
