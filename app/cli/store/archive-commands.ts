import type { restore as restoreArchive } from '../../archive/restore.ts';
import { addCrontabImport } from '../crontab/import-crontab-command.ts';
import { withScreen } from './archive-screen.ts';
import { usageFault } from '../calling/faults.ts';
import { onStore, storeSettings } from '../calling/on-store.ts';
import { showOwed } from './owed-screen.ts';
import type { CommandLine } from '../program.ts';
import type { Session } from '../calling/session.ts';
import { bytes } from '../terminal/bytes.ts';
import { shortTime } from '../terminal/times.ts';

interface Place {
  readonly dataDir?: string;
}

const DATA_DIR = '--data-dir <folder>';
const OF_STORES = 'the folder of the embedded stores (SVC_DATA_DIR; ./data)';

/**
 * `svc backup`, `svc restore`, `svc import`, `svc owed`
 * @param release this release's version, for manifests
 */
export function addArchiveCommands(line: CommandLine, release: string): void {
  const backup = line.program
    .command('backup <folder>')
    .description('copies the log and the keys into a new folder; the service may run meanwhile')
    .option(DATA_DIR, OF_STORES);
  line.does<Place>(backup, ['backup /backups/2026-11-21'], async (session, { dataDir }, words) => {
    const target = folderOf(words, 'a backup into which folder?');
    const { clock, surroundings } = session;
    const place = storeSettings(surroundings.env, dataDir);
    const { makeBackup } = await import('../../archive/make-archive.ts');
    const manifest = await withScreen(session, (progress) =>
      makeBackup({ place, target, clock, progress, release }),
    );
    session.answer({ folder: target, manifest }, () => {
      const what = manifest.kind === 'copy' ? 'a copy of the log' : 'an export of the log';
      const keys = manifest.keys.length === 0 ? '' : `, and ${manifest.keys.length} files of keys`;
      const size = `${manifest.events.toLocaleString('en')} events, ${bytes(manifest.log.bytes)}`;
      return `${session.paint.good(`backed up to ${target}`)}: ${what} with ${size}${keys}`;
    });
  });

  const back = line.program
    .command('restore <backup>')
    .description('puts a backup into an empty data directory; the service then starts on hold')
    .option(DATA_DIR, OF_STORES);
  line.does<Place>(back, ['restore /backups/2026-11-21'], async (session, { dataDir }, words) => {
    const settings = storeSettings(session.surroundings.env, dataDir);
    const archive = folderOf(words, 'which backup?');
    const { restore } = await import('../../archive/restore.ts');
    const { refuseForeignViews } = await import('../../archive/foreign-views.ts');
    const { readOwed } = await import('./owed.ts');
    const {
      manifest,
      hold,
      found: owed,
    } = await withScreen(session, async (progress) => {
      // A folder with everything embedded has to be empty, which says more.
      const isEmbedded =
        settings.eventStoreUrl === undefined && settings.readModelUrl === undefined;
      if (!isEmbedded) await refuseForeignViews(settings);
      return restore({ ...filling(session, archive), place: settings, progress }, (place) =>
        onStore({ ...settings, ...place }, (stores) =>
          readOwed(stores, session.clock.now(), session.surroundings.signal),
        ),
      );
    });
    session.answer({ manifest, hold, owed }, () => {
      const from = `the backup of ${shortTime(manifest.made_at)}`;
      const done = `restored ${from}, ${manifest.events.toLocaleString('en')} events`;
      return `${session.paint.good(done)}\n${showOwed(session, owed)}`;
    });
  });

  const take = line.program
    .command('import <export>')
    .description('brings the events of svc export into an empty store, or goes on with that')
    .helpCommand(false)
    .option(DATA_DIR, OF_STORES)
    .option('--in-order', 'each event where it stands in the export: one by one to a server');
  type Options = Place & { readonly inOrder?: boolean };
  const examples = ['import /moves/november', 'import /moves/november --in-order'];
  line.does<Options>(take, examples, async (session, { dataDir, inOrder = false }, words) => {
    const place = storeSettings(session.surroundings.env, dataDir);
    const archive = folderOf(words, 'which export?');
    const { importArchive } = await import('../../archive/restore.ts');
    const { refuseForeignViews } = await import('../../archive/foreign-views.ts');
    const imported = await withScreen(session, async (progress) => {
      await refuseForeignViews(place);
      return importArchive({ ...filling(session, archive), place, progress, inOrder });
    });
    session.answer(imported, () => {
      const { events, found, left, content_sha256: sha256 } = imported;
      const before = found === 0 ? '' : ` (${found.toLocaleString('en')} were there)`;
      const cut =
        left === 0 ? '' : `; ${left.toLocaleString('en')} had been cut off, and stay behind`;
      const done = `imported ${events.toLocaleString('en')} events${before}${cut}`;
      const same = imported.in_order
        ? 'the content has'
        : 'each event stands in its stream as in the export, whose content has';
      return `${session.paint.good(done)}\nchecked: ${same} the SHA-256 ${sha256}`;
    });
  });

  addCrontabImport(line, take);

  const owed = line.program
    .command('owed')
    .description('what is due and not decided, by task, and what a release would make of it')
    .option(DATA_DIR, OF_STORES);
  line.does<Place>(owed, ['owed'], async (session, { dataDir }) => {
    const settings = storeSettings(session.surroundings.env, dataDir);
    const { readOwed } = await import('./owed.ts');
    const answer = await onStore(settings, (stores) =>
      readOwed(stores, session.clock.now(), session.surroundings.signal),
    );
    session.answer(answer, () => showOwed(session, answer));
  });
}

/** @throws CommandFault where the first word names nothing, as of a script that has forgotten to set it */
function folderOf([folder = '']: readonly string[], question: string): string {
  if (folder.trim() === '') throw usageFault(question);
  return folder;
}

const filling = (
  { clock, reason }: Session,
  archive: string,
): Pick<Parameters<typeof restoreArchive>[0], 'archive' | 'clock' | 'reason'> => ({
  archive,
  clock,
  reason,
});
