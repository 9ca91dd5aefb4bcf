import { statSync } from 'node:fs';
import { join } from 'node:path';
import { exportEvents } from '../../api/exporting/event-rows.ts';
import { toFile } from '../../app/analysis/row-writer.ts';
import { exportArchive, makeBackup } from '../../app/archive/make-archive.ts';
import { withTransfer, type LogPlace } from '../../app/archive/open-transfer.ts';
import type { ArchiveProgress } from '../../app/archive/progress.ts';
import { importArchive } from '../../app/archive/restore.ts';
import { SystemClock } from '../../app/clock.ts';
import { withBenchFolder } from '../bench-folder.ts';
import { secondsOf } from '../bench-service.ts';
import { atLeast, lessThan, type Figures, type Benchmark } from '../benchmark.ts';
import { EVENTS_PER_RUN, writeRunLog } from './run-log.ts';

/** Exports, imports and backs up an embedded log, all synced to the disk. */
export const exportLog: Benchmark = {
  targets: [
    atLeast('ndjson events/s', 100_000),
    lessThan('memory MiB', 200, 'for a log of any length'),
  ],
  count: ({ events }) => events,
  measure: ({ events }) =>
    withBenchFolder('export', async (directory) => {
      const runs = Math.ceil(events / EVENTS_PER_RUN);
      await writeRunLog(directory, runs);
      return measure(directory, runs * EVENTS_PER_RUN);
    }),
};

async function measure(directory: string, events: number): Promise<Figures> {
  const progress = new MemoryWatch();
  const place = placeOf(directory);
  const at = (name: string): string => join(directory, name);
  const shared = { clock: new SystemClock(), progress, release: 'bench', place };
  const ndjson = await secondsOf(() => writeRows(place, 'ndjson', at('rows.ndjson'), progress));
  const { peak } = progress;
  const csv = await secondsOf(() => writeRows(place, 'csv', at('rows.csv'), progress));
  const archive = await secondsOf(() => exportArchive({ ...shared, target: at('archive') }));
  const backup = await secondsOf(() => makeBackup({ ...shared, target: at('backup') }));
  const imported = await secondsOf(() =>
    importArchive({
      ...shared,
      place: placeOf(at('there')),
      archive: at('archive'),
      reason: undefined,
      inOrder: true,
    }),
  );
  return {
    'ndjson events/s': events / ndjson,
    'csv events/s': events / csv,
    'archive events/s': events / archive,
    'import events/s': events / imported,
    'backup s': backup,
    'ndjson MiB': statSync(at('rows.ndjson')).size / 1024 ** 2,
    'memory MiB': peak / 1024 ** 2,
  };
}

const placeOf = (dataDirectory: string) => ({ dataDirectory, eventStoreUrl: undefined });

async function writeRows(
  place: LogPlace,
  format: 'ndjson' | 'csv',
  path: string,
  progress: ArchiveProgress,
): Promise<void> {
  await withTransfer(place, false, async (log) => {
    const writer = await toFile(path);
    const source = { parts: (wanted: Parameters<typeof log.contents>[0]) => log.contents(wanted) };
    for await (const { text, share } of exportEvents(source, format, {})) {
      await writer.write(text);
      progress.move(share);
    }
    await writer.finish();
  });
}

/** Records the peak of heap and buffers above their initial size. Bytes. */
class MemoryWatch implements ArchiveProgress {
  readonly signal = new AbortController().signal;
  peak = 0;
  readonly #before = usedMemory();

  stage(): void {}

  move(): void {
    this.peak = Math.max(this.peak, usedMemory() - this.#before);
  }
}

function usedMemory(): number {
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}
