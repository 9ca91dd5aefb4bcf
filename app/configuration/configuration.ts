import { artifactConfiguration, type ArtifactSettings } from './artifact-settings.ts';
import { warningsAbout } from './known-settings.ts';
import {
  ConfigurationError,
  type Environment,
  eventStoreSchemes,
  oneOf,
  origins,
  secret,
  quoted,
  subsetOf,
  storeAddress,
  settingOf,
  trustedProxies,
  webAddress,
  wholeNumber,
  booleanSetting,
} from './setting-readers.ts';
import type { QuotaSettings } from '../../domain/namespaces/quotas.ts';
import type { AllowedPlugins } from '../../extensions/host/plugins.ts';
import type { PeopleSettings } from '../../api/people/people-settings.ts';
import type { TraceSettings } from '../../observability/trace-settings.ts';
import { peopleConfiguration } from './people-settings.ts';
import { httpConfiguration, type HttpSettings } from './http-settings.ts';
import { keySettings } from './key-settings.ts';
import { quotaSettings } from './quota-settings.ts';
import { sharingConfiguration, type SharingSettings } from './sharing-settings.ts';
import { secretConfiguration, type SecretSettings } from './secret-settings.ts';
import { traceConfiguration } from './trace-settings.ts';
import {
  allowedPlugins,
  extensionGrants,
  extensionPaths,
  extensionSettings,
  type Grants,
} from './extension-settings.ts';

/** The roles of a process; one process can have all. */
export const roles = ['api', 'projector', 'scheduler', 'worker'] as const;
export type Role = (typeof roles)[number];

/** From the most verbose to none. */
const logLevels = ['debug', 'info', 'warn', 'error', 'silent'] as const;
export type LogLevel = (typeof logLevels)[number];

