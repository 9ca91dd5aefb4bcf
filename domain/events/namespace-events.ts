import { Type } from '@sinclair/typebox';
import { QuotasSchema, quotaLevels } from '../namespaces/quotas.ts';
import { event, Nullable, OneOf } from './schema-parts.ts';

const description = Nullable(Type.String({ minLength: 1, maxLength: 2000 }));

/** Events of `namespace-<name>`. `default` exists without any. */
export const namespaceEvents = {
  NamespaceCreated: event({ description }),
  NamespaceUpdated: event({ description }),
  /** All quotas of one level. `bounds` is set by an admin, `own` by an administrator of the namespace. */
  NamespaceQuotasSet: event({ level: OneOf(quotaLevels), quotas: QuotasSchema }),
  /** It is about to be deleted if it is empty. No more agents can be registered in it. */
  NamespaceClosed: event({}),
  /** It was not empty, so it stays. */
  NamespaceReopened: event({}),
  /** Its records stay, and its name is not used again. */
  NamespaceDeleted: event({}),
} as const;
