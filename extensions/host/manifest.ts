import { Type, type Static } from '@sinclair/typebox';
import { ownArgumentCheck } from '../../domain/pipeline/arguments.ts';
import { capabilities, type Capability } from '../contract.ts';

/** Name of the file that makes a folder an extension. */
export const MANIFEST_FILE = 'extension.json';

/** Ids that are not available: `/ext/status` is the status of all extensions. */
const RESERVED_IDS: ReadonlySet<string> = new Set([
  'status',
  // Properties that every object already has.
  ...Object.getOwnPropertyNames(Object.prototype),
]);

const nonEmptyString = (maxLength: number) => Type.String({ minLength: 1, maxLength });

const schema = Type.Object(
  {
    id: Type.String({ pattern: '^[a-z][a-z0-9_-]{0,39}$' }),
    name: nonEmptyString(100),
    version: nonEmptyString(50),
    description: Type.Optional(Type.String({ maxLength: 500 })),
    module: nonEmptyString(200),
    capabilities: Type.Optional(
      Type.Array(Type.Unsafe<Capability>({ type: 'string', enum: [...capabilities] }), {
        uniqueItems: true,
      }),
    ),
    enabled: Type.Optional(Type.Boolean()),
    eager: Type.Optional(Type.Boolean()),
  },
  { additionalProperties: false },
);

const check = ownArgumentCheck(schema);

/** The contents of `extension.json`. */
export interface Manifest {
  /** Unique. Part of its paths, its tools' names and its agent's name. */
  readonly id: string;
  readonly name: string;
  readonly version: string;
  readonly description: string;
  /** Path of the ES module in the folder. */
  readonly module: string;
  readonly capabilities: readonly Capability[];
  /** False: listed but not loaded. */
  readonly enabled: boolean;
  /** True: set up at start. False: at the first request. */
  readonly eager: boolean;
}

/** An unusable manifest. The message is for people and contains no paths. */
export class ManifestError extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'ManifestError';
  }
}

/** @throws ManifestError for invalid JSON */
export function parseManifest(text: string): unknown {
  try {
    // Some editors write a byte order mark.
    return JSON.parse(text.replace(/^\uFEFF/, ''));
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new ManifestError(`${MANIFEST_FILE} is not valid JSON: ${reason}`);
  }
}

/**
 * Validates a manifest and fills in defaults.
 * @throws ManifestError naming each invalid field
 */
export function readManifest(value: unknown): Manifest {
  const errors = check(value);
  if (errors.length > 0) {
    const issues = errors.map(({ path, issue }) => `${path.join('.') || 'manifest'} ${issue}`);
    throw new ManifestError(`${MANIFEST_FILE} is invalid: ${issues.join('; ')}`);
  }
  const given = value as Static<typeof schema>;
  if (RESERVED_IDS.has(given.id)) {
    throw new ManifestError(`${MANIFEST_FILE}: the id ${given.id} is reserved`);
  }
  if (given.module.startsWith('/') || given.module.split('/').includes('..')) {
    throw new ManifestError(`${MANIFEST_FILE}: module must be inside the folder`);
  }
  return { description: '', capabilities: [], enabled: true, eager: true, ...given };
}

/** Why a manifest cannot be used, for people. */
export function reasonOf(error: unknown): string {
  return error instanceof ManifestError
    ? error.message
    : `${MANIFEST_FILE} cannot be read: ${errorCodeOf(error)}`;
}

/** Error code of a failed file access; the message would contain the path. */
export function errorCodeOf(error: unknown): string {
  const code = (error as NodeJS.ErrnoException | null)?.code;
  return typeof code === 'string' ? code : 'unknown error';
}