/** The settings of a process, read from the environment once at start. Each comment ends with the default. */
export interface Configuration {
  /** `NODE_ENV` is `production`: errors without details, no tokens without a secret. */
  readonly production: boolean;
  /** `SVC_PORT`: port for HTTP, health and metrics; 0 for any free port. 8080. */
  readonly port: number;
  /** `SVC_HOST`: address or name to listen on; `0.0.0.0` for all. 127.0.0.1. */
  readonly host: string;
  /** `SVC_TLS_CERT_FILE`: certificate with its chain, in PEM. None: plain HTTP. */
  readonly tlsCertFile: string | undefined;
  /** `SVC_TLS_KEY_FILE`: the certificate's private key, in PEM. */
  readonly tlsKeyFile: string | undefined;
  /** `SVC_DATA_DIR`: folder of the embedded stores and generated keys. `./data`. */
  readonly dataDirectory: string;
  /** `SVC_ROLES`: separated by commas. All four. */
  readonly roles: readonly Role[];
  /** `SVC_EVENT_STORE_URL`: `esdb://…` or `esdb+discover://…`. The embedded log. */
  readonly eventStoreUrl: string | undefined;
  /** `SVC_READ_MODEL_URL`: `mongodb://…` or `mongodb+srv://…`. Embedded views. */
  readonly readModelUrl: string | undefined;
  /** `SVC_WORKER_CONCURRENCY`: runs at a time in this process, 1 to 10,000. 64. */
  readonly workerConcurrency: number;
  /** `SVC_SLOTS_PER_AGENT` and others: what one agent, namespace or address may take. */
  readonly sharing: SharingSettings;
  /** `SVC_QUOTAS`: quotas by namespace, as JSON. None. */
  readonly quotas: QuotaSettings | undefined;
  /** `SVC_MAX_CAUSATION_DEPTH`: the most runs in a chain in which each causes the next, 1 to 1,000. 32. */
  readonly maxCausationDepth: number;
  /** `SVC_LOG_LEVEL`: the lowest level that is logged. info. */
  readonly logLevel: LogLevel;
  /** `SVC_TRUST_PROXY`: number or addresses of proxies in front; Express's `trust proxy`. 0. */
  readonly trustProxy: number | readonly string[];
  /** `SVC_MAX_BODY_BYTES`: largest request body, 1,024 bytes to 16 MiB. 1 MiB. */
  readonly maxBodyBytes: number;
  /** `SVC_CORS_ORIGINS`: origins of pages that can call, separated by commas, or `*`. None. */
  readonly corsOrigins: readonly string[] | undefined;
  /** `SVC_PUBLIC_URL`: the service's address for clients. The one of the request. */
  readonly publicUrl: string | undefined;
  /** `SVC_RATE_LIMIT`: requests of an agent or address in a window; 0 turns it off. 10,000. */
  readonly rateLimit: number;
  /** `SVC_RATE_LIMIT_WINDOW_SECONDS`: length of the window, 1 to 3,600 s. 60 s. */
  readonly rateLimitWindowSeconds: number;
  /** `SVC_LEASE_SECONDS`: how long a silent worker or scheduler counts as alive, 1 to 3,600 s. 30 s. */
  readonly leaseSeconds: number;
  /** `SVC_JOB_LEASE_SECONDS`: how long a silent external worker keeps its jobs, 2 to 3,600 s. 30 s. */
  readonly jobLeaseSeconds: number;
  /** `SVC_JOB_HEARTBEAT_SECONDS`: how often workers are asked to report; less than the lease. 10 s. */
  readonly jobHeartbeatSeconds: number;
  /** `SVC_ACCESS_TOKEN_SECONDS`: lifetime of an access token, 1 s to 1 day. 1 hour. */
  readonly accessTokenSeconds: number;
  /** `SVC_REFRESH_TOKEN_SECONDS`: lifetime of a refresh token, 1 s to 1 year. 30 days. */
  readonly refreshTokenSeconds: number;
  /** `SVC_PAGE_SESSION_SECONDS`: how long a session of the page lasts, 1 minute to 30 days. 12 hours. */
  readonly pageSessionSeconds: number;
  /** `SVC_OIDC_…`: how people sign in with OpenID Connect. null: they cannot sign in that way. */
  readonly people: PeopleSettings | null;
  /** `SVC_ADMIN_ID`: the first agent's id, a UUID in lower case. A new one. */
  readonly adminId: string | undefined;
  /** `SVC_ADMIN_SECRET`: the first agent's secret, 16 to 200 bytes. A new one. */
  readonly adminSecret: string | undefined;
  /** `SVC_ALLOW_SECRETLESS`: agents without credentials get tokens by their id. false. */
  readonly allowSecretless: boolean;
  /** `SVC_AUDIT_READS`: records reads of the audit and of the past. false. */
  readonly auditReads: boolean;
  /** `SVC_HTTP_ALLOW_PRIVATE` and proxy variables, for requests of tasks and webhooks. */
  readonly http: HttpSettings;
  /** `JWT_SECRET_KEY`: signs tokens, 32 bytes or more. A generated one. */
  readonly jwtSecretKey: string | undefined;
  /** `JWT_PREVIOUS_SECRET_KEY`: verifies tokens from before a change of keys. None. */
  readonly jwtPreviousSecretKey: string | undefined;
  /** `SVC_EXT_PATHS`: folders of extensions, separated by colons. None. */
  readonly extPaths: readonly string[] | undefined;
  /** `SVC_EXT_PLUGINS`: npm packages whose plugins may be loaded, or all. All; none in production. */
  readonly extPlugins: AllowedPlugins;
  /** `SVC_EXT_GRANTS`: capabilities of extensions, as JSON by id. What they request. */
  readonly extGrants: Grants | undefined;
  /** `SVC_EXT_<ID>_<NAME>`: settings of extensions by their variables. */
  readonly extensionSettings: Readonly<Record<string, string>>;
  /** `SVC_EXTENSION_SECONDS`: time limit of an extension's handler, 1 to 110 s. 30 s. */
  readonly extensionSeconds: number;
  /** `SVC_REQUIRE_SCOPES`: routes of extensions need the scope `ext:<id>:routes`. false. */
  readonly requireScopes: boolean;
  /** `SVC_WEBUI_REQUIRE_AUTH`: the page needs a token. false. */
  readonly webuiRequireAuth: boolean;
  /** `SVC_WEBHOOK_KEY`: derives webhook secrets, 32 bytes or more. The signing key. */
  readonly webhookKey: string | undefined;
  /** `SVC_SECRETS_…`, `SVC_SECRET_…` and `SVC_VAULT_…`: where secrets come from. The log and the environment. */
  readonly secrets: SecretSettings;
  /** `SVC_ARTIFACTS_…`: where results over 256 KiB are stored, and their largest size. The data directory; 16 MiB. */
  readonly artifacts: ArtifactSettings;
  /** `SVC_RETAIN_RUNS_DAYS`: retention of ended runs, 1 to 36,500 days; 0 is permanent. 0. */
  readonly retainRunsDays: number;
  /** `SVC_RETAIN_DELIVERIES_DAYS`: the same of webhook deliveries. 0. */
  readonly retainDeliveriesDays: number;
  /** `SVC_RETAIN_SESSIONS_DAYS`: the same of sessions. 0. */
  readonly retainSessionsDays: number;
  /** `SVC_RETAIN_REFUSALS_DAYS`: the same of rejected commands. 0. */
  readonly retainRefusalsDays: number;
  /** `SVC_RETAIN_REQUESTS_DAYS`: the same of `Idempotency-Key`s, which count for a day. 0. */
  readonly retainRequestsDays: number;
  /** `OTEL_…`: how traces are made and sent; null if they are off. */
  readonly traces: TraceSettings | null;
  /** Lines to log at start: unknown settings, and those without effect here. */
  readonly warnings: readonly string[];
}

