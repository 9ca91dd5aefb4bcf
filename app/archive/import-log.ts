import { createHash } from 'node:crypto';
import { join } from 'node:path';
import type { LogTransfer } from '../../domain/log-transfer.ts';
import { streams } from '../../domain/streams.ts';
import type { ArchiveProgress } from './progress.ts';
import { ArchiveFault } from './archive-fault.ts';
import { contentOf, type MovedEvent } from '../../domain/events/event-line.ts';
import { parseLine } from './event-lines.ts';
import { linesOf } from './hashed-file.ts';
import { appendInOrder, appendSideBySide, skipSideBySide } from './import-appending.ts';
import { compareWithLog, windowsOf } from './import-windows.ts';
import type { EventsManifest } from './manifest.ts';

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
  /** Whether all stands in the order of the archive, so that an export of it has the same SHA-256. */
  readonly in_order: boolean;
}

/**
 * Brings an archive's events into a log, each with the revision that it has: a log that holds none, or that holds the
 * first of them, as an import that was broken off leaves it. An engine that takes appends one by one gets many at a
 * time, unless the order of all is to be kept: then events change places within a window, but never those of one
 * stream, nor of one task or run, nor with what says something of many.
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
    /** Whether every event is to stand where it does in the archive. */
    readonly inOrder: boolean;
  },
): Promise<Imported> {
  const { besides } = ways;
  const inOrder = ways.inOrder || log.sideBySide === 1;
  const cut = await truncationsOf(folder, manifest);
  const wanted = new Wanted(folder, manifest, cut);
  const show = (events: number): void => {
    progress.move(events / Math.max(1, manifest.events), events);
    progress.signal.throwIfAborted();
  };
  progress.stage('looking at what is there');
  const windows = windowsOf(wanted.events(), !inOrder);
  const there = await compareWithLog(eventsIn(log, besides), windows, inOrder, show);
  await ways.onFit();
  progress.stage('importing');
  let done = there.found;
  const append = async (window: readonly MovedEvent[]): Promise<void> => {
    await (inOrder ? appendInOrder(log, window) : appendSideBySide(log, window, log.sideBySide));
    done += window.length;
    show(done);
  };
  await append(there.rest);
  for await (const window of windows) await append(window);
  // Streams of which nothing is left but how far they went.
  await skipSideBySide(log, cut, progress.signal);
  progress.stage('checking');
  const expected = await wanted.digest();
  const held = inOrder
    ? await digestOf(log, besides, show)
    : await countOf(log, besides, wanted, show);
  if (held.events !== expected.events || (inOrder && held.sha256 !== expected.sha256)) {
    const counts = `it holds ${held.events} events of ${expected.events}`;
    throw new ArchiveFault('failed', `the log is not what it was filled with: ${counts}`);
  }
  return {
    events: held.events,
    found: there.found,
    left: manifest.events - held.events,
    content_sha256: expected.sha256,
    in_order: inOrder,
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

/** What a log holds of others' events. */
async function* eventsIn(log: LogTransfer, besides: string): AsyncGenerator<MovedEvent, void> {
  for await (const { events } of log.contents()) {
    for (const event of events) if (isMoved(event, besides)) yield event;
  }
}

const isMoved = ({ stream, metadata }: MovedEvent, besides: string): boolean =>
  stream !== streams.imports() && !metadata.includes(besides);

async function digestOf(
  log: LogTransfer,
  besides: string,
  onPart: (events: number) => void,
): Promise<{ readonly events: number; readonly sha256: string }> {
  const hash = createHash('sha256');
  let count = 0;
  for await (const { events } of log.contents()) {
    const moved = events.filter((event) => isMoved(event, besides));
    hash.update(moved.map((event) => `${contentOf(event)}}\n`).join(''));
    count += moved.length;
    onPart(count);
  }
  return { events: count, sha256: hash.digest('hex') };
}

/** How many events a log holds of an archive, each compared with what it is there. */
async function countOf(
  log: LogTransfer,
  besides: string,
  wanted: Wanted,
  onPart: (events: number) => void,
): Promise<{ readonly events: number; readonly sha256: null }> {
  const windows = windowsOf(wanted.events(), true);
  const { found } = await compareWithLog(eventsIn(log, besides), windows, false, onPart);
  return { events: found, sha256: null };
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
