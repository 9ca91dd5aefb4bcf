import { statSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { exportEvents } from '../../api/exporting/event-rows.ts';
import { toFile } from '../../app/analysis/row-writer.ts';
import { exportArchive, makeBackup } from '../../app/archive/make-archive.ts';
import { importArchive } from '../../app/archive/restore.ts';
import type { ArchiveProgress } from '../../app/archive/progress.ts';
import { onTransfer } from '../../app/archive/open-transfer.ts';
import { SystemClock } from '../../app/clock.ts';
import { createEventCodec } from '../../domain/events/codec.ts';
import { silent } from '../../observability/telemetry.ts';
import { openSqliteEventStore } from '../../stores/sqlite/event-log/event-store.ts';
import { makeBenchFolder, removeBenchFolder } from '../bench-folder.ts';
import { EVENTS_OF_A_RUN } from './rebuild-rates.ts';
import { fillLog } from './rebuild.ts';

/** How fast a log is written out, and taken in again. */
export interface ExportBenchmark {
  readonly events: number;
  /** Events a second: rows as NDJSON, as CSV; the whole log as an archive; that archive into another log. */
  readonly ndjson: number;
  readonly csv: number;
  readonly archive: number;
  readonly imported: number;
  /** Seconds. */
  readonly backup: number;
  readonly mebibytes: number;
  /** Most memory that the process had, heap and buffers, beyond what it had before. MiB. */
  readonly memory: number;
}

/**
 * Exports, imports and backs up an embedded log of `events` events; all to the disk, synced at the end.
 *
 * @param options.events default 1,000,000
 */
export async function benchExport(
  options: { readonly events?: number } = {},
): Promise<ExportBenchmark> {
  const { events = 1_000_000 } = options;
  const directory = await makeBenchFolder('export');
  try {
    const runs = Math.ceil(events / EVENTS_OF_A_RUN);
    const codec = createEventCodec();
    const store = await openSqliteEventStore({ directory, codec, telemetry: silent });
    try {
      await fillLog(store, runs);
    } finally {
      await store.close();
    }
    return await measure(directory, runs * EVENTS_OF_A_RUN);
  } finally {
    await removeBenchFolder(directory);
  }
}

async function measure(directory: string, events: number): Promise<ExportBenchmark> {
  const place = { dataDirectory: directory, eventStoreUrl: undefined };
  const progress = new Quiet();
  const [clock, release] = [new SystemClock(), 'bench'];
  const at = (name: string): string => join(directory, name);
  const making = (name: string): Parameters<typeof exportArchive>[0] => {
    return { place, target: at(name), clock, progress, release };
  };
  const ndjson = await secondsOf(() => writeRows(place, 'ndjson', at('rows.ndjson'), progress));
  const { most } = progress;
  const csv = await secondsOf(() => writeRows(place, 'csv', at('rows.csv'), progress));
  const archive = await secondsOf(() => exportArchive(making('archive')));
  const backup = await secondsOf(() => makeBackup(making('backup')));
  const imported = await secondsOf(() => {
    const there = { dataDirectory: at('there'), eventStoreUrl: undefined };
    return importArchive({
      ...{ place: there, archive: at('archive'), clock, progress, reason: undefined },
      inOrder: true,
    });
  });
  return {
    events,
    ndjson: events / ndjson,
    csv: events / csv,
    archive: events / archive,
    imported: events / imported,
    backup,
    mebibytes: statSync(at('rows.ndjson')).size / 1024 ** 2,
    memory: most / 1024 ** 2,
  };
}

async function writeRows(
  place: Parameters<typeof onTransfer>[0],
  format: 'ndjson' | 'csv',
  path: string,
  progress: ArchiveProgress,
): Promise<void> {
  await onTransfer(place, false, async (log) => {
    const writer = await toFile(path);
    for await (const { text, share } of exportEvents(
      { parts: (wanted) => log.contents(wanted) },
      format,
      {},
    )) {
      await writer.write(text);
      progress.move(share);
    }
    await writer.finish();
  });
}

async function secondsOf(work: () => Promise<unknown>): Promise<number> {
  const since = performance.now();
  await work();
  return (performance.now() - since) / 1000;
}

/** Shows nothing, and notes how much memory there was at most. */
class Quiet implements ArchiveProgress {
  readonly signal = new AbortController().signal;
  most = 0;
  readonly #before = used();

  stage(): void {}

  move(): void {
    this.most = Math.max(this.most, used() - this.#before);
  }
}

function used(): number {
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}

if (process.argv[1] !== undefined && import.meta.url === pathToFileURL(process.argv[1]).href) {
  const events = Number(process.argv[2] ?? 1_000_000);
  process.stdout.write(`${JSON.stringify(await benchExport({ events }), null, 2)}\n`);
}