/**
 * Reads all settings. Pure.
 * @throws ConfigurationError at the first setting that is missing or invalid
 */
export function readConfiguration(env: Environment): Configuration {
  const number = (variable: string, from: number, to: number, otherwise: number): number =>
    wholeNumber(env, variable, { from, to, otherwise });
  const days = (variable: string): number => number(variable, 0, 36_500, 0);
  const isSet = (variable: string): boolean => booleanSetting(env, variable);
  const production = env.NODE_ENV === 'production';
  const eventStoreUrl = storeAddress(env, 'SVC_EVENT_STORE_URL', eventStoreSchemes);
  const readModelUrl = storeAddress(env, 'SVC_READ_MODEL_URL', ['mongodb://', 'mongodb+srv://']);
  const artifacts = artifactConfiguration(env);
  const { traces, warnings } = traceConfiguration(env);
  const { http, warnings: httpWarnings } = httpConfiguration(env);
  const isDistributed = eventStoreUrl !== undefined;
  const { keys, warnings: keyWarnings } = keySettings(env, { production, isDistributed });
  const isSecretless = allowSecretless(env, production);
  const { secrets, warnings: secretWarnings } = secretConfiguration(env, production);
  return {
    production,
    port: number('SVC_PORT', 0, 65_535, 8080),
    host: settingOf(env, 'SVC_HOST') ?? '127.0.0.1',
    ...tlsFiles(env),
    dataDirectory: settingOf(env, 'SVC_DATA_DIR') ?? './data',
    roles: subsetOf(env, 'SVC_ROLES', roles),
    eventStoreUrl,
    readModelUrl,
    workerConcurrency: number('SVC_WORKER_CONCURRENCY', 1, 10_000, 64),
    sharing: sharingConfiguration(env),
    quotas: quotaSettings(env),
    maxCausationDepth: number('SVC_MAX_CAUSATION_DEPTH', 1, 1_000, 32),
    logLevel: oneOf(env, 'SVC_LOG_LEVEL', logLevels, 'info'),
    trustProxy: trustedProxies(env, 'SVC_TRUST_PROXY'),
    maxBodyBytes: number('SVC_MAX_BODY_BYTES', 1_024, 16_777_216, 1_048_576),
    corsOrigins: origins(env, 'SVC_CORS_ORIGINS'),
    publicUrl: webAddress(env, 'SVC_PUBLIC_URL'),
    rateLimit: number('SVC_RATE_LIMIT', 0, 1_000_000_000, 10_000),
    rateLimitWindowSeconds: number('SVC_RATE_LIMIT_WINDOW_SECONDS', 1, 3_600, 60),
    leaseSeconds: number('SVC_LEASE_SECONDS', 1, 3_600, 30),
    ...jobLease(env),
    accessTokenSeconds: number('SVC_ACCESS_TOKEN_SECONDS', 1, 86_400, 3_600),
    refreshTokenSeconds: number('SVC_REFRESH_TOKEN_SECONDS', 1, 31_536_000, 2_592_000),
    pageSessionSeconds: number('SVC_PAGE_SESSION_SECONDS', 60, 2_592_000, 43_200),
    people: peopleConfiguration(env, production),
    adminId: adminId(env),
    adminSecret: secret(env, 'SVC_ADMIN_SECRET', { fromBytes: 16, toBytes: 200 }),
    allowSecretless: isSecretless,
    auditReads: isSet('SVC_AUDIT_READS'),
    http,
    ...keys,
    extPaths: extensionPaths(env),
    extPlugins: allowedPlugins(env, production),
    extGrants: extensionGrants(env),
    extensionSettings: extensionSettings(env),
    // Below the timeout of idle connections.
    extensionSeconds: number('SVC_EXTENSION_SECONDS', 1, 110, 30),
    requireScopes: isSet('SVC_REQUIRE_SCOPES'),
    webuiRequireAuth: isSet('SVC_WEBUI_REQUIRE_AUTH'),
    secrets,
    artifacts,
    retainRunsDays: days('SVC_RETAIN_RUNS_DAYS'),
    retainDeliveriesDays: days('SVC_RETAIN_DELIVERIES_DAYS'),
    retainSessionsDays: days('SVC_RETAIN_SESSIONS_DAYS'),
    retainRefusalsDays: days('SVC_RETAIN_REFUSALS_DAYS'),
    retainRequestsDays: days('SVC_RETAIN_REQUESTS_DAYS'),
    traces,
    warnings: [
      ...warningsAbout(env),
      ...warnings,
      ...httpWarnings,
      ...keyWarnings,
      ...secretWarnings,
      ...(eventStoreUrl !== undefined && secrets.keys === undefined
        ? [
            'SVC_EVENT_STORE_URL is set without SVC_SECRETS_KEY: ' +
              'other machines cannot decrypt secrets that are set on this one',
          ]
        : []),
      ...(eventStoreUrl !== undefined && readModelUrl === undefined
        ? [
            'SVC_EVENT_STORE_URL is set without SVC_READ_MODEL_URL: ' +
              'other machines do not see the views and leases of this one',
          ]
        : []),
      ...(eventStoreUrl !== undefined && artifacts.s3 === undefined && artifacts.maxBytes > 0
        ? [
            'SVC_EVENT_STORE_URL is set without SVC_ARTIFACTS_S3_BUCKET: ' +
              'other machines cannot read results over 256 KiB of runs on this one',
          ]
        : []),
    ],
  };
}

