import type { DataOf } from '../../../domain/events/catalogue.ts';
import type { namespaceEvents } from '../../../domain/events/namespace-events.ts';

/** Samples of the events of namespaces. */
export const namespaceSamples: {
  readonly [Type in keyof typeof namespaceEvents]: readonly DataOf<Type>[];
} = {
  NamespaceCreated: [{ description: null }, { description: 'Reports of the shop' }],
  NamespaceUpdated: [{ description: null }],
  NamespaceQuotasSet: [
    { level: 'bounds', quotas: { weight: 2, tasks: 10, artifact_bytes: 0 } },
    { level: 'own', quotas: {} },
  ],
  NamespaceClosed: [{}],
  NamespaceReopened: [{}],
  NamespaceDeleted: [{}],
};
