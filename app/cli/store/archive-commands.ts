import { counted } from '../../../domain/explain/words.ts';
import type { LogPlace } from '../../archive/open-transfer.ts';
import { usageError } from '../calling/command-errors.ts';
import { storeSettings, withStores } from '../calling/open-stores.ts';
import type { Session } from '../calling/session.ts';
import { addCrontabImport } from '../crontab/import-crontab-command.ts';
import { dataDir, flag, repeatable, text } from '../options.ts';
import type { CommandLine } from '../program.ts';
import { bytes, shortTime } from '../terminal/units.ts';
import { withProgress } from './archive-progress.ts';
import { showBacklog } from './backlog-screen.ts';
import { exportOptions } from './export-options.ts';
import type { BacklogSummary } from './read-backlog.ts';

/**
 * `svc backup`, `svc restore`, `svc import`, `svc owed`
 * @param release the version recorded in manifests
 */
export function addArchiveCommands(line: CommandLine, release: string): void {
  line.add(line.program, 'backup <folder>', {
    description: 'copy the log and the keys into a new folder; the service may be running',
    options: {
      dataDir,
      recipient: repeatable('key', 'encrypt the backup for this age public key (age1…)'),
    },
    examples: [
      'backup /backups/2026-11-21',
      'backup /backups/2026-11-21 --recipient age1ql3z7hjy54pw3hyww5ayyfg7zqgvc7w3j2elw8zmrj2kg5sfn9aqmcac8p',
    ],
    run: async (session, { recipient = [], ...options }, words) => {
      const target = folderOf(words, 'give the folder for the backup');
      const { clock, environment } = session;
      const place = storeSettings(environment.env, options.dataDir);
      const manifest = await withProgress(session, async (progress) => {
        const order = { place, target, clock, progress, release };
        if (recipient.length === 0) {
          const { makeBackup } = await import('../../archive/make-archive.ts');
          return makeBackup(order);
        }
        const { makeEncryptedBackup } = await import('../../archive/encrypted-backup.ts');
        return makeEncryptedBackup(order, recipient);
      });
      session.answer({ folder: target, encrypted: recipient.length > 0, manifest }, () => {
        const what = manifest.kind === 'copy' ? 'a copy of the log' : 'an export of the log';
        const keys = manifest.keys.length === 0 ? '' : `, and ${manifest.keys.length} key files`;
        const size = `${counted(manifest.events, 'event')}, ${bytes(manifest.log.bytes)}`;
        const encrypted =
          recipient.length === 0 ? '' : `, encrypted for ${counted(recipient.length, 'recipient')}`;
        const done = session.paint.good(`backed up to ${target}`);
        return `${done}: ${what} with ${size}${keys}${encrypted}`;
      });
    },
  });
  line.add(line.program, 'restore <backup>', {
    description: 'restore a backup into an empty data directory; the service then starts on hold',
    options: { dataDir, identity: text('file', 'file with the secret key of an encrypted backup') },
    examples: [
      'restore /backups/2026-11-21',
      'restore /backups/2026-11-21 --identity /media/key/backups.txt',
    ],
    run: async (session, { identity, ...options }, words) => {
      const place = storeSettings(session.environment.env, options.dataDir);
      const archive = folderOf(words, 'give the folder of the backup');
      const { clock, reason } = session;
      const { restore } = await import('../../archive/restore.ts');
      const { rejectForeignViews } = await import('../../archive/foreign-views.ts');
      const { readBacklog } = await import('./read-backlog.ts');
      const { manifest, hold, found } = await withProgress(session, async (progress) => {
        // If all stores are embedded, the folder must be empty anyway, and that message says more.
        if ((place.eventStoreUrl ?? place.readModelUrl) !== undefined) {
          await rejectForeignViews(place);
        }
        const order = { archive, clock, reason, place, progress };
        const inspect = (restored: LogPlace): Promise<BacklogSummary> =>
          withStores({ ...place, ...restored }, (stores) =>
            readBacklog(stores, clock.now(), progress.signal),
          );
        if (identity === undefined) return restore(order, inspect);
        const { restoreEncrypted } = await import('../../archive/encrypted-restore.ts');
        return restoreEncrypted(order, identity, inspect);
      });
      session.answer({ manifest, hold, owed: found }, () => {
        const from = `the backup of ${shortTime(manifest.made_at)}`;
        const done = session.paint.good(`restored ${from}, ${counted(manifest.events, 'event')}`);
        return `${done}\n${showBacklog(session, found)}`;
      });
    },
  });
  const importing = line.add(line.program, 'import <export>', {
    description: 'import the events of svc export into an empty store, or continue an import',
    options: {
      dataDir,
      inOrder: flag('keep the order of all events; slower with a server'),
    },
    examples: ['import /moves/november', 'import /moves/november --in-order'],
    run: async (session, { inOrder = false, ...options }, words) => {
      const place = storeSettings(session.environment.env, options.dataDir);
      const archive = folderOf(words, 'give the folder of the export');
      const { clock, reason } = session;
      const { importArchive } = await import('../../archive/restore.ts');
      const { rejectForeignViews } = await import('../../archive/foreign-views.ts');
      const imported = await withProgress(session, async (progress) => {
        await rejectForeignViews(place);
        return importArchive({ archive, clock, reason, place, progress, inOrder });
      });
      session.answer(imported, () => {
        const { events, found, left, content_sha256, in_order } = imported;
        const present = found === 0 ? '' : ` (${found.toLocaleString('en')} were present)`;
        const truncated = left === 0 ? '' : `; ${counted(left, 'truncated event')} were left out`;
        const done = session.paint.good(
          `imported ${counted(events, 'event')}${present}${truncated}`,
        );
        const order = in_order ? '' : 'each stream has the order of the export; ';
        return `${done}\nverified: ${order}the content has the SHA-256 ${content_sha256}`;
      });
    },
  });
  addCrontabImport(line, importing.helpCommand(false));
  line.add(line.program, 'owed', {
    description: 'show due, undecided fires by task, and the runs that a release would start',
    options: { dataDir },
    examples: ['owed'],
    run: async (session, options) => {
      const settings = storeSettings(session.environment.env, options.dataDir);
      const { readBacklog } = await import('./read-backlog.ts');
      const backlog = await withStores(settings, (stores) =>
        readBacklog(stores, session.clock.now(), session.environment.signal),
      );
      session.answer(backlog, () => showBacklog(session, backlog));
    },
  });
}

/** @throws CommandError for an empty first argument, as from an unset shell variable */
function folderOf([folder = '']: readonly string[], message: string): string {
  if (folder.trim() === '') throw usageError(message);
  return folder;
}

/**
 * `svc export`
 * @param release the version recorded in manifests
 */
export function addExportCommand(line: CommandLine, release: string): void {
  line.add(line.program, 'export [folder]', {
    description: 'export the log into a new folder, or with --format rows of events or runs',
    options: exportOptions,
    examples: [
      'export /moves/november',
      'export --format ndjson --type RunFailed --since 2026-11-01T00:00Z > failed.ndjson',
      'export --format csv --of runs --task 01a1fc11-0505-734a-8920-9c4c55a40f65 --output runs.csv',
      'export --url https://svc.example.com --format csv --of runs --state failed --output runs.csv',
    ],
    run: async (session: Session, options, [folder]) => {
      if (options.format === undefined) {
        const { exportLog } = await import('./export-log.ts');
        return exportLog(session, options, folder, release);
      }
      const { exportRows } = await import('./export-rows.ts');
      return exportRows(session, options, options.format, folder);
    },
  });
}
