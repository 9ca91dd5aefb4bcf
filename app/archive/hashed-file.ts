import { createHash, type Hash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { open, type FileHandle } from 'node:fs/promises';
import { join } from 'node:path';
import type { FileOfArchive } from './manifest.ts';

/** Characters buffered before a write, and bytes of a read. */
const CHUNK_SIZE = 256 * 1024;

const LINE_FEED = 0x0a;

/** Writes a text file in chunks and computes its SHA-256. */
export class HashedFile {
  readonly #name: string;
  readonly #file: FileHandle;
  readonly #hash: Hash | null;
  #buffer: string[] = [];
  #characters = 0;
  #bytes = 0;

  private constructor(name: string, file: FileHandle, hash: Hash | null) {
    this.#name = name;
    this.#file = file;
    this.#hash = hash;
  }

  /** @param isHashed whether to compute the SHA-256, which costs as much as writing */
  static async create(folder: string, name: string, isHashed = true): Promise<HashedFile> {
    const file = await open(join(folder, name), 'wx', 0o600);
    return new HashedFile(name, file, isHashed ? createHash('sha256') : null);
  }

  async write(text: string): Promise<void> {
    this.#buffer.push(text);
    this.#characters += text.length;
    if (this.#characters >= CHUNK_SIZE) await this.#flush();
  }

  /** Syncs, closes and describes the file; the SHA-256 is empty if it was not computed. */
  async finish(): Promise<FileOfArchive> {
    await this.#flush();
    await this.#file.sync();
    await this.#file.close();
    return { file: this.#name, bytes: this.#bytes, sha256: this.#hash?.digest('hex') ?? '' };
  }

  /** Closes the file as it is. */
  async abandon(): Promise<void> {
    await this.#file.close();
  }

  async #flush(): Promise<void> {
    const bytes = Buffer.from(this.#buffer.join(''), 'utf8');
    this.#buffer = [];
    this.#characters = 0;
    this.#hash?.update(bytes);
    this.#bytes += bytes.length;
    for (let at = 0; at < bytes.length;) {
      at += (await this.#file.write(bytes, at)).bytesWritten;
    }
  }
}

/**
 * The lines of a file, many at a time. Only a line feed ends a line; `node:readline` also splits at characters that JSON
 * strings can contain.
 */
export async function* linesOf(path: string): AsyncGenerator<readonly string[]> {
  let rest: Buffer[] = [];
  for await (const part of createReadStream(path, { highWaterMark: CHUNK_SIZE })) {
    const bytes = part as Buffer;
    const end = bytes.lastIndexOf(LINE_FEED);
    if (end < 0) {
      rest.push(bytes);
      continue;
    }
    const whole = Buffer.concat([...rest, bytes.subarray(0, end)]).toString('utf8');
    rest = [bytes.subarray(end + 1)];
    yield whole.split('\n');
  }
  const last = Buffer.concat(rest).toString('utf8');
  if (last !== '') yield [last];
}
