import { createHash } from 'node:crypto';
import { join } from 'node:path';
import { isConflict } from '../../domain/event-store.ts';
import type { LogTransfer, RawAppend } from '../../domain/log-transfer.ts';
import { streams } from '../../domain/streams.ts';
import type { ArchiveProgress } from './progress.ts';
import { ArchiveFault } from './archive-fault.ts';
import { contentOf, parseLine, type MovedEvent } from './event-lines.ts';
import { linesOf } from './hashed-file.ts';
import type { EventsManifest } from './manifest.ts';

/** Events that are appended before the next are looked at. */
const BATCH = 1_000;
/** Of one append: servers take no more than 1 MiB. */
const MOST_OF_AN_APPEND = 200;
const MOST_CHARACTERS = 128 * 1024;
/** Appends at a time among streams that are cut off. */
const FEW = 50;

/** What an import has brought. */
export interface Imported {
  /** All events that the log holds of the archive now. */
  readonly events: number;
  /** Of them, those that were there already. */
  readonly found: number;
  /** Events of the archive that were cut off from their streams before it was made. */
  readonly left: number;
  /** Over what moved, as the manifest has it of the whole archive. */
  readonly content_sha256: string;
}

/**
 * Brings an archive's events into a log, in their order, each with the revision that it has: a log that holds none,
 * or that holds the first of them, as an import that was broken off leaves it.
 *
 * @throws ArchiveFault `refused` where the log holds something else; `damaged`
 */
export async function importEvents(
  log: LogTransfer,
  folder: string,
  manifest: EventsManifest,
  progress: ArchiveProgress,
  ways: {
    /** Called before the first event is written: the log is fit to be filled. */
    readonly onFit: () => Promise<void>;
    /** Correlation id of events that may stand in the log beside the archive's: what the same import has added. */
    readonly besides: string;
  },
): Promise<Imported> {
  const { besides } = ways;
  const cut = await truncationsOf(folder, manifest);
  const wanted = new Wanted(folder, manifest, cut);
  progress.stage('looking at what is there');
  const found = await samePrefix(eventsIn(log, besides), wanted.events(), manifest, progress);
  await ways.onFit();
  progress.stage('importing');
  await appendFrom(log, wanted.events(), found, cut, (done) => {
    progress.move(done / Math.max(1, manifest.events), done);
    progress.signal.throwIfAborted();
  });
  progress.stage('checking');
  const held = await digestOf(log, besides, (share, events) => {
    progress.signal.throwIfAborted();
    progress.move(share, events);
  });
  const expected = await wanted.digest();
  if (held.events !== expected.events || held.sha256 !== expected.sha256) {
    const counts = `it holds ${held.events} events of ${expected.events}`;
    throw new ArchiveFault('failed', `the log is not what it was filled with: ${counts}`);
  }
  return {
    events: held.events,
    found,
    left: manifest.events - held.events,
    content_sha256: held.sha256,
  };
}

/** The events of an archive that move: those that are not cut off. */
class Wanted {
  readonly #folder: string;
  readonly #manifest: EventsManifest;
  readonly #cut: ReadonlyMap<string, number>;

  constructor(folder: string, manifest: EventsManifest, cut: ReadonlyMap<string, number>) {
    this.#folder = folder;
    this.#manifest = manifest;
    this.#cut = cut;
  }

  async *events(): AsyncGenerator<MovedEvent> {
    let number = 0;
    for await (const lines of linesOf(join(this.#folder, this.#manifest.log.file))) {
      for (const line of lines) {
        number += 1;
        const event = parseLine(line, number);
        if (event.revision >= (this.#cut.get(event.stream) ?? 0)) yield event;
      }
    }
  }

  async digest(): Promise<{ readonly events: number; readonly sha256: string }> {
    const { events, content_sha256: sha256 } = this.#manifest;
    if (this.#cut.size === 0) return { events, sha256 };
    return digestOfAll(this.events());
  }
}

async function truncationsOf(
  folder: string,
  { truncations }: EventsManifest,
): Promise<ReadonlyMap<string, number>> {
  const cut = new Map<string, number>();
  for await (const lines of linesOf(join(folder, truncations.file))) {
    for (const line of lines) {
      const { stream, before } = JSON.parse(line) as { stream: string; before: number };
      cut.set(stream, Math.max(before, cut.get(stream) ?? 0));
    }
  }
  return cut;
}

/**
 * How many of the events the log holds already, from the first on.
 * @throws ArchiveFault `refused` where it holds another event
 */
async function samePrefix(
  there: AsyncGenerator<MovedEvent>,
  wanted: AsyncGenerator<MovedEvent>,
  manifest: EventsManifest,
  progress: ArchiveProgress,
): Promise<number> {
  let count = 0;
  try {
    for await (const present of there) {
      const { value: due } = await wanted.next();
      if (due === undefined || contentOf(present) !== contentOf(due)) {
        const what = `revision ${present.revision} of ${present.stream} (${present.type})`;
        const whose = `which is not event ${count + 1} of the archive`;
        throw new ArchiveFault('refused', `the log is not empty: it holds ${what}, ${whose}`);
      }
      count += 1;
      if (count % BATCH !== 0) continue;
      progress.signal.throwIfAborted();
      progress.move(count / Math.max(1, manifest.events), count);
    }
  } finally {
    await wanted.return(undefined);
  }
  return count;
}

async function appendFrom(
  log: LogTransfer,
  wanted: AsyncGenerator<MovedEvent>,
  found: number,
  cut: ReadonlyMap<string, number>,
  onDone: (events: number) => void,
): Promise<void> {
  const batch = new Batch();
  let count = 0;
  for await (const event of wanted) {
    count += 1;
    if (count <= found) continue;
    batch.add(event);
    if (batch.size < BATCH) continue;
    await appendAll(log, batch.take());
    onDone(count);
  }
  await appendAll(log, batch.take());
  // Streams of which nothing is left but how far they went.
  for (const [stream, before] of cut) await log.skipTo(stream, before);
  onDone(count);
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
  size = 0;
  #appends: { stream: string; expected: RawAppend['expected']; events: MovedEvent[] }[] = [];
  #characters = 0;

  add(event: MovedEvent): void {
    this.size += 1;
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

  take(): readonly RawAppend[] {
    const taken = this.#appends;
    this.#appends = [];
    this.size = 0;
    return taken;
  }
}

/** What a log holds of others' events. */
async function* eventsIn(log: LogTransfer, besides: string): AsyncGenerator<MovedEvent> {
  for await (const { events } of log.contents()) {
    for (const event of events) if (isMoved(event, besides)) yield event;
  }
}

const isMoved = ({ stream, metadata }: MovedEvent, besides: string): boolean =>
  stream !== streams.imports() && !metadata.includes(besides);

async function digestOf(
  log: LogTransfer,
  besides: string,
  onPart: (share: number, events: number) => void,
): Promise<{ readonly events: number; readonly sha256: string }> {
  const hash = createHash('sha256');
  let count = 0;
  for await (const { events, share } of log.contents()) {
    const moved = events.filter((event) => isMoved(event, besides));
    hash.update(moved.map((event) => `${contentOf(event)}}\n`).join(''));
    count += moved.length;
    onPart(share, count);
  }
  return { events: count, sha256: hash.digest('hex') };
}

async function digestOfAll(
  events: AsyncGenerator<MovedEvent>,
): Promise<{ readonly events: number; readonly sha256: string }> {
  const hash = createHash('sha256');
  let count = 0;
  for await (const event of events) {
    hash.update(`${contentOf(event)}}\n`);
    count += 1;
  }
  return { events: count, sha256: hash.digest('hex') };
}
