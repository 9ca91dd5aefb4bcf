import type * as Namespaces from '../schemas/namespace-schemas.ts';
import type { Api } from './client.ts';

/** Namespaces, for admins and for administrators of a namespace. */
export const namespaces = ({ read, readOne, send, sendTo, act }: Api) => ({
  list: read<Namespaces.NamespacePage, Namespaces.NamespaceQuery>('/namespaces'),
  get: readOne<Namespaces.Namespace>('/namespaces/:name'),
  create: send<Namespaces.Namespace, Namespaces.CreateNamespace>('POST', '/namespaces'),
  update: sendTo<Namespaces.Namespace, Namespaces.UpdateNamespace>('PUT', '/namespaces/:name'),
  delete: act<Namespaces.NamespaceDeleted>('DELETE', '/namespaces/:name'),
});
