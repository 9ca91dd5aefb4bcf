import { createHash } from 'node:crypto';
import { createReadStream, existsSync, readFileSync, statSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { Type, type Static } from '@sinclair/typebox';
import { Ajv } from 'ajv';
import { logEngines } from '../../domain/log-transfer.ts';
import { ArchiveError } from './archive-error.ts';
import { ENCRYPTED } from './encrypted-name.ts';

const FILE = 'manifest.json';

/** The format of archives that this release writes and reads. */
export const FORMAT = 1;

const count = Type.Integer({ minimum: 0 });
const digest = Type.String({ pattern: '^[0-9a-f]{64}$' });

/** A name without a path: the files of an archive are in its folder. */
const fileName = Type.String({ pattern: '^(?!\\.{1,2}$)[^/\\\\]+$' });

const ArchivedFile = Type.Object({ file: fileName, bytes: count, sha256: digest });

const common = {
  format: Type.Literal(FORMAT),
  /** Id of the archive. */
  id: Type.String(),
  made_at: Type.String(),
  /** The version that made it. */
  release: Type.String(),
  engine: Type.Union(logEngines.map((engine) => Type.Literal(engine))),
  events: count,
  /** The first and last position in the source log; empty for an empty log. */
  first_position: Type.String(),
  last_position: Type.String(),
  /** Key files of the data directory: the signing key and the first admin's secret. */
  keys: Type.Array(ArchivedFile),
};

const ManifestSchema = Type.Union([
  /** The embedded log as an SQLite file. */
  Type.Object({ ...common, kind: Type.Literal('copy'), log: ArchivedFile }),
  /** Events as lines of JSON. */
  Type.Object({
    ...common,
    kind: Type.Literal('events'),
    log: ArchivedFile,
    /** Truncated streams with their first revision. */
    truncations: Type.Intersect([ArchivedFile, Type.Object({ streams: count })]),
    /** Hash of the events without positions and the engine's times. */
    content_sha256: digest,
  }),
]);

/** The description of an archive: an export or a backup. */
export type Manifest = Static<typeof ManifestSchema>;
export type CopyManifest = Extract<Manifest, { kind: 'copy' }>;
export type EventsManifest = Extract<Manifest, { kind: 'events' }>;
export type FileOfArchive = Static<typeof ArchivedFile>;

// See the codec of the events for the options.
const isManifest = new Ajv({
  strict: false,
  meta: false,
  validateSchema: false,
  code: { optimize: false },
}).compile<Manifest>(ManifestSchema);

/** Writes and syncs the manifest. */
export async function writeManifest(folder: string, manifest: Manifest): Promise<void> {
  const text = `${JSON.stringify(manifest, null, 2)}\n`;
  await writeFile(join(folder, FILE), text, { mode: 0o600, flush: true });
}

/** The manifest's file in an encrypted archive. */
export const encryptedManifest = (folder: string): string => join(folder, `${FILE}${ENCRYPTED}`);

/**
 * Reads the manifest of an archive.
 * @throws ArchiveError `invalid` if it is encrypted; `damaged` if the folder is not an archive, or one of a newer release
 */
export function readManifest(folder: string): Manifest {
  const path = join(folder, FILE);
  if (!existsSync(path) && existsSync(encryptedManifest(folder))) {
    const advice = 'restore it with svc restore --identity <file>, the file with its key';
    throw new ArchiveError('invalid', `${folder} is encrypted: ${advice}`);
  }
  let manifest: unknown;
  try {
    manifest = JSON.parse(readFileSync(path, 'utf8'));
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw new ArchiveError('damaged', `${folder} is not an export or backup: ${why}`, error);
  }
  if (isManifest(manifest)) return manifest;
  const found = (manifest as { readonly format?: unknown } | null)?.format;
  const isNewer = typeof found === 'number' && found > FORMAT;
  const why = isNewer ? `has the format ${found} of a newer release` : 'is not a manifest';
  throw new ArchiveError('damaged', `${path} ${why}`);
}

/** The size and SHA-256 of a file. */
export async function describeFile(folder: string, file: string): Promise<FileOfArchive> {
  const path = join(folder, file);
  const hash = createHash('sha256');
  await pipeline(createReadStream(path, { highWaterMark: 1024 * 1024 }), hash);
  return { file, bytes: statSync(path).size, sha256: hash.digest('hex') };
}

/** Checks a file against the manifest. @throws ArchiveError `damaged` */
export async function checkFile(folder: string, expected: FileOfArchive): Promise<void> {
  let found: FileOfArchive;
  try {
    found = await describeFile(folder, expected.file);
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw new ArchiveError('damaged', `${folder} is incomplete: ${why}`, error);
  }
  if (found.sha256 === expected.sha256) return;
  const sizes = `${found.bytes} bytes, not ${expected.bytes}`;
  const what = found.bytes === expected.bytes ? 'another SHA-256' : sizes;
  throw new ArchiveError('damaged', `${join(folder, expected.file)} is damaged: it has ${what}`);
}
