import { isConflict } from '../../domain/event-store.ts';
import type { MovedEvent } from '../../domain/events/event-line.ts';
import type { LogTransfer, RawAppend } from '../../domain/log-transfer.ts';
import { idOf } from '../../domain/streams.ts';

/** Limits of one append; servers accept 1 MiB. */
const MAX_EVENTS = 200;
const MAX_CHARACTERS = 128 * 1024;
/** Appends at a time among truncated streams. */
const MAX_APPENDS_IN_DOUBT = 50;

/**
 * Prefixes of streams that no view reads together with streams of another id, so their events can change places.
 * Streams of one id (`task-<id>`, `fires-<id>`) keep their order, and so do a fire and its run. Events of all other
 * streams concern several ids and keep their place among all.
 */
const INDEPENDENT_PREFIXES = [
  ...['run-', 'task-', 'fires-', 'session-', 'webhook-', 'idem-', 'key-', 'refusals-', 'reads-'],
] as const;

/** Appends the events of a window in order. @throws EventStoreError */
export function appendInOrder(log: LogTransfer, events: readonly MovedEvent[]): Promise<void> {
  const batch = new Batch();
  for (const event of events) batch.add(event);
  return appendAll(log, batch.appends);
}

/**
 * Appends the events of a window, those of independent streams concurrently.
 * @throws EventStoreError the first one, once no other append is in progress
 */
export async function appendConcurrently(
  log: LogTransfer,
  events: readonly MovedEvent[],
): Promise<void> {
  let lanes = new Map<string, Batch>();
  const flush = async (): Promise<void> => {
    await forEachConcurrently(log, lanes.values(), ({ appends }) => appendAll(log, appends));
    lanes = new Map();
  };
  /** The task that fired, by its run. */
  const firedBy = new Map<string, string>();
  for (const event of events) {
    const { stream } = event;
    if (!INDEPENDENT_PREFIXES.some((prefix) => stream.startsWith(prefix))) {
      await flush();
      await appendInOrder(log, [event]);
      continue;
    }
    const id = idOf(stream);
    if (event.type === 'Fired') {
      const { run_id } = JSON.parse(event.data) as { readonly run_id: string };
      firedBy.set(run_id, id);
    }
    const lane = firedBy.get(id) ?? id;
    const batch = lanes.get(lane) ?? new Batch();
    lanes.set(lane, batch);
    batch.add(event);
  }
  await flush();
}

/**
 * Sets the revisions of truncated streams, concurrently: a log without its old runs has one for each of them.
 * @throws EventStoreError the first one; the signal's reason, between two streams
 */
export function skipConcurrently(
  log: LogTransfer,
  truncations: ReadonlyMap<string, number>,
  signal: AbortSignal,
): Promise<void> {
  return forEachConcurrently(log, truncations.entries(), async ([stream, before]) => {
    signal.throwIfAborted();
    await log.skipTo(stream, before);
  });
}

/**
 * Works on items, as many at a time as the log takes. After an error, no further item begins. @throws the first error
 */
async function forEachConcurrently<T>(
  log: LogTransfer,
  items: IterableIterator<T>,
  work: (item: T) => Promise<void>,
): Promise<void> {
  let isFailed = false;
  const worker = async (): Promise<void> => {
    for (let next = items.next(); next.done !== true && !isFailed; next = items.next()) {
      try {
        await work(next.value);
      } catch (error) {
        isFailed = true;
        throw error;
      }
    }
  };
  const ended = await Promise.allSettled(Array.from({ length: log.sideBySide }, worker));
  for (const each of ended) if (each.status === 'rejected') throw each.reason;
}

/** Appends in order. A stream whose start is truncated starts at its first remaining revision. */
async function appendAll(log: LogTransfer, appends: readonly RawAppend[]): Promise<void> {
  let size = appends.length;
  for (let done = 0; done < appends.length;) {
    const part = appends.slice(done, done + size);
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
      // The appends before it succeeded. Other streams are probably truncated too, so smaller parts follow.
      done += at;
      size = MAX_APPENDS_IN_DOUBT;
    }
  }
}

/** Collects events as appends; consecutive events of a stream share one. */
class Batch {
  readonly #appends: {
    readonly stream: string;
    readonly expected: RawAppend['expected'];
    readonly events: MovedEvent[];
  }[] = [];
  #characters = 0;

  get appends(): readonly RawAppend[] {
    return this.#appends;
  }

  add(event: MovedEvent): void {
    const characters = event.data.length + event.metadata.length;
    const last = this.#appends.at(-1);
    const isConsecutive =
      last?.stream === event.stream &&
      last.events.at(-1)?.revision === event.revision - 1 &&
      last.events.length < MAX_EVENTS &&
      this.#characters + characters <= MAX_CHARACTERS;
    if (isConsecutive) {
      last.events.push(event);
      this.#characters += characters;
      return;
    }
    const expected = event.revision === 0 ? 'none' : event.revision - 1;
    this.#appends.push({ stream: event.stream, expected, events: [event] });
    this.#characters = characters;
  }
}
