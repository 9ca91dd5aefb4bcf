import { createHash } from 'node:crypto';
import { createReadStream, readFileSync, statSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { Type, type Static } from '@sinclair/typebox';
import { Ajv } from 'ajv';
import { logEngines } from '../../domain/log-transfer.ts';
import { ArchiveFault } from './archive-fault.ts';

const FILE = 'manifest.json';

/** The shape of archives that this release writes and reads. */
const FORMAT = 1;

const count = Type.Integer({ minimum: 0 });
const digest = Type.String({ pattern: '^[0-9a-f]{64}$' });

/** A plain name: what an archive speaks of lies in its own folder, and its copy in that of the restored log. */
const fileName = Type.String({ pattern: '^(?!\\.{1,2}$)[^/\\\\]+$' });

const ArchivedFile = Type.Object({ file: fileName, bytes: count, sha256: digest });

const common = {
  format: Type.Literal(FORMAT),
  /** Of this archive. */
  id: Type.String(),
  made_at: Type.String(),
  /** Version of the release that made it. */
  release: Type.String(),
  engine: Type.Union(logEngines.map((engine) => Type.Literal(engine))),
  events: count,
  /** Of the first and the last event, in the log that they come from; empty where there is none. */
  first_position: Type.String(),
  last_position: Type.String(),
  /** Files that the log's data directory had beside it: the key of the tokens, the first admin's secret. */
  keys: Type.Array(ArchivedFile),
};

const ManifestSchema = Type.Union([
  /** The embedded log itself, as a file of SQLite. */
  Type.Object({ ...common, kind: Type.Literal('copy'), log: ArchivedFile }),
  /** Events as lines of JSON. */
  Type.Object({
    ...common,
    kind: Type.Literal('events'),
    log: ArchivedFile,
    /** Streams that were cut off, and from which revision on they count. */
    truncations: Type.Intersect([ArchivedFile, Type.Object({ streams: count })]),
    /** Over what moves with the events: not positions, nor the engine's own times. */
    content_sha256: digest,
  }),
]);

/** What an archive (an export or a backup) says of itself. */
export type Manifest = Static<typeof ManifestSchema>;
export type CopyManifest = Extract<Manifest, { kind: 'copy' }>;
export type EventsManifest = Extract<Manifest, { kind: 'events' }>;
export type FileOfArchive = Static<typeof ArchivedFile>;

const isManifest = new Ajv({ strict: false }).compile<Manifest>(ManifestSchema);

/** The shape that manifests made by this release have. */
export const format: Manifest['format'] = FORMAT;

/** Writes the manifest, durably: an archive without one is none. */
export async function writeManifest(folder: string, manifest: Manifest): Promise<void> {
  const text = `${JSON.stringify(manifest, null, 2)}\n`;
  await writeFile(join(folder, FILE), text, { mode: 0o600, flush: true });
}

/**
 * Reads what an archive says of itself.
 * @throws ArchiveFault `damaged` where the folder is no archive, or one of a newer release
 */
export function readManifest(folder: string): Manifest {
  const path = join(folder, FILE);
  let manifest: unknown;
  try {
    manifest = JSON.parse(readFileSync(path, 'utf8'));
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw new ArchiveFault('damaged', `${folder} is no export and no backup: ${why}`, error);
  }
  if (isManifest(manifest)) return manifest;
  const found = (manifest as { readonly format?: unknown } | null)?.format;
  const newer = typeof found === 'number' && found > FORMAT;
  const why = newer ? `has the format ${found}, of a newer release` : 'is no manifest';
  throw new ArchiveFault('damaged', `${path} ${why}`);
}

/** The size and SHA-256 of a file in a folder. */
export async function describeFile(folder: string, file: string): Promise<FileOfArchive> {
  const path = join(folder, file);
  const hash = createHash('sha256');
  await pipeline(createReadStream(path, { highWaterMark: 1024 * 1024 }), hash);
  return { file, bytes: statSync(path).size, sha256: hash.digest('hex') };
}

/**
 * Looks whether a file is the one that the manifest speaks of.
 * @throws ArchiveFault `damaged`
 */
export async function checkFile(folder: string, expected: FileOfArchive): Promise<void> {
  let found: FileOfArchive;
  try {
    found = await describeFile(folder, expected.file);
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw new ArchiveFault('damaged', `${folder} is not whole: ${why}`, error);
  }
  if (found.sha256 === expected.sha256) return;
  const sizes = `${found.bytes} bytes, and not ${expected.bytes}`;
  const what = found.bytes === expected.bytes ? 'another SHA-256' : sizes;
  throw new ArchiveFault('damaged', `${join(folder, expected.file)} is damaged: it has ${what}`);
}
