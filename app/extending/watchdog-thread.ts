import { Session, type Debugger } from 'node:inspector';
import { relative, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parentPort, workerData } from 'node:worker_threads';
import { createLog } from '../../observability/create-log.ts';
import { BEAT, BEATS, DEBUGGED, type Blocked, type WatchdogData } from './watchdog-protocol.ts';

/** The event loop counts as blocked after this time without a heartbeat. Milliseconds. */
const BLOCKED_AFTER = 1_000;

/** Time without a heartbeat after which the running code is inspected. Milliseconds. */
const INSPECT_AFTER = 600;

/** Pause between inspections. Two with the same result identify the extension. Milliseconds. */
const INSPECTION_PAUSE = 100;

/** Maximum inspections in a row. */
const MAX_INSPECTIONS = 5;

/**
 * Code that the debugger cannot stop for this long is waiting outside JavaScript (another program, the disk). Then one
 * inspection is enough. Milliseconds.
 */
const EXTERNAL_WAIT = 1_000;

/** The extension whose code was running, and where. */
type Found = Pick<Blocked, 'extension' | 'where'>;

/** The thread that watches the event loop of its process, for `app/extending/extension-watchdog.ts`. */
const port = parentPort;
if (port === null) throw new Error('the watchdog needs a parent');

const data = workerData as WatchdogData;
const beats = new Int32Array(data.beats);
const log = createLog({ level: data.logLevel, fields: { part: 'watchdog' } });

let seen = beatNow();
/** Last heartbeat, and last check of this thread, by this thread's clock. */
let since = performance.now();
let looked = since;
let looking = false;
let named: Found | null = null;

setInterval(() => {
  const now = performance.now();
  // This thread was delayed too, so the process or machine was asleep.
  const slept = now - looked > INSPECT_AFTER;
  looked = now;
  if (beatNow() !== seen) {
    if (named !== null) port.postMessage({ ...named, seconds: (now - since) / 1000 });
    named = null;
    seen = beatNow();
    since = now;
  } else if (named === null && (slept || Atomics.load(beats, DEBUGGED) === 1)) {
    since = now;
  } else if (named === null && !looking && now - since > INSPECT_AFTER) {
    looking = true;
    void look().finally(() => (looking = false));
  }
}, BEAT);

function beatNow(): number {
  return Atomics.load(beats, BEATS);
}

/** Finds the extension whose code is running, and logs it at once, because it may never end. */
async function look(): Promise<void> {
  const standing = seen;
  const stood = since;
  const stands = (): boolean => beatNow() === standing;
  const inspection = new Inspection();
  try {
    let before: Found | null = null;
    for (let times = 0; times < MAX_INSPECTIONS && stands(); times += 1) {
      const asked = performance.now();
      const found = ownerOf(await inspection.stack(stands));
      const waited = performance.now() - asked;
      if (found !== null && (found.extension === before?.extension || waited > EXTERNAL_WAIT)) {
        while (stands() && performance.now() - stood < BLOCKED_AFTER) await rest(INSPECTION_PAUSE);
        const seconds = (performance.now() - stood) / 1000;
        if (seconds * 1000 >= BLOCKED_AFTER) name({ ...found, seconds }, stands());
        return;
      }
      before = found;
      await rest(INSPECTION_PAUSE);
    }
  } catch (error) {
    log.warn('could not inspect what blocks the event loop', { error });
  } finally {
    inspection.end();
  }
}

/** @param stands whether the loop is still blocked; otherwise it continued when it was inspected */
function name(blocked: Blocked, stands: boolean): void {
  const { extension, where } = blocked;
  const seconds = Math.round(blocked.seconds * 10) / 10;
  log.error('an extension blocks the event loop', { extension, where, seconds });
  if (stands) named = { extension, where };
  else port?.postMessage(blocked);
}

interface Frame {
  readonly called: string;
  readonly url: string;
  /** From 1. */
  readonly line: number;
}

/** The innermost call of an extension's code. */
function ownerOf(frames: readonly Frame[]): Found | null {
  for (const { called, url, line } of frames) {
    if (!url.startsWith('file:')) continue;
    const file = fileURLToPath(url);
    const owners = data.extensions.filter(({ folder }) => file.startsWith(folder + sep));
    const owner = owners.sort((one, other) => other.folder.length - one.folder.length)[0];
    if (owner === undefined) continue;
    const place = `${relative(owner.folder, file)}:${String(line)}`;
    return { extension: owner.id, where: called === '' ? place : `${called} (${place})` };
  }
  return null;
}

/** The process's debugger, used to see what is running. It only slows the process down. */
class Inspection {
  readonly #session = new Session();
  /** Addresses of scripts, by their ids. */
  readonly #urls = new Map<string, string>();
  #connected = false;

  /**
   * Pauses the running code and reads its call stack.
   * @param stands whether the loop is still blocked
   * @returns the frames, innermost first; empty if the loop continued before it could be paused
   */
  async stack(stands: () => boolean): Promise<readonly Frame[]> {
    if (!this.#connected) this.#connect();
    let frames: readonly Frame[] | null = null;
    this.#session.once('Debugger.paused', ({ params }) => {
      this.#session.post('Debugger.resume');
      frames = params.callFrames.map((frame) => this.#frameOf(frame));
    });
    this.#session.post('Debugger.pause');
    while (frames === null && stands()) await rest(BEAT / 4);
    return frames ?? [];
  }

  /** Lets paused code continue. */
  end(): void {
    if (this.#connected) this.#session.disconnect();
    this.#connected = false;
  }

  #connect(): void {
    this.#session.connectToMainThread();
    this.#connected = true;
    this.#session.on('Debugger.scriptParsed', ({ params }) => {
      this.#urls.set(params.scriptId, params.url);
    });
    this.#session.post('Debugger.enable');
  }

  #frameOf({ functionName: called, url, location }: Debugger.CallFrame): Frame {
    const { scriptId, lineNumber } = location;
    const known = url === '' ? this.#urls.get(scriptId) : url;
    return { called, url: known ?? '', line: lineNumber + 1 };
  }
}

function rest(milliseconds: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, milliseconds));
}
