import { createHash } from 'node:crypto';
import { contentOf, placeOf } from '../../domain/events/event-line.ts';
import type { LogTransfer } from '../../domain/log-transfer.ts';
import { streams } from '../../domain/streams.ts';
import { rejectUnfinishedImport } from './archive-error.ts';
import { HashedFile } from './hashed-file.ts';
import type { EventsManifest } from './manifest.ts';
import type { ArchiveProgress } from './progress.ts';

/** The facts about the events in a manifest. */
type Exported = Pick<
  EventsManifest,
  'log' | 'truncations' | 'content_sha256' | 'events' | 'first_position' | 'last_position'
>;

/**
 * Writes all events of a log into a folder, a line each, in order. Events about imports into this log are left out,
 * because they are not true of another log.
 *
 * @throws ArchiveError `refused` for a log with an interrupted import; EventStoreError `UNAVAILABLE`; the file system's
 *   errors; the signal's reason
 */
export async function writeEvents(
  log: LogTransfer,
  folder: string,
  progress: ArchiveProgress,
): Promise<Exported> {
  const imports = streams.imports();
  const lines = await HashedFile.create(folder, 'events.ndjson');
  const files = [lines];
  try {
    const truncated = await HashedFile.create(folder, 'truncations.ndjson');
    files.push(truncated);
    const content = createHash('sha256');
    let [events, truncations] = [0, 0];
    let [first, last] = ['', ''];
    let lastImport: string | null = null;
    for await (const part of log.contents()) {
      progress.signal.throwIfAborted();
      let [text, hashed] = ['', ''];
      for (const event of part.events) {
        if (event.stream === imports) {
          lastImport = event.type;
          continue;
        }
        const line = contentOf(event);
        hashed += `${line}}\n`;
        text += line + placeOf(event);
        events += 1;
        first ||= event.position;
        last = event.position;
      }
      content.update(hashed);
      if (text !== '') await lines.write(text);
      for (const each of part.truncations.filter(({ stream }) => stream !== imports)) {
        await truncated.write(`${JSON.stringify(each)}\n`);
        truncations += 1;
      }
      progress.move(part.share, events);
    }
    rejectUnfinishedImport(lastImport);
    return {
      events,
      first_position: first,
      last_position: last,
      log: await lines.finish(),
      truncations: { ...(await truncated.finish()), streams: truncations },
      content_sha256: content.digest('hex'),
    };
  } catch (error) {
    await Promise.allSettled(files.map((file) => file.abandon()));
    throw error;
  }
}
