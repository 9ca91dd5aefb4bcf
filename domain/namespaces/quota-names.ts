/** The names of quotas, apart from their schema, which the command line need not load. */

/** Quotas that limit a present number. */
export const countQuotas = ['tasks', 'agents', 'topics', 'events', 'artifact_bytes'] as const;
export type CountQuota = (typeof countQuotas)[number];

/** Quotas that limit a rate per minute. */
export const rateQuotas = ['runs_per_minute', 'payload_bytes_per_minute'] as const;
export type RateQuota = (typeof rateQuotas)[number];

/** All quotas, in the order of the documentation. */
export const quotaNames = ['weight', ...countQuotas, ...rateQuotas] as const;
export type QuotaName = (typeof quotaNames)[number];
