/** The names of quotas, without their schema: the command line needs no more. */

/** Quotas of which the present number counts. */
export const countQuotas = ['tasks', 'agents', 'topics', 'events', 'artifact_bytes'] as const;
export type CountQuota = (typeof countQuotas)[number];

/** Quotas of what happens in a minute. */
export const rateQuotas = ['runs_per_minute', 'payload_bytes_per_minute'] as const;
export type RateQuota = (typeof rateQuotas)[number];

/** Of all quotas, in the order of documentation. */
export const quotaNames = ['weight', ...countQuotas, ...rateQuotas] as const;
export type QuotaName = (typeof quotaNames)[number];
