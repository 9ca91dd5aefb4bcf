import { DEFAULT_NAMESPACE } from '../domain/namespaces/namespace.ts';
import type { Filter } from './read-model.ts';

/** The namespaces that a query reads: one by its name, or {@link EVERY_NAMESPACE}. */
export type Reach = string;

/** The reach of admins and of the service itself. No namespace can have this name. */
export const EVERY_NAMESPACE = '*';

/** The filters that limit a query to its reach. Documents of `default` leave the field out. */
export function within(reach: Reach): readonly Filter[] {
  if (reach === EVERY_NAMESPACE) return [];
  return [{ field: 'namespace', op: 'eq', value: reach === DEFAULT_NAMESPACE ? null : reach }];
}

/** Whether a namespace is in reach. */
export function reaches(reach: Reach, namespace: string): boolean {
  return reach === EVERY_NAMESPACE || reach === namespace;
}
