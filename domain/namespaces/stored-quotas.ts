import { RefusalError } from '../errors.ts';
import type { NamespaceEvent } from '../events/catalogue.ts';
import type { Fold } from '../handle.ts';
import {
  DEFAULT_WEIGHT,
  quotasOf,
  type Quotas,
  type QuotaLevel,
  type QuotaSettings,
} from './quotas.ts';
import { quotaNames, type QuotaName } from './quota-names.ts';

/** The quotas in a namespace's stream. */
export interface StoredQuotas {
  /** Set by an admin. Each replaces the same quota of `SVC_QUOTAS`. */
  readonly bounds: Quotas;
  /** Set by an administrator of the namespace. Each takes effect if it is stricter. */
  readonly own: Quotas;
}

export const noQuotas: StoredQuotas = { bounds: {}, own: {} };

/** The quotas after an event of `namespace-<name>`. */
export function quotasAfter(quotas: StoredQuotas, event: NamespaceEvent): StoredQuotas {
  if (event.type === 'NamespaceDeleted') return noQuotas;
  if (event.type !== 'NamespaceQuotasSet') return quotas;
  const { level, quotas: set } = event.data;
  return { ...quotas, [level]: set };
}

/** Folds `namespace-<name>` to its quotas alone. Needs no name. */
export const storedQuotasFold: Fold<StoredQuotas, NamespaceEvent> = {
  initial: noQuotas,
  evolve: quotasAfter,
};

/** The limits that the administrators of a namespace may not exceed. */
export function boundsOf(
  settings: QuotaSettings | undefined,
  namespace: string,
  { bounds }: StoredQuotas,
): Quotas {
  return { ...quotasOf(settings, namespace), ...bounds };
}

/** The quotas in effect: the stricter of both levels. */
export function effectiveQuotas(bounds: Quotas, own: Quotas): Quotas {
  const effective = { ...bounds };
  for (const name of quotaNames) {
    const value = own[name];
    if (value !== undefined) effective[name] = Math.min(value, mostOf(bounds, name));
  }
  return effective;
}

/** @throws RefusalError `FORBIDDEN` for a quota that exceeds its bound */
export function requireWithin(bounds: Quotas, own: Quotas): void {
  const above = quotaNames.find((name) => (own[name] ?? 0) > mostOf(bounds, name));
  if (above === undefined) return;
  const limit = mostOf(bounds, above);
  const message = `quotas.${above}: must be at most ${limit}, which only an admin can raise`;
  throw new RefusalError('FORBIDDEN', message, { field: `quotas.${above}`, quota: above, limit });
}

/** No event if nothing changes. */
export function setQuotas(
  present: StoredQuotas,
  level: QuotaLevel,
  quotas: Quotas,
): readonly NamespaceEvent[] {
  const isSame = quotaNames.every((name) => present[level][name] === quotas[name]);
  return isSame ? [] : [{ type: 'NamespaceQuotasSet', data: { level, quotas } }];
}

function mostOf(bounds: Quotas, name: QuotaName): number {
  return bounds[name] ?? (name === 'weight' ? DEFAULT_WEIGHT : Number.POSITIVE_INFINITY);
}
