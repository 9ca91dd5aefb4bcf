import { Type, type Static } from '@sinclair/typebox';
import { argumentCheck } from '../../domain/pipeline/arguments.ts';
import { capabilities, type Capability } from '../contract.ts';

/** The name of the file that makes a folder an extension. */
export const MANIFEST = 'extension.json';

/** Words that stand for something else at `/ext/<id>`. */
const taken: ReadonlySet<string> = new Set([
  'status',
  // Where something is kept by id, every object has these already.
  ...Object.getOwnPropertyNames(Object.prototype),
]);

const line = (longest: number) => Type.String({ minLength: 1, maxLength: longest });

const schema = Type.Object(
  {
    id: Type.String({ pattern: '^[a-z][a-z0-9_-]{0,39}$' }),
    name: line(100),
    version: line(50),
    description: Type.Optional(Type.String({ maxLength: 500 })),
    module: line(200),
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

const check = argumentCheck(schema);

/** What an extension says of itself. */
export interface Manifest {
  /** Unique; a part of its paths, of its tools' names and of its agent's name. */
  readonly id: string;
  readonly name: string;
  readonly version: string;
  readonly description: string;
  /** The ES module, within the folder. */
  readonly module: string;
  readonly capabilities: readonly Capability[];
  /** False: it is listed and not loaded. */
  readonly enabled: boolean;
  /** True: set up at start; false: at the first request. */
  readonly eager: boolean;
}

/** A manifest that can't be used. The message is for people, and has no paths. */
export class ManifestError extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'ManifestError';
  }
}

/** @throws ManifestError for what is no JSON */
export function parseManifest(text: string): unknown {
  try {
    // Editors may begin a file with the mark of its encoding.
    return JSON.parse(text.replace(/^\uFEFF/, ''));
  } catch (error) {
    throw new ManifestError(
      `${MANIFEST} is no JSON: ${error instanceof Error ? error.message : String(error)}`,
    );
  }
}

/**
 * Checks what a manifest says.
 * @throws ManifestError naming each field at fault
 */
export function readManifest(value: unknown): Manifest {
  const faults = check(value);
  if (faults.length > 0) {
    const texts = faults.map(({ path, issue }) => `${path.join('.') || 'it'} ${issue}`);
    throw new ManifestError(`${MANIFEST} is at fault: ${texts.join('; ')}`);
  }
  const given = value as Static<typeof schema>;
  if (taken.has(given.id)) throw new ManifestError(`${MANIFEST}: the id ${given.id} is taken`);
  if (given.module.startsWith('/') || given.module.split('/').includes('..')) {
    throw new ManifestError(`${MANIFEST}: module must lie within the folder`);
  }
  return {
    description: '',
    capabilities: [],
    enabled: true,
    eager: true,
    ...given,
  };
}

/** What is wrong with a file, without its path. */
export function codeOf(error: unknown): string {
  const code = (error as NodeJS.ErrnoException | null)?.code;
  return typeof code === 'string' ? code : 'unknown fault';
}
