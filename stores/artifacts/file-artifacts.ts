import { randomBytes } from 'node:crypto';
import { constants, type Dirent } from 'node:fs';
import {
  access,
  copyFile,
  link,
  open,
  readdir,
  rename,
  rm,
  rmdir,
  stat,
  type FileHandle,
} from 'node:fs/promises';
import { join } from 'node:path';
import { isArtifactName } from '../../domain/artifacts/artifact.ts';
import {
  ArtifactError,
  type ArtifactStore,
  type OpenArtifact,
  type StoredArtifact,
} from '../../domain/artifacts/artifact-store.ts';
import { isUuid } from '../../domain/ids.ts';
import { makeFolder } from '../folder.ts';

/** The folder of the artifacts in the data directory. It has a folder for each run. */
export const ARTIFACTS_FOLDER = 'artifacts';

/** The folder for files that are still being written. */
const UNFINISHED = '.unfinished';
const SUFFIX = '.json';

/** Unfinished files older than this were left by killed processes. Milliseconds. */
const MAX_WRITING = 86_400_000;

/** How often a folder is created again after another process has removed it as empty. */
const MAX_REMADE = 5;

const CHUNK_BYTES = 256 * 1024;
const PAGE = 500;

/** Error codes of a file system without hard links, or with too many links to one file. */
const noLinks = new Set(['EPERM', 'ENOTSUP', 'EOPNOTSUPP', 'EMLINK', 'ENOSYS', 'EXDEV']);

/** Error codes if a run's folder cannot be removed: it holds other artifacts, or no longer exists. */
const leftFolder = new Set(['ENOTEMPTY', 'EEXIST', 'ENOENT']);

/** Artifacts as files in the data directory, for all processes that share it. */
export class FileArtifacts implements ArtifactStore {
  readonly #dataDirectory: string;
  readonly #root: string;
  #prepared: Promise<void> | null = null;

  /** Opens the store without creating anything. */
  constructor(dataDirectory: string) {
    this.#dataDirectory = dataDirectory;
    this.#root = join(dataDirectory, ARTIFACTS_FOLDER);
  }

  async put(runId: string, artifact: string, content: Uint8Array): Promise<void> {
    const target = this.#pathOf(runId, artifact);
    await this.#attempt('write', async () => {
      await this.#place(runId, async (unfinished) => {
        await writeSynced(unfinished, content);
        return target;
      });
    });
  }

  async open(runId: string, artifact: string): Promise<OpenArtifact | null> {
    const path = this.#pathOf(runId, artifact);
    return this.#attempt('read', async () => {
      const file = await ifPresent(open(path, 'r'));
      if (file === null) return null;
      const { size } = await file.stat();
      return openFile(file, size);
    });
  }

  async copy(artifact: string, from: string, to: string): Promise<boolean> {
    const [source, target] = [this.#pathOf(from, artifact), this.#pathOf(to, artifact)];
    return this.#attempt('copy', async () => {
      if ((await ifPresent(stat(source))) === null) return false;
      await this.#place(to, async (unfinished) => {
        try {
          await link(source, unfinished);
        } catch (error) {
          if (!noLinks.has(codeOf(error))) throw error;
          await copyFile(source, unfinished);
          await sync(unfinished, 'r+');
        }
        return target;
      });
      return true;
    });
  }

  async remove(runId: string, artifact: string): Promise<void> {
    const path = this.#pathOf(runId, artifact);
    await this.#attempt('remove', async () => {
      await rm(path, { force: true });
      try {
        await rmdir(join(this.#root, runId));
      } catch (error) {
        if (!leftFolder.has(codeOf(error))) throw error;
      }
    });
  }

  async *list(): AsyncGenerator<readonly StoredArtifact[]> {
    let page: StoredArtifact[] = [];
    for (const { name: runId } of await this.#entries(this.#root)) {
      if (!isUuid(runId)) continue;
      for (const { name } of await this.#entries(join(this.#root, runId))) {
        const artifact = name.endsWith(SUFFIX) ? name.slice(0, -SUFFIX.length) : '';
        if (!isArtifactName(artifact)) continue;
        const found = await ifPresent(stat(join(this.#root, runId, name)));
        if (found !== null) page.push({ runId, artifact, modifiedAt: found.mtimeMs });
      }
      if (page.length < PAGE) continue;
      yield page;
      page = [];
    }
    if (page.length > 0) yield page;
  }

  async check(): Promise<void> {
    await this.#attempt('use', async () => {
      const mode = constants.R_OK | constants.W_OK | constants.X_OK;
      // The folder does not exist yet; the first artifact creates it.
      const found = await ifPresent(stat(this.#root));
      if (found?.isDirectory() === false) throw Object.assign(new Error(), { code: 'ENOTDIR' });
      await access(found === null ? this.#dataDirectory : this.#root, mode);
    });
  }

  async close(): Promise<void> {}

  /** Writes a file under another name, then moves it to its path. @param fill @returns the final path */
  async #place(runId: string, fill: (unfinished: string) => Promise<string>): Promise<void> {
    await (this.#prepared ??= this.#prepare().catch((error: unknown) => {
      this.#prepared = null;
      throw error;
    }));
    const folder = join(this.#root, runId);
    const unfinished = join(this.#root, UNFINISHED, randomBytes(12).toString('hex'));
    try {
      const target = await fill(unfinished);
      for (let remade = 0; ; remade += 1) {
        makeFolder(folder);
        try {
          await rename(unfinished, target);
          // If both names are hard links to the same file, renaming leaves the old name.
          await rm(unfinished, { force: true });
          await sync(folder, 'r');
          break;
        } catch (error) {
          if (codeOf(error) !== 'ENOENT' || remade === MAX_REMADE) throw error;
        }
      }
      await sync(this.#root, 'r');
    } catch (error) {
      await rm(unfinished, { force: true }).catch(() => {});
      throw error;
    }
  }

  async #prepare(): Promise<void> {
    const folder = join(this.#root, UNFINISHED);
    makeFolder(folder);
    await sync(this.#dataDirectory, 'r');
    for (const { name } of await this.#entries(folder)) {
      const path = join(folder, name);
      const found = await ifPresent(stat(path));
      if (found !== null && Date.now() - found.mtimeMs > MAX_WRITING)
        await rm(path, { force: true });
    }
  }

  async #entries(folder: string): Promise<readonly Dirent[]> {
    return this.#attempt(
      'list',
      async () => (await ifPresent(readdir(folder, { withFileTypes: true }))) ?? [],
    );
  }

  /** @throws RangeError for a name that could lead out of the folder */
  #pathOf(runId: string, artifact: string): string {
    if (!isUuid(runId) || !isArtifactName(artifact)) {
      throw new RangeError('an artifact is named by the id of its run and a SHA-256');
    }
    return join(this.#root, runId, artifact + SUFFIX);
  }

  /** The message contains no path, as clients receive it. */
  async #attempt<T>(verb: string, work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      if (error instanceof ArtifactError) throw error;
      throw unavailable(verb, error);
    }
  }
}

