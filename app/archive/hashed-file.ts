import { createHash, type Hash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { open, type FileHandle } from 'node:fs/promises';
import { join } from 'node:path';
import type { FileOfArchive } from './manifest.ts';

/** Characters that are gathered before they are written. */
const CHUNK = 256 * 1024;

const LINE_FEED = 0x0a;

/** Writes a file of text, with its SHA-256 where it is wanted; a bounded part of it is in memory. */
export class HashedFile {
  readonly #name: string;
  readonly #file: FileHandle;
  readonly #hash: Hash | null;
  #waiting: string[] = [];
  #characters = 0;
  #bytes = 0;

  private constructor(name: string, file: FileHandle, hash: Hash | null) {
    this.#name = name;
    this.#file = file;
    this.#hash = hash;
  }

  /** @param hashed whether anybody will ask for its SHA-256, which costs as much as writing it */
  static async create(folder: string, name: string, hashed = true): Promise<HashedFile> {
    const file = await open(join(folder, name), 'wx', 0o600);
    return new HashedFile(name, file, hashed ? createHash('sha256') : null);
  }

  async write(text: string): Promise<void> {
    this.#waiting.push(text);
    this.#characters += text.length;
    if (this.#characters >= CHUNK) await this.#flush();
  }

  /** Makes it durable, closes it, and says what it is; the SHA-256 is empty where it was not wanted. */
  async finish(): Promise<FileOfArchive> {
    await this.#flush();
    await this.#file.sync();
    await this.#file.close();
    return { file: this.#name, bytes: this.#bytes, sha256: this.#hash?.digest('hex') ?? '' };
  }

  /** Closes it as it is. */
  async abandon(): Promise<void> {
    await this.#file.close();
  }

  async #flush(): Promise<void> {
    const bytes = Buffer.from(this.#waiting.join(''), 'utf8');
    this.#waiting = [];
    this.#characters = 0;
    this.#hash?.update(bytes);
    this.#bytes += bytes.length;
    for (let at = 0; at < bytes.length;) {
      at += (await this.#file.write(bytes, at)).bytesWritten;
    }
  }
}

/**
 * The lines of a file, many at a time. Only a line feed ends one: `node:readline` also takes characters for line ends
 * that texts of JSON may hold.
 */
export async function* linesOf(path: string): AsyncGenerator<readonly string[]> {
  let rest: Buffer[] = [];
  for await (const part of createReadStream(path, { highWaterMark: CHUNK })) {
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
