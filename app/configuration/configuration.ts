import { warningsAbout } from './known-settings.ts';
import {
  ConfigurationError,
  type Environment,
  eventStoreSchemes,
  oneOf,
  origins,
  secret,
  shown,
  someOf,
  storeAddress,
  textOf,
  trustedProxies,
  webAddress,
  wholeNumber,
  yesOrNo,
} from './setting-readers.ts';
import type { TraceSettings } from '../../observability/trace-settings.ts';
import { httpConfiguration, type HttpSettings } from './http-settings.ts';
import { traceConfiguration } from './trace-settings.ts';
import {
  extensionGrants,
  extensionPaths,
  extensionSettings,
  type Grants,
} from './extension-settings.ts';

/** What a process can do; one process may do all. */
export const roles = ['api', 'projector', 'scheduler', 'worker'] as const;
export type Role = (typeof roles)[number];

/** From the most talkative to none at all. */
const logLevels = ['debug', 'info', 'warn', 'error', 'silent'] as const;
export type LogLevel = (typeof logLevels)[number];

/** How a process runs. All of it comes from the environment, read once at start. */
export interface Configuration {
  /** `NODE_ENV` is `production`: no detail of errors in answers, no token without a secret. */
  readonly production: boolean;
  /** `SVC_PORT`: where HTTP is served, health and metrics included; 0 takes any free port. 8080. */
  readonly port: number;
  /** `SVC_HOST`: the address or name to listen on; `0.0.0.0` for all. 127.0.0.1. */
  readonly host: string;
  /** `SVC_TLS_CERT_FILE`: the certificate with its chain, in PEM; with it HTTPS is served. undefined: plain HTTP. */
  readonly tlsCertFile: string | undefined;
  /** `SVC_TLS_KEY_FILE`: the certificate's private key, in PEM; set exactly where the certificate is. */
  readonly tlsKeyFile: string | undefined;
  /** `SVC_DATA_DIR`: the folder of the embedded stores and of generated keys, as given. `./data`. */
  readonly dataDirectory: string;
  /** `SVC_ROLES`: by commas; all four. */
  readonly roles: readonly Role[];
  /** `SVC_EVENT_STORE_URL`: `esdb://…` or `esdb+discover://…`; undefined: the embedded log. */
  readonly eventStoreUrl: string | undefined;
  /** `SVC_READ_MODEL_URL`: `mongodb://…` or `mongodb+srv://…`; undefined: embedded views. */
  readonly readModelUrl: string | undefined;
  /** `SVC_WORKER_CONCURRENCY`: runs under way at a time in this process, 1 to 10,000. 64. */
  readonly workerConcurrency: number;
  /** `SVC_LOG_LEVEL`: the least that is logged. info. */
  readonly logLevel: LogLevel;
  /** `SVC_TRUST_PROXY`: how many proxies stand in front, or which; what Express calls `trust proxy`. 0. */
  readonly trustProxy: number | readonly string[];
  /** `SVC_MAX_BODY_BYTES`: the largest request body in bytes, 1,024 to 16 MiB. 1 MiB. */
  readonly maxBodyBytes: number;
  /** `SVC_CORS_ORIGINS`: origins whose pages may call, by commas, or `*`; undefined: none. */
  readonly corsOrigins: readonly string[] | undefined;
  /** `SVC_PUBLIC_URL`: the address under which clients reach the service; undefined: the one that they use. */
  readonly publicUrl: string | undefined;
  /** `SVC_RATE_LIMIT`: requests of an agent, or an address, in a window; 0 turns it off. 10,000. */
  readonly rateLimit: number;
  /** `SVC_RATE_LIMIT_WINDOW_SECONDS`: how long the window is, 1 to 3,600 s. 60 s. */
  readonly rateLimitWindowSeconds: number;
  /** `SVC_LEASE_SECONDS`: how long a silent worker or scheduler counts as alive, 1 to 3,600 s. 30 s. */
  readonly leaseSeconds: number;
  /** `SVC_ACCESS_TOKEN_SECONDS`: the life of an access token, 1 s to 1 day. 1 hour. */
  readonly accessTokenSeconds: number;
  /** `SVC_REFRESH_TOKEN_SECONDS`: the life of a refresh token, 1 s to 1 year. 30 days. */
  readonly refreshTokenSeconds: number;
  /** `SVC_ADMIN_ID`: the first agent's id, a UUID in lower case; undefined: a new one. */
  readonly adminId: string | undefined;
  /** `SVC_ADMIN_SECRET`: the first agent's secret, 16 to 200 bytes; undefined: a new one. */
  readonly adminSecret: string | undefined;
  /** `SVC_ALLOW_SECRETLESS`: an agent without credentials gets a token by its id. false. */
  readonly allowSecretless: boolean;
  /** `SVC_AUDIT_READS`: reads of the audit and of the past are recorded. false. */
  readonly auditReads: boolean;
  /** `SVC_HTTP_ALLOW_PRIVATE`, and the variables of proxies: how requests of tasks and webhooks leave. */
  readonly http: HttpSettings;
  /** `JWT_SECRET_KEY`: what tokens are signed with, 32 bytes or more; undefined: made and kept. */
  readonly jwtSecretKey: string | undefined;
  /** `JWT_PREVIOUS_SECRET_KEY`: verifies tokens signed before a change of keys. */
  readonly jwtPreviousSecretKey: string | undefined;
  /** `SVC_EXT_PATHS`: folders of extensions, by colons; undefined: none. */
  readonly extPaths: readonly string[] | undefined;
  /** `SVC_EXT_GRANTS`: what extensions are granted, as JSON by id; undefined: what they ask for. */
  readonly extGrants: Grants | undefined;
  /** `SVC_EXT_<ID>_<NAME>`: settings of extensions, as they stand in the environment. */
  readonly extensionSettings: Readonly<Record<string, string>>;
  /** `SVC_EXTENSION_SECONDS`: how long a handler of an extension may take, 1 to 110 s. 30 s. */
  readonly extensionSeconds: number;
  /** `SVC_REQUIRE_SCOPES`: routes of extensions need the scope `ext:<id>:routes`. false. */
  readonly requireScopes: boolean;
  /** `SVC_WEBUI_REQUIRE_AUTH`: the page needs a token. false. */
  readonly webuiRequireAuth: boolean;
  /** `SVC_WEBHOOK_KEY`: what secrets of webhooks are made of, 32 bytes or more; undefined: the key of tokens. */
  readonly webhookKey: string | undefined;
  /** `SVC_RETAIN_RUNS_DAYS`: days that ended runs are kept, 1 to 36,500; 0: for ever. 0. */
  readonly retainRunsDays: number;
  /** `SVC_RETAIN_DELIVERIES_DAYS`: the same of deliveries to webhooks. 0. */
  readonly retainDeliveriesDays: number;
  /** `SVC_RETAIN_SESSIONS_DAYS`: the same of sessions. 0. */
  readonly retainSessionsDays: number;
  /** `SVC_RETAIN_REFUSALS_DAYS`: the same of refused commands. 0. */
  readonly retainRefusalsDays: number;
  /** `SVC_RETAIN_REQUESTS_DAYS`: the same of the memory of `Idempotency-Key`s, which counts for a day. 0. */
  readonly retainRequestsDays: number;
  /** `OTEL_…`: how traces are made and sent; null: they are off. */
  readonly traces: TraceSettings | null;
  /** What to log at start, a line each: unknown settings, and those without effect here. */
  readonly warnings: readonly string[];
}

