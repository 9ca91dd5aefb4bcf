import { createHash } from 'node:crypto';
import { join } from 'node:path';
import { contentOf, type MovedEvent } from '../../domain/events/event-line.ts';
import type { LogTransfer } from '../../domain/log-transfer.ts';
import { streams } from '../../domain/streams.ts';
import { ArchiveError } from './archive-error.ts';
import { parseLine } from './event-lines.ts';
import { linesOf } from './hashed-file.ts';
import { appendConcurrently, appendInOrder, skipConcurrently } from './import-appending.ts';
import { compareWithLog, windowsOf } from './import-windows.ts';
import type { EventsManifest } from './manifest.ts';
import type { ArchiveProgress } from './progress.ts';

/** The result of an import. */
export interface Imported {
  /** Events of the archive in the log. */
  readonly events: number;
  /** Events of the archive that were in the log before. */
  readonly found: number;
  /** Truncated events of the archive, which were left out. */
  readonly left: number;
  /** Hash of the imported events, as in the manifest. */
  readonly content_sha256: string;
  /** Whether all events have the archive's order, so that an export has the same hash. */
  readonly in_order: boolean;
}

/** The order of an import. */
export interface ImportOptions {
  /** Called before the first event is written, when the log has been checked. */
  readonly onAccepted: () => Promise<void>;
  /** Correlation id of events that the same import adds to the log. */
  readonly correlationId: string;
  /** Whether all events keep the archive's order. */
  readonly inOrder: boolean;
}

/**
 * Imports an archive's events with their revisions into a log that is empty or has the first of them, as an interrupted
 * import leaves it. An engine that takes appends one by one gets many concurrently, unless the order of all is to be
 * kept. Concurrent appends change the order of events within a window, except of events of one stream, task or run, and
 * of events that concern several.
 *
 * @throws ArchiveError `refused` if the log has other events; `damaged`
 */
export async function importEvents(
  log: LogTransfer,
  folder: string,
  manifest: EventsManifest,
  progress: ArchiveProgress,
  options: ImportOptions,
): Promise<Imported> {
  const { correlationId } = options;
  const inOrder = options.inOrder || log.sideBySide === 1;
  const truncations = await truncationsOf(folder, manifest);
  const archived = (): AsyncGenerator<MovedEvent> => eventsOf(folder, manifest, truncations);
  const present = (): AsyncGenerator<MovedEvent, void> => eventsIn(log, correlationId);
  const show = (events: number): void => {
    progress.move(events / Math.max(1, manifest.events), events);
    progress.signal.throwIfAborted();
  };
  progress.stage('comparing');
  const windows = windowsOf(archived(), !inOrder);
  const { found, rest } = await compareWithLog(present(), windows, inOrder, show);
  await options.onAccepted();
  progress.stage('importing');
  let done = found;
  const append = async (window: readonly MovedEvent[]): Promise<void> => {
    await (inOrder ? appendInOrder(log, window) : appendConcurrently(log, window));
    done += window.length;
    show(done);
  };
  await append(rest);
  for await (const window of windows) await append(window);
  await skipConcurrently(log, truncations, progress.signal);
  progress.stage('checking');
  const { events: count, content_sha256: sha256 } = manifest;
  const expected = truncations.size === 0 ? { events: count, sha256 } : await digestOf(archived());
  const held = inOrder
    ? await digestOf(present(), show)
    : {
        events: (await compareWithLog(present(), windowsOf(archived(), true), false, show)).found,
        sha256: expected.sha256,
      };
  if (held.events !== expected.events || held.sha256 !== expected.sha256) {
    const counts = `it has ${held.events} events of ${expected.events}`;
    throw new ArchiveError('failed', `the log differs from the archive: ${counts}`);
  }
  return {
    events: held.events,
    found,
    left: manifest.events - held.events,
    content_sha256: expected.sha256,
    in_order: inOrder,
  };
}

/** The events of an archive without the truncated ones. */
async function* eventsOf(
  folder: string,
  manifest: EventsManifest,
  truncations: ReadonlyMap<string, number>,
): AsyncGenerator<MovedEvent> {
  let number = 0;
  for await (const lines of linesOf(join(folder, manifest.log.file))) {
    for (const line of lines) {
      number += 1;
      const event = parseLine(line, number);
      if (event.revision >= (truncations.get(event.stream) ?? 0)) yield event;
    }
  }
}

/** The first revisions of truncated streams. */
async function truncationsOf(
  folder: string,
  { truncations }: EventsManifest,
): Promise<ReadonlyMap<string, number>> {
  const found = new Map<string, number>();
  for await (const lines of linesOf(join(folder, truncations.file))) {
    for (const line of lines) {
      const { stream, before } = JSON.parse(line) as { stream: string; before: number };
      found.set(stream, Math.max(before, found.get(stream) ?? 0));
    }
  }
  return found;
}

/** The events of a log without those that the import adds. */
async function* eventsIn(
  log: LogTransfer,
  correlationId: string,
): AsyncGenerator<MovedEvent, void> {
  for await (const { events } of log.contents()) {
    for (const event of events) {
      const isAdded = event.stream === streams.imports() || event.metadata.includes(correlationId);
      if (!isAdded) yield event;
    }
  }
}

/** Events between two reports of progress. */
const REPORT_INTERVAL = 1_000;

async function digestOf(
  events: AsyncGenerator<MovedEvent, void>,
  onCount: (events: number) => void = () => {},
): Promise<{ readonly events: number; readonly sha256: string }> {
  const hash = createHash('sha256');
  let count = 0;
  for await (const event of events) {
    hash.update(`${contentOf(event)}}\n`);
    count += 1;
    if (count % REPORT_INTERVAL === 0) onCount(count);
  }
  onCount(count);
  return { events: count, sha256: hash.digest('hex') };
}
