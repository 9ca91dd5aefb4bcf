import { createWriteStream, readFileSync, statSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { Decrypter, Encrypter } from 'age-encryption';
import { ArchiveError } from './archive-error.ts';
import { syncFile } from './durable-folder.ts';

/** Bytes per read. */
const CHUNK_SIZE = 256 * 1024;

/** The library's message for a file that was encrypted for others. It has no error class for this. */
const NO_MATCH = "no identity matched any of the file's recipients";

/**
 * Encrypts files for recipients, in the format of age (https://age-encryption.org/v1). Anyone with the identity of one
 * recipient can decrypt them; this process cannot.
 */
export class FileEncrypter {
  readonly #encrypter = new Encrypter();

  /**
   * @param recipients public keys, such as `age1…`
   * @throws ArchiveError `invalid`
   */
  constructor(recipients: readonly string[]) {
    for (const recipient of recipients) {
      try {
        this.#encrypter.addRecipient(recipient.trim());
      } catch (error) {
        const wanted = 'it must be a public key of age, such as age1…';
        throw new ArchiveError('invalid', `--recipient is ${quoted(recipient)}; ${wanted}`, error);
      }
    }
  }

  /** Encrypts a file into a new, synced one; memory does not grow with its size. */
  async encrypt(from: string, to: string, signal: AbortSignal): Promise<void> {
    const encrypted = await this.#encrypter.encrypt(await webStreamOf(from));
    const written = createWriteStream(to, { flags: 'wx', mode: 0o600 });
    await pipeline(Readable.fromWeb(encrypted), written, { signal });
    await syncFile(to);
  }
}

/** Decrypts files of age with identities. */
export class FileDecrypter {
  readonly #decrypter = new Decrypter();
  readonly #file: string;

  /**
   * @param file lines with secret keys, as `age-keygen` writes them
   * @throws ArchiveError `invalid` if it cannot be read or has none
   */
  constructor(file: string) {
    this.#file = file;
    const lines = readIdentities(file)
      .split(/\r?\n/)
      .map((line) => line.trim())
      .filter((line) => line !== '' && !line.startsWith('#'));
    const wanted = 'it must have lines such as AGE-SECRET-KEY-1…, as age-keygen writes them';
    if (lines.length === 0) throw new ArchiveError('invalid', `${file} has no identity; ${wanted}`);
    lines.forEach((line, index) => {
      try {
        this.#decrypter.addIdentity(line);
      } catch {
        // Neither the line nor the cause is shown, as they are secret.
        const fault = `key ${index + 1} of ${file} is not an identity`;
        throw new ArchiveError('invalid', `${fault}; ${wanted}`);
      }
    });
  }

  /**
   * Decrypts a file into a new, synced one. If this fails, the caller must delete the partial file.
   * @throws ArchiveError `failed` if no identity fits, `damaged` for a file that is incomplete or was altered
   */
  async decrypt(from: string, to: string, signal: AbortSignal): Promise<void> {
    const decrypted = await this.#explaining(from, async () =>
      this.#decrypter.decrypt(await webStreamOf(from)),
    );
    const written = createWriteStream(to, { flags: 'wx', mode: 0o600 });
    await this.#explaining(from, () => pipeline(Readable.fromWeb(decrypted), written, { signal }));
    await syncFile(to);
  }

  /** Checks that an identity fits a file. @throws ArchiveError as {@link decrypt} */
  async check(file: string): Promise<void> {
    const decrypted = await this.#explaining(file, async () =>
      this.#decrypter.decrypt(await webStreamOf(file)),
    );
    await decrypted.cancel();
  }

  async #explaining<T>(file: string, work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      if (!(error instanceof Error) || error.name === 'AbortError') throw error;
      if (error.message === NO_MATCH) {
        const what = `${file} is encrypted for others: no key in ${this.#file} decrypts it`;
        throw new ArchiveError('failed', what, error);
      }
      // File system errors already name the remedy.
      if ('code' in error && typeof error.code === 'string' && /^E[A-Z]+$/.test(error.code)) {
        throw error;
      }
      const what = `${file} is damaged: it is incomplete or was altered (${error.message})`;
      throw new ArchiveError('damaged', what, error);
    }
  }
}

/** Opened here, so that the caller's `await` throws if the file is missing. */
async function webStreamOf(path: string) {
  const file = await open(path);
  return Readable.toWeb(file.createReadStream({ highWaterMark: CHUNK_SIZE }));
}

function readIdentities(file: string): string {
  try {
    if (statSync(file).size > 1024 ** 2) throw new Error('it is too large');
    return readFileSync(file, 'utf8');
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw new ArchiveError(
      'invalid',
      `--identity names ${quoted(file)}, which cannot be read: ${why}`,
    );
  }
}

const quoted = (text: string): string => JSON.stringify(text.slice(0, 80));