/**
 * Reads all settings. Pure: what counts is `env` alone (the process hands in `process.env`).
 *
 * @throws ConfigurationError at the first setting that is missing or bad
 */
export function readConfiguration(env: Environment): Configuration {
  const production = env.NODE_ENV === 'production';
  const eventStoreUrl = storeAddress(env, 'SVC_EVENT_STORE_URL', eventStoreSchemes);
  const readModelUrl = storeAddress(env, 'SVC_READ_MODEL_URL', ['mongodb://', 'mongodb+srv://']);
  const { traces, warnings } = traceConfiguration(env);
  const { http, warnings: httpWarnings } = httpConfiguration(env);
  return {
    production,
    port: wholeNumber(env, 'SVC_PORT', { from: 0, to: 65_535, otherwise: 8080 }),
    host: textOf(env, 'SVC_HOST') ?? '127.0.0.1',
    ...tlsFiles(env),
    dataDirectory: textOf(env, 'SVC_DATA_DIR') ?? './data',
    roles: someOf(env, 'SVC_ROLES', roles),
    eventStoreUrl,
    readModelUrl,
    workerConcurrency: wholeNumber(env, 'SVC_WORKER_CONCURRENCY', {
      from: 1,
      to: 10_000,
      otherwise: 64,
    }),
    logLevel: oneOf(env, 'SVC_LOG_LEVEL', logLevels, 'info'),
    trustProxy: trustedProxies(env, 'SVC_TRUST_PROXY'),
    maxBodyBytes: wholeNumber(env, 'SVC_MAX_BODY_BYTES', {
      from: 1_024,
      to: 16_777_216,
      otherwise: 1_048_576,
    }),
    corsOrigins: origins(env, 'SVC_CORS_ORIGINS'),
    publicUrl: webAddress(env, 'SVC_PUBLIC_URL'),
    rateLimit: wholeNumber(env, 'SVC_RATE_LIMIT', {
      from: 0,
      to: 1_000_000_000,
      otherwise: 10_000,
    }),
    rateLimitWindowSeconds: wholeNumber(env, 'SVC_RATE_LIMIT_WINDOW_SECONDS', {
      from: 1,
      to: 3_600,
      otherwise: 60,
    }),
    leaseSeconds: wholeNumber(env, 'SVC_LEASE_SECONDS', { from: 1, to: 3_600, otherwise: 30 }),
    accessTokenSeconds: wholeNumber(env, 'SVC_ACCESS_TOKEN_SECONDS', {
      from: 1,
      to: 86_400,
      otherwise: 3_600,
    }),
    refreshTokenSeconds: wholeNumber(env, 'SVC_REFRESH_TOKEN_SECONDS', {
      from: 1,
      to: 31_536_000,
      otherwise: 2_592_000,
    }),
    adminId: adminId(env),
    adminSecret: secret(env, 'SVC_ADMIN_SECRET', { fromBytes: 16, toBytes: 200 }),
    allowSecretless: allowSecretless(env, production),
    auditReads: yesOrNo(env, 'SVC_AUDIT_READS'),
    http,
    jwtSecretKey: jwtSecretKey(env, production, eventStoreUrl !== undefined),
    jwtPreviousSecretKey: secret(env, 'JWT_PREVIOUS_SECRET_KEY', jwtKeyBounds),
    webhookKey: secret(env, 'SVC_WEBHOOK_KEY', jwtKeyBounds),
    extPaths: extensionPaths(env),
    extGrants: extensionGrants(env),
    extensionSettings: extensionSettings(env),
    // Shorter than what closes a connection on which nothing moves.
    extensionSeconds: wholeNumber(env, 'SVC_EXTENSION_SECONDS', {
      from: 1,
      to: 110,
      otherwise: 30,
    }),
    requireScopes: yesOrNo(env, 'SVC_REQUIRE_SCOPES'),
    webuiRequireAuth: yesOrNo(env, 'SVC_WEBUI_REQUIRE_AUTH'),
    retainRunsDays: days(env, 'SVC_RETAIN_RUNS_DAYS'),
    retainDeliveriesDays: days(env, 'SVC_RETAIN_DELIVERIES_DAYS'),
    retainSessionsDays: days(env, 'SVC_RETAIN_SESSIONS_DAYS'),
    retainRefusalsDays: days(env, 'SVC_RETAIN_REFUSALS_DAYS'),
    retainRequestsDays: days(env, 'SVC_RETAIN_REQUESTS_DAYS'),
    traces,
    warnings: [
      ...warningsAbout(env),
      ...warnings,
      ...httpWarnings,
      ...(eventStoreUrl !== undefined && readModelUrl === undefined
        ? [
            'SVC_EVENT_STORE_URL is set without SVC_READ_MODEL_URL: ' +
              'the views and leases of this machine are not seen by others',
          ]
        : []),
    ],
  };
}