function tlsFiles(env: Environment): Pick<Configuration, 'tlsCertFile' | 'tlsKeyFile'> {
  const tlsCertFile = settingOf(env, 'SVC_TLS_CERT_FILE');
  const tlsKeyFile = settingOf(env, 'SVC_TLS_KEY_FILE');
  if ((tlsCertFile === undefined) !== (tlsKeyFile === undefined)) {
    const [missing, set] =
      tlsCertFile === undefined
        ? ['SVC_TLS_CERT_FILE', 'SVC_TLS_KEY_FILE']
        : ['SVC_TLS_KEY_FILE', 'SVC_TLS_CERT_FILE'];
    throw new ConfigurationError(missing, `is not set, but ${set} is; set both or neither`);
  }
  return { tlsCertFile, tlsKeyFile };
}

function jobLease(
  env: Environment,
): Pick<Configuration, 'jobLeaseSeconds' | 'jobHeartbeatSeconds'> {
  const lease = { from: 2, to: 3_600, otherwise: 30 };
  const jobLeaseSeconds = wholeNumber(env, 'SVC_JOB_LEASE_SECONDS', lease);
  const most = jobLeaseSeconds - 1;
  const otherwise = Math.max(1, Math.floor(jobLeaseSeconds / 3));
  const heartbeat = { from: 1, to: most, otherwise };
  const jobHeartbeatSeconds = wholeNumber(env, 'SVC_JOB_HEARTBEAT_SECONDS', heartbeat);
  return { jobLeaseSeconds, jobHeartbeatSeconds };
}

function allowSecretless(env: Environment, production: boolean): boolean {
  const allowed = booleanSetting(env, 'SVC_ALLOW_SECRETLESS');
  if (allowed && production) {
    throw new ConfigurationError('SVC_ALLOW_SECRETLESS', 'is true; in production it must be false');
  }
  return allowed;
}

function adminId(env: Environment): string | undefined {
  const id = settingOf(env, 'SVC_ADMIN_ID')?.toLowerCase();
  if (id !== undefined && !/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.test(id)) {
    throw new ConfigurationError('SVC_ADMIN_ID', `is ${quoted(id)}; it must be a UUID`);
  }
  return id;
}
