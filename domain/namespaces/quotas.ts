import { Type, type Static } from '@sinclair/typebox';
import { Ajv } from 'ajv';

/** Quotas of which the present number counts. */
export const countQuotas = ['tasks', 'agents'] as const;
export type CountQuota = (typeof countQuotas)[number];

/** Quotas of what happens in a minute. */
export const rateQuotas = ['runs_per_minute', 'payload_bytes_per_minute'] as const;
export type RateQuota = (typeof rateQuotas)[number];

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
    /** Runs that begin in a minute. */
    runs_per_minute: most,
    /** Bytes of the payloads of events, and of the params of runs, in a minute. */
    payload_bytes_per_minute: most,
  },
  { additionalProperties: false },
);
export type Quotas = Static<typeof QuotasSchema>;

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
  const known = Object.keys(QuotasSchema.properties).join(', ');
  return `${additionalProperty}: is not a quota; known are ${known}`;
}

/** Quotas by namespace; `*` is for those that are not named. */
export type QuotaSettings = Readonly<Record<string, Quotas>>;

/** The quotas of a namespace. */
export function quotasOf(settings: QuotaSettings | undefined, namespace: string): Quotas {
  return settings?.[namespace] ?? settings?.['*'] ?? {};
}

/** A namespace's share of starts. */
export const weightIn =
  (settings: QuotaSettings | undefined) =>
  (namespace: string): number =>
    quotasOf(settings, namespace).weight ?? 1;

/** The shared counter of a rate. */
export const quotaCounter = (quota: RateQuota, namespace: string): string =>
  `quota ${quota} ${namespace}`;