function tlsFiles(env: Environment): Pick<Configuration, 'tlsCertFile' | 'tlsKeyFile'> {
  const tlsCertFile = textOf(env, 'SVC_TLS_CERT_FILE');
  const tlsKeyFile = textOf(env, 'SVC_TLS_KEY_FILE');
  if ((tlsCertFile === undefined) !== (tlsKeyFile === undefined)) {
    const [missing, set] =
      tlsCertFile === undefined
        ? ['SVC_TLS_CERT_FILE', 'SVC_TLS_KEY_FILE']
        : ['SVC_TLS_KEY_FILE', 'SVC_TLS_CERT_FILE'];
    throw new ConfigurationError(missing, `is not set, but ${set} is; set both or neither`);
  }
  return { tlsCertFile, tlsKeyFile };
}

/** Of a kind of records; 0, the default: they stay for ever. */
const days = (env: Environment, variable: string): number =>
  wholeNumber(env, variable, { from: 0, to: 36_500, otherwise: 0 });

/** HS256 takes a key at least as long as its hash (RFC 7518, 3.2). */
const jwtKeyBounds = { fromBytes: 32, toBytes: 4_096 };

function jwtSecretKey(
  env: Environment,
  production: boolean,
  overManyMachines: boolean,
): string | undefined {
  const key = secret(env, 'JWT_SECRET_KEY', jwtKeyBounds);
  if (key === undefined && (production || overManyMachines)) {
    const why = production ? 'NODE_ENV=production' : 'SVC_EVENT_STORE_URL';
    throw new ConfigurationError(
      'JWT_SECRET_KEY',
      `is not set; with ${why} it must be, to 32 bytes or more, the same in every process`,
    );
  }
  return key;
}

function allowSecretless(env: Environment, production: boolean): boolean {
  const allowed = yesOrNo(env, 'SVC_ALLOW_SECRETLESS');
  if (allowed && production) {
    throw new ConfigurationError('SVC_ALLOW_SECRETLESS', 'is true; in production it must be false');
  }
  return allowed;
}

function adminId(env: Environment): string | undefined {
  const id = textOf(env, 'SVC_ADMIN_ID')?.toLowerCase();
  if (id !== undefined && !/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.test(id)) {
    throw new ConfigurationError('SVC_ADMIN_ID', `is ${shown(id)}; it must be a UUID`);
  }
  return id;
}
