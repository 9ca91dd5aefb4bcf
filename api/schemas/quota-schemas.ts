import { Type, type Static } from '@sinclair/typebox';
import { Nullable, OneOf } from '../../domain/events/schema-parts.ts';
import { countQuotas, rateQuotas } from '../../domain/namespaces/quota-names.ts';
import { time } from './response-schemas.ts';

const count = Type.Integer({ minimum: 0 });

const QuotaUse = Type.Object(
  {
    quota: OneOf([...countQuotas, ...rateQuotas] as const),
    used: count,
    limit: Nullable(count),
    frees_at: Nullable(time),
  },
  { additionalProperties: false },
);

/** The usage of a namespace. */
export const NamespaceUsage = Type.Object(
  {
    namespace: Type.String(),
    weight: Type.Integer({ minimum: 1 }),
    unfinished_runs: Nullable(count),
    quotas: Type.Array(QuotaUse),
  },
  { title: 'NamespaceUsage', additionalProperties: false },
);
export type NamespaceUsage = Static<typeof NamespaceUsage>;
