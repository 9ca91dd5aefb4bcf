import { Type, type Static } from '@sinclair/typebox';
import { Nullable } from '../../domain/events/schema-parts.ts';
import { NAMESPACE_PATTERN } from '../../domain/namespaces/namespace.ts';
import { QuotasSchema } from '../../domain/namespaces/quotas.ts';
import { pageParameters } from '../endpoints/listing.ts';
import { done, time } from './response-schemas.ts';

const name = Type.String({
  pattern: NAMESPACE_PATTERN,
  description: '1 to 63 of a-z 0-9 -, beginning with a letter, not ending with -',
});
const description = Nullable(Type.String({ minLength: 1, maxLength: 2000 }));

/** The quotas of a response, and those of a request. */
const quotasOf = (title: 'NamespaceQuotas' | 'SetQuotas') =>
  Type.Object(QuotasSchema.properties, { title, additionalProperties: false });
const NamespaceQuotas = quotasOf('NamespaceQuotas');
const SetQuotas = quotasOf('SetQuotas');

export const CreateNamespace = Type.Object(
  { name, description: Type.Optional(description), quotas: Type.Optional(SetQuotas) },
  { title: 'CreateNamespace', additionalProperties: false },
);
export type CreateNamespace = Static<typeof CreateNamespace>;

export const UpdateNamespace = Type.Object(
  { description: Type.Optional(description), quotas: Type.Optional(SetQuotas) },
  { title: 'UpdateNamespace', additionalProperties: false, minProperties: 1 },
);
export type UpdateNamespace = Static<typeof UpdateNamespace>;

const { limit, cursor } = pageParameters;
export const NamespaceQuery = Type.Object({ limit, cursor });
export type NamespaceQuery = Static<typeof NamespaceQuery>;

export const Namespace = Type.Object(
  {
    name: Type.String(),
    description: Nullable(Type.String()),
    created_at: Type.Union([time, Type.Null()], {
      description: 'null for `default`, which exists from the start',
    }),
    updated_at: Nullable(time),
    quotas: NamespaceQuotas,
    quota_bounds: NamespaceQuotas,
    own_quotas: NamespaceQuotas,
  },
  { title: 'Namespace', additionalProperties: false },
);
export type Namespace = Static<typeof Namespace>;

export const NamespacePage = Type.Object(
  { items: Type.Array(Namespace), next_cursor: Nullable(Type.String()) },
  { title: 'NamespacePage', additionalProperties: false },
);
export type NamespacePage = Static<typeof NamespacePage>;

export const NamespaceDeleted = done({ name: Type.String() });
export type NamespaceDeleted = Static<typeof NamespaceDeleted>;
