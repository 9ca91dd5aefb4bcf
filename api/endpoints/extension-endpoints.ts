import type { TSchema } from '@sinclair/typebox';
import { ExtensionHealth, ExtensionStatus } from '../schemas/answer-schemas-extensions.ts';
import type { AnswerHeader, Method } from '../endpoint.ts';
import type { DescribedEndpoint } from '../openapi/endpoint-outcomes.ts';
import type { ErrorCode } from '../errors.ts';
import type { Examples } from '../openapi/examples.ts';
import { operationIdFrom } from '../openapi/operation-ids.ts';

/** What is served of extensions, whichever there are. */
export const hostEndpoints: readonly DescribedEndpoint[] = [
  {
    method: 'get',
    paths: ['/ext/status'],
    operationId: 'getExtensionStatus',
    summary: 'The extensions of this process, and how they are',
    scopes: null,
    answers: { 200: ExtensionStatus },
  },
  {
    method: 'get',
    paths: ['/ext/:extension_id/health'],
    operationId: 'getExtensionHealth',
    summary: 'How an extension is',
    scopes: [],
    answers: { 200: ExtensionHealth },
    refusals: ['not_found', 'gateway_timeout'],
  },
];

/** An extension and what it says of its endpoints, in the form of the extensions' contract. */
export interface DescribingExtension {
  readonly id: string;
  /** Whether it is answered for with 504 where it does not answer in its time. */
  readonly isLimited: boolean;
  readonly endpoints: readonly {
    readonly method: Method;
    /** Below `/ext/<id>`. */
    readonly path: string;
    readonly operationId?: string;
    readonly summary: string;
    readonly description?: string;
    readonly examples?: Examples;
    readonly scopes: readonly string[] | null;
    readonly query?: object;
    readonly body?: object;
    readonly answers: Readonly<Record<number, object>>;
    readonly answerHeaders?: readonly AnswerHeader[];
    readonly idempotent?: boolean;
    readonly refusals?: readonly ErrorCode[];
  }[];
}

/**
 * The endpoints of an extension as the interface has its own. `{"$ref": "Task"}` in their schemas is the service's own
 * schema of that title; titles of theirs are left out, as they could be those of others.
 *
 * @param core the service's own endpoints
 * @throws Error for a schema of a title that the service has not
 */
export function endpointsOf(
  { id, isLimited, endpoints }: DescribingExtension,
  core: readonly DescribedEndpoint[],
): readonly DescribedEndpoint[] {
  const known = titled(core);
  return endpoints.map(({ path, query, body, answers, ...rest }) => ({
    ...rest,
    operationId: rest.operationId ?? operationIdFrom(rest.method, `/${id}${path}`),
    refusals: [
      'not_found',
      ...(isLimited ? (['gateway_timeout'] as const) : []),
      ...(rest.refusals ?? []),
    ],
    paths: [`/ext/${id}${path}`],
    ...(query === undefined ? {} : { query: schemaOf(query, known) }),
    ...(body === undefined ? {} : { body: schemaOf(body, known) }),
    answers: Object.fromEntries(
      Object.entries(answers).map(([status, answer]) => [status, schemaOf(answer, known)]),
    ),
  }));
}

/** The schemas of the service that clients know by a name. */
function titled(core: readonly DescribedEndpoint[]): ReadonlyMap<string, TSchema> {
  const found = new Map<string, TSchema>();
  for (const { body, answers } of core) {
    for (const schema of [body, ...Object.values(answers)]) {
      if (schema?.title !== undefined) found.set(schema.title, schema);
    }
  }
  return found;
}

function schemaOf(said: object, known: ReadonlyMap<string, TSchema>): TSchema {
  return resolved(said, known) as TSchema;
}

function resolved(value: unknown, known: ReadonlyMap<string, TSchema>, named = false): unknown {
  if (Array.isArray(value)) return value.map((each: unknown) => resolved(each, known));
  if (typeof value !== 'object' || value === null) return value;
  const { $ref: name } = value as { readonly $ref?: unknown };
  if (typeof name === 'string' && !named) {
    const schema = known.get(name);
    if (schema === undefined) throw new Error(`the service has no schema ${name}`);
    return schema;
  }
  return Object.fromEntries(
    Object.entries(value)
      // A property may be called so; what is not one is the schema's own.
      .filter(([key]) => named || key !== 'title')
      .map(([key, part]) => [key, resolved(part, known, key === 'properties' && !named)]),
  );
}
