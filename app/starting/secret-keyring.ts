import { randomBytes } from 'node:crypto';
import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Log } from '../../observability/telemetry.ts';
import { makeFolder } from '../../stores/folder.ts';
import type { SecretKeys } from '../../stores/secrets/key-cipher.ts';
import { parseKey } from '../configuration/secret-settings.ts';
import { moveIfAbsent } from '../move-if-absent.ts';

/** The prefix of generated keys' file names, such as `secrets-1.key`. */
export const SECRET_KEY_PREFIX = 'secrets-';
const keyFile = /^secrets-(\d{1,6})\.key$/;

/** Whether a file of the data directory is a generated key for secrets. */
export const isSecretKeyFile = (name: string): boolean => keyFile.test(name);

/**
 * The keys that encrypt secrets: those of `SVC_SECRETS_KEY`, or generated ones in the data directory. Each generated
 * key has its own file, which is created atomically and never changed or removed. If two processes add a key at once,
 * the second takes the key of the first.
 */
export class SecretKeyring implements SecretKeys {
  readonly #directory: string;
  readonly #given: () => readonly Buffer[] | undefined;
  readonly #log: Log;
  #keys: readonly Buffer[] | null = null;

  /** @param options.given reads `SVC_SECRETS_KEY`; undefined if it is not set */
  constructor(options: {
    readonly directory: string;
    readonly given: () => readonly Buffer[] | undefined;
    readonly log: Log;
  }) {
    this.#directory = options.directory;
    this.#given = options.given;
    this.#log = options.log;
  }

  get known(): readonly Buffer[] {
    return (this.#keys ??= this.#read());
  }

  present(): Buffer {
    this.refresh();
    const [key] = this.known;
    return key ?? this.#generate();
  }

  refresh(): void {
    this.#keys = this.#read();
  }

  /**
   * Generates a new key, which from now on encrypts.
   * @returns false if the keys come from `SVC_SECRETS_KEY`: there, an operator adds them
   */
  rotate(): boolean {
    if (this.#given() !== undefined) {
      this.refresh();
      return false;
    }
    this.#generate();
    return true;
  }

  #read(): readonly Buffer[] {
    return this.#given() ?? numbersIn(this.#directory).map((number) => this.#readFile(number));
  }

  /**
   * @throws Error for a file without a valid key. It must not be replaced, because values encrypted with the original
   *   would be lost
   */
  #readFile(number: number): Buffer {
    const path = this.#pathOf(number);
    const key = parseKey(readFileSync(path, 'utf8').trim());
    if (key !== null) return key;
    throw new Error(`${path} has no key of 32 bytes in Base64; restore it from a backup`);
  }

  #pathOf(number: number): string {
    return join(this.#directory, `${SECRET_KEY_PREFIX}${number}.key`);
  }

  /** Adds the next key, or takes over the one that another process has just added. */
  #generate(): Buffer {
    makeFolder(this.#directory);
    const number = (numbersIn(this.#directory)[0] ?? 0) + 1;
    const path = this.#pathOf(number);
    // Random, because processes in containers that share a volume can have the same process id.
    const draft = `${path}.${randomBytes(6).toString('hex')}`;
    writeFileSync(draft, randomBytes(32).toString('base64'), { mode: 0o600, flush: true });
    try {
      moveIfAbsent(draft, path);
      this.#log.info('generated a key for secrets, SVC_SECRETS_KEY is not set', { file: path });
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
    } finally {
      rmSync(draft, { force: true });
    }
    this.refresh();
    return this.#readFile(number);
  }
}

/** The numbers of the generated keys, the newest first. */
function numbersIn(directory: string): readonly number[] {
  let names: readonly string[];
  try {
    names = readdirSync(directory);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return [];
    throw error;
  }
  return names
    .flatMap((name) => keyFile.exec(name)?.[1] ?? [])
    .map(Number)
    .sort((one, other) => other - one);
}
