import { realpathSync } from 'node:fs';
import { url as debuggerUrl } from 'node:inspector';
import type { Worker } from 'node:worker_threads';
import type { Log } from '../../observability/telemetry.ts';
import { startThread } from '../../stores/sqlite/read-model/start-thread.ts';
import {
  BEAT,
  BEATS,
  DEBUGGED,
  type Blocked,
  type WatchdogData,
  type WatchedFolder,
} from './watchdog-protocol.ts';

/** Of the thread, which holds next to nothing. MiB. */
const HEAP = { maxOldGenerationSizeMb: 64, maxYoungGenerationSizeMb: 4 } as const;

/**
 * Names the extension that keeps the event loop to itself. A thread watches the loop's beat; where it stands still, the
 * thread asks the debugger of the process what runs there, and looks whose file it is: so it also knows what goes on
 * behind an `await`, and the extension's code costs nothing more while all is well. An endless loop can't be ended in
 * one process, but its name is in the log.
 *
 * There is none where all extensions are of this service, and it looks away while somebody debugs the process: a
 * breakpoint stops the loop as well.
 */
export class ExtensionWatchdog {
  readonly #options: ConstructorParameters<typeof ExtensionWatchdog>[0];
  #thread: Worker | null = null;
  #beating: NodeJS.Timeout | undefined;
  #begun = false;

  constructor(options: {
    /** Asked once, when it begins. */
    readonly extensions: () => readonly WatchedFolder[];
    /** Told once the loop goes on. */
    readonly blocked: (blocked: Blocked) => void;
    readonly log: Log;
    readonly logLevel: WatchdogData['logLevel'];
  }) {
    this.#options = options;
  }

  /** Called before code of an extension runs. Begins with the first call. */
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
      log.warn('extensions are not watched: they can block the event loop unseen', { error });
    });
    this.#thread.unref();
  }

  async close(): Promise<void> {
    clearInterval(this.#beating);
    await this.#thread?.terminate();
    this.#thread = null;
  }
}

/** As modules are named, behind symbolic links; a folder that is gone since is as it was named. */
function realPathOf(folder: string): string {
  try {
    return realpathSync(folder);
  } catch {
    return folder;
  }
}