const remedies: Readonly<Record<string, string>> = {
  ENOSPC: 'make room on the disk of the data directory',
  EDQUOT: 'raise the quota of the user of the service',
  EACCES: 'chown the folder artifacts in the data directory to the user of the service',
  EPERM: 'chown the folder artifacts in the data directory to the user of the service',
  ENOTDIR: 'remove the file artifacts in the data directory',
  EROFS: 'mount the data directory writable',
  EMFILE: 'raise the limit of open files (ulimit -n)',
};

function unavailable(verb: string, error: unknown): ArtifactError {
  const code = codeOf(error);
  const remedy = remedies[code] ?? 'check the disk of the data directory';
  const problem = `could not ${verb} artifacts in the data directory (${code})`;
  return new ArtifactError('UNAVAILABLE', problem, remedy, error);
}

const codeOf = (error: unknown): string =>
  (error as NodeJS.ErrnoException).code ?? (error instanceof Error ? error.message : String(error));

function openFile(file: FileHandle, size: number): OpenArtifact {
  const stream = file.createReadStream({ highWaterMark: CHUNK_BYTES });
  return {
    sizeBytes: size,
    chunks: chunksOf(stream),
    close: () => void stream.destroy(),
  };
}

async function* chunksOf(stream: AsyncIterable<unknown>): AsyncGenerator<Uint8Array> {
  try {
    for await (const chunk of stream) yield chunk as Uint8Array;
  } catch (error) {
    throw unavailable('read', error);
  }
}

async function writeSynced(path: string, content: Uint8Array): Promise<void> {
  const file = await open(path, 'wx', 0o600);
  try {
    await file.writeFile(content);
    await file.sync();
  } finally {
    await file.close();
  }
}

/** Makes a file's content, or the names in a folder, survive a power failure. */
async function sync(path: string, flags: 'r' | 'r+'): Promise<void> {
  const file = await open(path, flags);
  try {
    await file.sync();
  } finally {
    await file.close();
  }
}

/** null if the file does not exist. */
async function ifPresent<T>(work: Promise<T>): Promise<T | null> {
  try {
    return await work;
  } catch (error) {
    if (['ENOENT', 'ENOTDIR'].includes(codeOf(error))) return null;
    throw error;
  }
}
