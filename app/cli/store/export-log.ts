import { counted } from '../../../domain/explain/words.ts';
import { exportArchive } from '../../archive/make-archive.ts';
import { usageError } from '../calling/command-errors.ts';
import { storeSettings } from '../calling/open-stores.ts';
import type { Session } from '../calling/session.ts';
import { bytes } from '../terminal/units.ts';
import { withProgress } from './archive-progress.ts';
import type { ExportOptions } from './export-options.ts';

/**
 * Exports the whole log into a new folder.
 * @param release the version recorded in the manifest
 * @throws CommandError without a folder, and for options that need --format
 */
export async function exportLog(
  session: Session,
  { dataDir, format: _format, of, ...rowOptions }: ExportOptions,
  target: string | undefined,
  release: string,
): Promise<void> {
  if (target === undefined || target.trim() === '') {
    throw usageError('give a folder for the log, or --format for rows');
  }
  const given = Object.entries({ of: of === 'events' ? undefined : of, ...rowOptions })
    .filter(([, value]) => value !== undefined)
    .map(([name]) => `--${name}`);
  if (given.length > 0) throw usageError(`${given.join(', ')} can only be used with --format`);
  if (session.urlOption !== undefined) {
    throw usageError('the log is exported from its store; --url can only be used with --format');
  }
  const { clock, environment } = session;
  const place = storeSettings(environment.env, dataDir);
  const manifest = await withProgress(session, (progress) =>
    exportArchive({ place, target, clock, progress, release }),
  );
  session.answer({ folder: target, manifest }, () => {
    const size = `${counted(manifest.events, 'event')}, ${bytes(manifest.log.bytes)}`;
    const content = `the content has the SHA-256 ${manifest.content_sha256}`;
    return `${session.paint.good(`exported to ${target}`)}: ${size}\n${content}`;
  });
}
