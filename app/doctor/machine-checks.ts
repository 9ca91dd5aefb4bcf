import {
  accessSync,
  constants,
  existsSync,
  readFileSync,
  readdirSync,
  statSync,
  statfsSync,
} from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { logFile } from '../../stores/sqlite/event-log/schema.ts';
import { readConfiguration, type Configuration } from '../configuration/configuration.ts';
import { KEY_FILE } from '../starting/keys.ts';
import { filesOpenToOthers } from '../starting/private-files.ts';
import { ConfigurationError, type Environment } from '../configuration/setting-readers.ts';
import type { StoreSettings } from '../stores.ts';
import { fault, ok, warn, type Finding } from './finding.ts';
import { fileInPlaceOf, statIfPresent } from '../../stores/folder.ts';

const MEBIBYTE = 1024 ** 2;

/** Free space below which writing fails soon. Bytes. */
const LEAST_FREE = 100 * MEBIBYTE;

/** Bytes of a key that tokens may be signed with. */
const KEY_BYTES = 32;

/** Looks at the settings as a service would read them. @returns them, null where they can't be read */
export function checkSettings(env: Environment): {
  readonly configuration: Configuration | null;
  readonly findings: readonly Finding[];
} {
  try {
    const configuration = readConfiguration(env);
    const { warnings, production, roles } = configuration;
    const findings = warnings.map((text) =>
      warn('settings', text, 'docs/reference/configuration.md has all'),
    );
    if (findings.length > 0) return { configuration, findings };
    const mode = production ? 'production' : 'development (NODE_ENV is not production)';
    return { configuration, findings: [ok('settings', `${mode}; roles ${roles.join(', ')}`)] };
  } catch (error) {
    if (!(error instanceof ConfigurationError)) throw error;
    const findings = [
      fault('settings', error.message, 'set it right: a service does not start so'),
    ];
    return { configuration: null, findings };
  }
}

/** Looks at the data directory: whether it is there, may be written, and by nobody else. */
export function checkFolder({ dataDirectory, eventStoreUrl }: StoreSettings): readonly Finding[] {
  const file = fileInPlaceOf(dataDirectory);
  if (file !== null) {
    const what = `${dataDirectory} can't be made: ${file} is not a folder`;
    return [fault('data directory', what, 'SVC_DATA_DIR must name a folder')];
  }
  if (!existsSync(dataDirectory)) {
    const makes = 'a first start makes it; SVC_DATA_DIR names another';
    return [warn('data directory', `${dataDirectory} is not there`, makes)];
  }
  const own = `chown it to whom the service runs as, and chmod 700`;
  try {
    accessSync(dataDirectory, constants.R_OK | constants.W_OK | constants.X_OK);
  } catch {
    return [fault('data directory', `${dataDirectory} can't be written by this user`, own)];
  }
  const findings: Finding[] = [];
  const { mode } = statSync(dataDirectory);
  if ((mode & 0o007) !== 0) {
    const what = `${dataDirectory} is open to others (${octal(mode)})`;
    findings.push(warn('data directory', what, `chmod 700 ${dataDirectory}`));
  }
  const strange = readdirSync(dataDirectory)
    .filter((name) => /\.(sqlite|db)(-wal|-shm)?$/.test(name))
    .filter((name) => !isWritable(join(dataDirectory, name)));
  if (strange.length > 0) {
    const what = `${strange.join(', ')} can't be written by this user`;
    findings.push(fault('data directory', what, own));
  }
  // Where nobody else may enter the folder, the modes of its files matter to nobody.
  const mayEnter = (mode & 0o011) !== 0;
  const open = mayEnter ? filesOpenToOthers(dataDirectory).filter((name) => name !== KEY_FILE) : [];
  if (open.length > 0) {
    const what = `other users may open ${open.join(', ')}`;
    findings.push(warn('data directory', what, 'a start closes them, or chmod 600 by hand'));
  }
  if (eventStoreUrl === undefined && !existsSync(logFile(dataDirectory))) {
    findings.push(warn('data directory', 'it holds no log', 'a first start makes it'));
  }
  if (findings.length > 0) return findings;
  return [ok('data directory', `${resolve(dataDirectory)}, mode ${octal(mode)}`)];
}

/** Looks at the key that tokens and webhooks are signed with. */
export function checkKey(
  { dataDirectory }: StoreSettings,
  configuration: Configuration | null,
): Finding {
  const check = 'key of tokens';
  if (configuration?.jwtSecretKey !== undefined) return ok(check, 'JWT_SECRET_KEY is set');
  const path = join(dataDirectory, KEY_FILE);
  let stat: ReturnType<typeof statIfPresent>;
  let isKey: boolean;
  try {
    stat = statIfPresent(path);
    isKey = stat !== undefined && readFileSync(path, 'utf8').trim().length >= KEY_BYTES;
  } catch {
    const advice = 'chown it to whom the service runs as';
    return fault(check, `${path} can't be read by this user`, advice);
  }
  if (stat === undefined) {
    const several = 'set JWT_SECRET_KEY where several machines serve one store';
    return warn(check, `there is none yet: a start makes ${path}`, several);
  }
  if ((stat.mode & 0o077) !== 0) {
    return fault(check, `${path} may be read by others (${octal(stat.mode)})`, `chmod 600 ${path}`);
  }
  if (isKey) return ok(check, `${path}, mode 600`);
  const again =
    'put the one of a backup back, or remove it: all tokens and webhook secrets change then';
  return fault(check, `${path} holds no key`, again);
}

/** Looks how much room there is where the stores are. */
export function checkDisk({ dataDirectory }: StoreSettings): Finding {
  const check = 'disk';
  const folder = existsSync(dataDirectory) ? dataDirectory : dirname(resolve(dataDirectory));
  if (!existsSync(folder)) return ok(check, 'nothing is there yet');
  const { bavail, blocks, bsize } = statfsSync(folder);
  const [free, size] = [bavail * bsize, blocks * bsize];
  const said = `${mebibytes(free)} free of ${mebibytes(size)}`;
  if (free < LEAST_FREE) {
    return fault(check, said, 'make room: nothing can be recorded on a full disk');
  }
  const log = statIfPresent(logFile(dataDirectory))?.size ?? 0;
  if (free < log) {
    const why = `the log has ${mebibytes(log)}: there is no room for a backup or a rebuild beside it`;
    return warn(check, `${said}; ${why}`, 'make room');
  }
  return ok(check, said);
}

function isWritable(path: string): boolean {
  try {
    accessSync(path, constants.W_OK);
    return true;
  } catch {
    return false;
  }
}

const octal = (mode: number): string => (mode & 0o777).toString(8).padStart(3, '0');

const mebibytes = (bytes: number): string => {
  const count = bytes / MEBIBYTE;
  return count < 10_240
    ? `${Math.round(count).toLocaleString('en')} MiB`
    : `${Math.round(count / 1024).toLocaleString('en')} GiB`;
};
