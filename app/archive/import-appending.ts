import { isConflict } from '../../domain/event-store.ts';
import type { LogTransfer, RawAppend } from '../../domain/log-transfer.ts';
import { idOf } from '../../domain/streams.ts';
import type { MovedEvent } from '../../domain/events/event-line.ts';

/** Of one append: servers take no more than 1 MiB. */
const MOST_OF_AN_APPEND = 200;
const MOST_CHARACTERS = 128 * 1024;
/** Appends at a time among streams that are cut off. */
const FEW = 50;

/**
 * Streams of one task, run, session and so on, which no view reads together with those of another: their events may
 * change places with each other. Those of one id (`task-<id>` and `fires-<id>`) keep theirs, and so do a fire and its run. All other streams say
 * something of many (`kept-<day>` of the runs of a day, `retention`): what stands before and behind them stays there.
 */
const INDEPENDENT = [
  ...['run-', 'task-', 'fires-', 'session-', 'webhook-', 'idem-', 'key-', 'refusals-', 'reads-'],
] as const;

/** Appends a window's events in their order. @throws EventStoreError */
export function appendInOrder(log: LogTransfer, events: readonly MovedEvent[]): Promise<void> {
  const batch = new Batch();
  for (const event of events) batch.add(event);
  return appendAll(log, batch.appends);
}

/**
 * Appends a window's events, those of independent streams side by side.
 * @param most appends that are under way at a time
 * @throws EventStoreError the first there was, once nothing is under way any more
 */
export async function appendSideBySide(
  log: LogTransfer,
  events: readonly MovedEvent[],
  most: number,
): Promise<void> {
  let lanes = new Map<string, Batch>();
  /** Runs of fires among the events, and the task that has fired. */
  const fired = new Map<string, string>();
  for (const event of events) {
    const id = laneOf(event);
    if (id === null) {
      await appendLanes(log, lanes, most);
      await appendInOrder(log, [event]);
      lanes = new Map();
      continue;
    }
    if (event.type === 'Fired') {
      const { run_id } = JSON.parse(event.data) as { readonly run_id: string };
      fired.set(run_id, id);
    }
    const lane = fired.get(id) ?? id;
    const batch = lanes.get(lane) ?? new Batch();
    lanes.set(lane, batch);
    batch.add(event);
  }
  await appendLanes(log, lanes, most);
}

/**
 * Lets streams go on where they did, of which nothing moves or only what comes behind their cut: as many at a time as
 * appends. Of a log whose old runs were taken out there is one for each of them.
 * @param signal ends it between two streams
 * @throws EventStoreError the first there was; the signal's reason
 */
export async function skipSideBySide(
  log: LogTransfer,
  cut: ReadonlyMap<string, number>,
  signal: AbortSignal,
): Promise<void> {
  const open = cut.entries();
  let failed = false;
  const work = async (): Promise<void> => {
    for (const [stream, before] of open) {
      try {
        signal.throwIfAborted();
        await log.skipTo(stream, before);
      } catch (error) {
        failed = true;
        throw error;
      }
      if (failed) return;
    }
  };
  const ended = await Promise.allSettled(Array.from({ length: log.sideBySide }, work));
  for (const each of ended) if (each.status === 'rejected') throw each.reason;
}

/** Whose turn an event waits for; null where for that of all. */
function laneOf({ stream }: MovedEvent): string | null {
  return INDEPENDENT.some((prefix) => stream.startsWith(prefix)) ? idOf(stream) : null;
}

async function appendLanes(
  log: LogTransfer,
  lanes: ReadonlyMap<string, Batch>,
  most: number,
): Promise<void> {
  const open = [...lanes.values()];
  let failed = false;
  const work = async (): Promise<void> => {
    for (let lane = open.pop(); lane !== undefined && !failed; lane = open.pop()) {
      try {
        await appendAll(log, lane.appends);
      } catch (error) {
        failed = true;
        throw error;
      }
    }
  };
  // The first comes last otherwise, as the end of the list is taken.
  open.reverse();
  const ended = await Promise.allSettled(Array.from({ length: most }, work));
  for (const each of ended) if (each.status === 'rejected') throw each.reason;
}

/** Appends in order; a stream whose beginning does not move is made to begin where it does. */
async function appendAll(log: LogTransfer, appends: readonly RawAppend[]): Promise<void> {
  let most = appends.length;
  for (let done = 0; done < appends.length;) {
    const part = appends.slice(done, done + most);
    try {
      await log.append(part);
      done += part.length;
    } catch (error) {
      const { stream, expected, actual } = isConflict(error) ? error : {};
      const isBehind =
        actual === 'none' || (typeof actual === 'number' && actual < Number(expected));
      const at = part.findIndex((each) => each.stream === stream && each.expected === expected);
      const isFound = stream !== undefined && typeof expected === 'number' && at >= 0;
      if (!isFound || !isBehind) throw error;
      await log.skipTo(stream, expected + 1);
      // What stands before it has been appended.
      done += at;
      // Where one is cut off, others are: each try is for fewer.
      most = FEW;
    }
  }
}

/** Events as appends, in their order: those that follow each other in one stream go together. */
class Batch {
  readonly #appends: {
    stream: string;
    expected: RawAppend['expected'];
    events: MovedEvent[];
  }[] = [];
  #characters = 0;

  get appends(): readonly RawAppend[] {
    return this.#appends;
  }

  add(event: MovedEvent): void {
    const characters = event.data.length + event.metadata.length;
    const last = this.#appends.at(-1);
    const follows =
      last?.stream === event.stream &&
      last.events.at(-1)?.revision === event.revision - 1 &&
      last.events.length < MOST_OF_AN_APPEND &&
      this.#characters + characters <= MOST_CHARACTERS;
    if (follows) {
      last.events.push(event);
      this.#characters += characters;
      return;
    }
    const expected = event.revision === 0 ? 'none' : event.revision - 1;
    this.#appends.push({ stream: event.stream, expected, events: [event] });
    this.#characters = characters;
  }
}
