import {
  accessSync,
  constants,
  existsSync,
  readdirSync,
  readFileSync,
  statfsSync,
  statSync,
} from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { fileBlockingFolder, statIfPresent } from '../../stores/folder.ts';
import { logFile } from '../../stores/sqlite/event-log/schema.ts';
import { bytes } from '../cli/terminal/units.ts';
import { readConfiguration, type Configuration } from '../configuration/configuration.ts';
import { ConfigurationError, type Environment } from '../configuration/setting-readers.ts';
import { KEY_FILE } from '../starting/keys.ts';
import { filesOpenToOthers } from '../starting/private-files.ts';
import type { StoreSettings } from '../stores.ts';
import { fault, ok, warn, type Finding } from './finding.ts';

/** Bytes of free space below which writing will soon fail. */
const MIN_FREE = 100 * 1024 ** 2;

/** Characters of a signing key. */
const MIN_KEY_LENGTH = 32;

const OWNERSHIP = 'chown it to the user of the service, and chmod 700';

/** Checks the settings as a service reads them. `configuration` is null if that fails. */
export function checkSettings(env: Environment): {
  readonly configuration: Configuration | null;
  readonly findings: readonly Finding[];
} {
  const check = 'settings';
  try {
    const configuration = readConfiguration(env);
    const { warnings, production, roles } = configuration;
    const mode = production ? 'production' : 'development (NODE_ENV is not production)';
    const advice = 'docs/reference/configuration.md lists all settings';
    const findings =
      warnings.length === 0
        ? [ok(check, `${mode}; roles ${roles.join(', ')}`)]
        : warnings.map((text) => warn(check, text, advice));
    return { configuration, findings };
  } catch (error) {
    if (!(error instanceof ConfigurationError)) throw error;
    const findings = [fault(check, error.message, 'correct it; the service does not start')];
    return { configuration: null, findings };
  }
}

/** Checks that the data directory exists and that only its owner can write it. */
export function checkFolder({ dataDirectory, eventStoreUrl }: StoreSettings): readonly Finding[] {
  const check = 'data directory';
  const file = fileBlockingFolder(dataDirectory);
  if (file !== null) {
    const what = `${dataDirectory} can't be made: ${file} is not a folder`;
    return [fault(check, what, 'SVC_DATA_DIR must name a folder')];
  }
  if (!existsSync(dataDirectory)) {
    const advice = 'the first start creates it; SVC_DATA_DIR names another';
    return [warn(check, `${dataDirectory} does not exist`, advice)];
  }
  if (!isAccessible(dataDirectory, constants.R_OK | constants.W_OK | constants.X_OK)) {
    return [fault(check, `this user can't write ${dataDirectory}`, OWNERSHIP)];
  }
  const findings: Finding[] = [];
  const { mode } = statSync(dataDirectory);
  if ((mode & 0o007) !== 0) {
    const what = `${dataDirectory} is open to other users (${octal(mode)})`;
    findings.push(warn(check, what, `chmod 700 ${dataDirectory}`));
  }
  const unwritable = readdirSync(dataDirectory)
    .filter((name) => /\.(sqlite|db)(-wal|-shm)?$/.test(name))
    .filter((name) => !isAccessible(join(dataDirectory, name), constants.W_OK));
  if (unwritable.length > 0) {
    findings.push(fault(check, `this user can't write ${unwritable.join(', ')}`, OWNERSHIP));
  }
  // The modes of files do not matter in a folder that others cannot enter.
  const isEnterable = (mode & 0o011) !== 0;
  const open = isEnterable
    ? filesOpenToOthers(dataDirectory).filter((name) => name !== KEY_FILE)
    : [];
  if (open.length > 0) {
    const what = `other users can open ${open.join(', ')}`;
    findings.push(warn(check, what, 'start the service, which closes them, or chmod 600'));
  }
  if (eventStoreUrl === undefined && !existsSync(logFile(dataDirectory))) {
    findings.push(warn(check, 'it has no log', 'the first start creates it'));
  }
  if (findings.length > 0) return findings;
  return [ok(check, `${resolve(dataDirectory)}, mode ${octal(mode)}`)];
}

/** Checks the key that signs tokens and webhooks. */
export function checkKey(
  { dataDirectory }: StoreSettings,
  configuration: Configuration | null,
): Finding {
  const check = 'key of tokens';
  if (configuration?.jwtSecretKey !== undefined) return ok(check, 'JWT_SECRET_KEY is set');
  const path = join(dataDirectory, KEY_FILE);
  try {
    const stat = statIfPresent(path);
    if (stat === undefined) {
      const advice = 'set JWT_SECRET_KEY if several machines serve one store';
      return warn(check, `there is none yet; a start generates ${path}`, advice);
    }
    const isKey = readFileSync(path, 'utf8').trim().length >= MIN_KEY_LENGTH;
    if ((stat.mode & 0o077) !== 0) {
      const what = `other users can read ${path} (${octal(stat.mode)})`;
      return fault(check, what, `chmod 600 ${path}`);
    }
    if (isKey) return ok(check, `${path}, mode 600`);
    const advice = 'restore it from a backup, or remove it, which changes all tokens and secrets';
    return fault(check, `${path} has no key`, advice);
  } catch {
    return fault(check, `this user can't read ${path}`, 'chown it to the user of the service');
  }
}

/** Checks the free space of the stores. */
export function checkDisk({ dataDirectory }: StoreSettings): Finding {
  const check = 'disk';
  const folder = existsSync(dataDirectory) ? dataDirectory : dirname(resolve(dataDirectory));
  if (!existsSync(folder)) return ok(check, 'no folder yet');
  const { bavail, blocks, bsize } = statfsSync(folder);
  const free = bavail * bsize;
  const space = `${bytes(free)} free of ${bytes(blocks * bsize)}`;
  if (free < MIN_FREE) {
    return fault(check, space, 'make room: nothing can be recorded on a full disk');
  }
  const log = statIfPresent(logFile(dataDirectory))?.size ?? 0;
  if (free >= log) return ok(check, space);
  const what = `the log has ${bytes(log)}, so there is no room for a backup or a rebuild`;
  return warn(check, `${space}; ${what}`, 'make room');
}

function isAccessible(path: string, mode: number): boolean {
  try {
    accessSync(path, mode);
    return true;
  } catch {
    return false;
  }
}

const octal = (mode: number): string => (mode & 0o777).toString(8).padStart(3, '0');
