import { createHash } from 'node:crypto';
import type { LogTransfer } from '../../domain/log-transfer.ts';
import { streams } from '../../domain/streams.ts';
import type { ArchiveProgress } from './progress.ts';
import { contentOf, placeOf } from '../../domain/events/event-line.ts';
import { rejectUnfinishedImport } from './unfinished-import.ts';
import { HashedFile } from './hashed-file.ts';
import type { EventsManifest } from './manifest.ts';

/** What the lines of a log are called in an archive. */
const EVENTS = 'events.ndjson';
const TRUNCATIONS = 'truncations.ndjson';

/** What an export says of the events in it. */
export type Exported = Pick<
  EventsManifest,
  'log' | 'truncations' | 'content_sha256' | 'events' | 'first_position' | 'last_position'
>;

/**
 * Writes all events of a log into a folder, a line each, in their order. What this log says of imports into itself
 * stays: it is not true of another.
 *
 * @throws ArchiveFault `refused` for a log that an import was broken off on; EventStoreError `UNAVAILABLE`; the file
 *   system's errors; the signal's reason
 */
export async function exportLog(
  log: LogTransfer,
  folder: string,
  progress: ArchiveProgress,
): Promise<Exported> {
  const own = streams.imports();
  const files = [await HashedFile.create(folder, EVENTS)] as const;
  const truncated = await HashedFile.create(folder, TRUNCATIONS).catch(async (error: unknown) => {
    await files[0].abandon();
    throw error;
  });
  const [lines] = files;
  const content = createHash('sha256');
  let [events, cut] = [0, 0];
  let [first, last] = ['', ''];
  let lastOfImport: string | null = null;
  try {
    for await (const part of log.contents()) {
      progress.signal.throwIfAborted();
      let [text, moved] = ['', ''];
      for (const event of part.events) {
        if (event.stream === own) {
          lastOfImport = event.type;
          continue;
        }
        const line = contentOf(event);
        moved += `${line}}\n`;
        text += line + placeOf(event);
        events += 1;
        first ||= event.position;
        last = event.position;
      }
      content.update(moved);
      if (text !== '') await lines.write(text);
      for (const each of part.truncations.filter(({ stream }) => stream !== own)) {
        await truncated.write(`${JSON.stringify(each)}\n`);
        cut += 1;
      }
      progress.move(part.share, events);
    }
    rejectUnfinishedImport(lastOfImport);
    return {
      events,
      first_position: first,
      last_position: last,
      log: await lines.finish(),
      truncations: { ...(await truncated.finish()), streams: cut },
      content_sha256: content.digest('hex'),
    };
  } catch (error) {
    await Promise.allSettled([lines.abandon(), truncated.abandon()]);
    throw error;
  }
}
