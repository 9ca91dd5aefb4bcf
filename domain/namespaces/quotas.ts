import { Type, type Static } from '@sinclair/typebox';
import { Ajv } from 'ajv';
import { quotaNames, type RateQuota } from './quota-names.ts';

/** The window of rates. Milliseconds. */
export const QUOTA_WINDOW = 60_000;

const most = Type.Optional(Type.Integer({ minimum: 0, maximum: 1_000_000_000_000 }));

/** What a namespace may have. What is left out is not limited. */
export const QuotasSchema = Type.Object(
  {
    /** Its share of starts among the namespaces with waiting runs. Default: 1. */
    weight: Type.Optional(Type.Integer({ minimum: 1, maximum: 100 })),
    /** Active and paused tasks. */
    tasks: most,
    /** Registered agents. */
    agents: most,
    /** Topics that an event was ever published under. */
    topics: most,
    /** Events in the log: of ended runs and of tasks, publications, and entries in streams of extensions. */
    events: most,
    /** Bytes of the artifacts of runs. */
    artifact_bytes: most,
    /** Runs that begin in a minute. */
    runs_per_minute: most,
    /** Bytes of the payloads of events, and of the params of runs, in a minute. */
    payload_bytes_per_minute: most,
  },
  { additionalProperties: false },
);
export type Quotas = Static<typeof QuotasSchema>;

/** Who set quotas: an admin, whose quotas bound those of the namespace's own administrators. */
export const quotaLevels = ['bounds', 'own'] as const;
export type QuotaLevel = (typeof quotaLevels)[number];

const check = new Ajv().compile(QuotasSchema);

/** What is wrong with quotas, as `<path>: <fault>`; null if nothing is. */
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

/** Quotas by namespace; `*` is for those that are not named. */
export type QuotaSettings = Readonly<Record<string, Quotas>>;

/** The quotas of a namespace. */
export function quotasOf(settings: QuotaSettings | undefined, namespace: string): Quotas {
  return settings?.[namespace] ?? settings?.['*'] ?? {};
}

/** The weight of a namespace for which none is set. */
export const DEFAULT_WEIGHT = 1;

/** The present quotas of namespaces. */
export interface QuotaSource {
  /** Read from the log where they are not known yet. @throws EventStoreError */
  of(namespace: string): Quotas | Promise<Quotas>;
  /** Those that are known without reading; undefined where they are not. */
  peek(namespace: string): Quotas | undefined;
}

/** Quotas that only settings give. */
export function quotasFrom(settings: QuotaSettings | undefined): QuotaSource {
  const of = (namespace: string): Quotas => quotasOf(settings, namespace);
  return { of, peek: of };
}

/** The shared counter of a rate. */
export const quotaCounter = (quota: RateQuota, namespace: string): string =>
  `quota ${quota} ${namespace}`;
