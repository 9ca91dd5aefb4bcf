import { DEFAULT_NAMESPACE } from '../../../domain/namespaces/namespace.ts';
import { EVERY_NAMESPACE } from '../../../projections/reach.ts';
import type { Call } from '../../endpoint.ts';

/** The namespace of the secret: the one that `?namespace=` names, or the caller's own. */
export function namespaceAskedFor({ caller, reach }: Pick<Call, 'caller' | 'reach'>): string {
  return reach === EVERY_NAMESPACE ? (caller?.namespace ?? DEFAULT_NAMESPACE) : reach;
}
