/** The allowed imports of one part of the tree. */
export interface Room {
  /** Files whose path starts so belong to the room; the longest of several prefixes counts. */
  readonly path: string;
  /** Paths (files, or folders with a slash at the end) that may be imported. */
  readonly inside: readonly string[];
  /** Packages that may be imported. */
  readonly packages: readonly string[];
  /** Node's own modules: all, none, or those of single files. */
  readonly node: 'all' | 'none' | Readonly<Record<string, readonly string[]>>;
  /** Pure: no clock, randomness or I/O through globals either. */
  readonly pure?: boolean;
  /** May import modules by names computed at run time. */
  readonly computed?: boolean;
}

const telemetry = 'observability/telemetry.ts';
const coordination = 'scheduler/coordination.ts';
const ports = ['domain/', 'projections/', coordination, telemetry];
const schemas = ['@sinclair/typebox', 'ajv'];

const domain: Room = {
  path: 'domain/',
  inside: ['domain/'],
  packages: [...schemas, 'cldr-core', 'cronstrue', 'rrule', '@jmespath-community/jmespath'],
  node: { 'domain/ids.ts': ['node:crypto'] },
  pure: true,
};

const projections: Room = {
  path: 'projections/',
  inside: ['projections/', 'domain/', telemetry],
  packages: [],
  node: 'none',
  pure: true,
};

const scheduler: Room = {
  path: 'scheduler/',
  inside: ['scheduler/', 'domain/', 'projections/', telemetry],
  packages: [...schemas, 'node-schedule', 'ipaddr.js', 'standardwebhooks'],
  node: 'all',
};

const app: Room = {
  path: 'app/',
  inside: [
    'app/',
    'domain/',
    'projections/',
    'stores/',
    'scheduler/',
    'api/',
    'extensions/',
    'observability/',
  ],
  packages: ['commander', 'yaml'],
  node: 'all',
  computed: true,
};

/**
 * A part of a room that others build on. Of its own room it may import only itself and the named
 * parts, so it can be read and changed alone. Outside the room it has the room's permissions.
 */
function part(room: Room, folder: string, knows: readonly string[]): Room {
  const path = `${room.path}${folder}`;
  const beyond = room.inside.filter((door) => door !== room.path);
  return {
    ...room,
    path,
    inside: [path, ...knows.map((door) => `${room.path}${door}`), ...beyond],
  };
}

/** The design's table of rooms. A file in an unlisted folder violates the architecture. */
export const rooms: readonly Room[] = [
  domain,
  part(domain, 'schedule/', ['clock.ts', 'vocabulary.ts']),
  part(domain, 'pipeline/', [
    ...['artifacts/artifact.ts', 'clock.ts', 'errors.ts', 'events/'],
    ...['exact-numbers.ts', 'json.ts'],
  ]),
  projections,
  part(projections, 'views/', ['reach.ts', 'read-model.ts']),
  part(projections, 'reading/', [
    'cut-document.ts',
    'log-identity.ts',
    'reach.ts',
    'read-model.ts',
    'views/',
  ]),
  { path: 'stores/', inside: [...ports], packages: [], node: 'all' },
  {
    path: 'stores/servers/',
    inside: ['stores/servers/', 'stores/waiting.ts', ...ports],
    packages: [],
    node: 'all',
  },
  {
    path: 'stores/following/',
    inside: ['stores/following/', 'stores/waiting.ts', ...ports],
    packages: [],
    node: 'all',
  },
  {
    path: 'stores/sqlite/',
    inside: [
      'stores/sqlite/',
      'stores/following/',
      'stores/folder.ts',
      'stores/waiting.ts',
      ...ports,
    ],
    packages: ['@photostructure/sqlite'],
    node: 'all',
  },
  {
    path: 'stores/secrets/',
    inside: ['stores/secrets/', ...ports],
    packages: [],
    node: 'all',
  },
  {
    path: 'stores/artifacts/',
    inside: ['stores/artifacts/', 'stores/folder.ts', ...ports],
    packages: ['@aws-sdk/client-s3'],
    node: 'all',
  },
  {
    path: 'stores/eventstoredb/',
    inside: [
      'stores/eventstoredb/',
      'stores/following/',
      'stores/servers/',
      'stores/waiting.ts',
      ...ports,
    ],
    packages: ['@eventstore/db-client'],
    node: 'all',
  },
  {
    path: 'stores/mongodb/',
    inside: ['stores/mongodb/', 'stores/servers/', 'stores/waiting.ts', ...ports],
    packages: ['mongodb'],
    node: 'all',
  },
  scheduler,
  part(scheduler, 'processes/', ['coordination.ts']),
  part(scheduler, 'http/', []),
  part(scheduler, 'tools/', ['http/', 'tracing.ts']),
  {
    path: 'api/',
    inside: ['api/', 'domain/', 'projections/', coordination, telemetry],
    packages: [
      ...[...schemas, 'cors', 'express', 'express-rate-limit', 'helmet', 'jsonwebtoken'],
      ...['jose', 'openid-client'],
    ],
    node: 'all',
  },
  {
    path: 'extensions/',
    inside: ['extensions/', 'domain/', 'projections/', coordination, telemetry],
    packages: [...schemas, 'express', 'ws'],
    node: 'all',
    computed: true,
  },
  {
    path: 'observability/',
    inside: ['observability/', 'domain/', 'projections/read-model.ts', coordination],
    packages: [
      'pino',
      'prom-client',
      '@opentelemetry/api',
      '@opentelemetry/context-async-hooks',
      '@opentelemetry/exporter-trace-otlp-proto',
      '@opentelemetry/resources',
      '@opentelemetry/sdk-trace',
    ],
    node: 'all',
  },
  app,
  part(app, 'configuration/', []),
];

/** A built-in extension (a folder of its own in `extensions/`) imports only the contract. */
const builtInExtension = /^extensions\/(?!host\/)([^/]+\/)/;

/** The room of a file; undefined for free ones (`test/`, `bench/`, `examples/`). */
export function roomOf(path: string): Room | undefined {
  const builtIn = builtInExtension.exec(path)?.[1];
  if (builtIn !== undefined) {
    return {
      path: `extensions/${builtIn}`,
      inside: [`extensions/${builtIn}`, 'extensions/contract.ts'],
      packages: [...schemas, '@modelcontextprotocol/sdk', 'express', 'ws'],
      node: 'all',
    };
  }
  return rooms
    .filter((room) => path.startsWith(room.path))
    .sort((one, other) => other.path.length - one.path.length)[0];
}

/** Folders without import rules. */
export const freeFolders: readonly string[] = ['test/', 'bench/', 'examples/'];
