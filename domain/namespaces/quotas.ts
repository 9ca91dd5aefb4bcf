import { Type, type Static } from '@sinclair/typebox';
import { Ajv } from 'ajv';
import { quotaNames, type RateQuota } from './quota-names.ts';

/** The window of rates, in milliseconds. */
export const QUOTA_WINDOW = 60_000;

const most = Type.Optional(Type.Integer({ minimum: 0, maximum: 1_000_000_000_000 }));

/** The limits of a namespace. A quota that is left out is unlimited. */
export const QuotasSchema = Type.Object(
  {
    /** Its share of starts among the namespaces with waiting runs. Default: 1. */
    weight: Type.Optional(Type.Integer({ minimum: 1, maximum: 100 })),
    /** Active and paused tasks. */
    tasks: most,
    /** Registered agents. */
    agents: most,
    /** Topics under which an event was ever published. */
    topics: most,
    /** Events in the log: of ended runs and of tasks, publications, and entries in streams of extensions. */
    events: most,
    /** Bytes of the artifacts of runs. */
    artifact_bytes: most,
    /** Runs that start in a minute. */
    runs_per_minute: most,
    /** Bytes of the payloads of events, and of the params of runs, in a minute. */
    payload_bytes_per_minute: most,
  },
  { additionalProperties: false },
);
export type Quotas = Static<typeof QuotasSchema>;

/** The level of quotas: an admin sets `bounds`, and the namespace's own administrators set `own` within them. */
export const quotaLevels = ['bounds', 'own'] as const;
export type QuotaLevel = (typeof quotaLevels)[number];

// See the codec of the events for the options.
const check = new Ajv({ meta: false, validateSchema: false, code: { optimize: false } }).compile(
  QuotasSchema,
);

/** The first fault of quotas, as `<path>: <fault>`; null if there is none. */
export function quotasFault(value: unknown): string | null {
  if (check(value)) return null;
  const [error] = check.errors ?? [];
  if (error === undefined) return null;
  const { additionalProperty } = error.params as { readonly additionalProperty?: string };
  if (additionalProperty === undefined) {
    return `${error.instancePath.slice(1) || 'quotas'}: ${error.message ?? 'is invalid'}`;
  }
  const known = quotaNames.join(', ');
  return `${additionalProperty}: is not a quota; known are ${known}`;
}

/** Quotas by namespace; `*` is for all others. */
export type QuotaSettings = Readonly<Record<string, Quotas>>;

/** The quotas of a namespace. */
export function quotasOf(settings: QuotaSettings | undefined, namespace: string): Quotas {
  return settings?.[namespace] ?? settings?.['*'] ?? {};
}

/** The weight of a namespace without one. */
export const DEFAULT_WEIGHT = 1;

/** The present quotas of namespaces. */
export interface QuotaSource {
  /** The quotas of a namespace, read from the log if they are not known yet. @throws EventStoreError */
  of(namespace: string): Quotas | Promise<Quotas>;
  /** The quotas of a namespace if they are known; otherwise undefined, and they are read for later calls. */
  peek(namespace: string): Quotas | undefined;
}

/** Quotas from the settings alone. */
export function quotasFrom(settings: QuotaSettings | undefined): QuotaSource {
  const of = (namespace: string): Quotas => quotasOf(settings, namespace);
  return { of, peek: of };
}

/** The name of the shared counter of a rate. */
export const quotaCounter = (quota: RateQuota, namespace: string): string =>
  `quota ${quota} ${namespace}`;
