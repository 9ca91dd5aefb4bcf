import type { TSchema } from '@sinclair/typebox';
import { ExtensionHealth, ExtensionStatus } from '../schemas/response-schemas-extensions.ts';
import type { ResponseHeader, Method } from '../endpoint.ts';
import type { DescribedEndpoint } from '../openapi/endpoint-outcomes.ts';
import type { ErrorCode } from '../errors.ts';
import type { Examples } from '../openapi/examples.ts';
import { operationIdFrom } from '../openapi/operation-ids.ts';

/** The endpoints that the host of the extensions serves itself. */
export const hostEndpoints: readonly DescribedEndpoint[] = [
  {
    method: 'get',
    paths: ['/ext/status'],
    operationId: 'getExtensionStatus',
    summary: 'Shows the extensions of this process and their health',
    scopes: null,
    responses: { 200: ExtensionStatus },
  },
  {
    method: 'get',
    paths: ['/ext/:extension_id/health'],
    operationId: 'getExtensionHealth',
    summary: 'Shows the health of an extension',
    scopes: [],
    responses: { 200: ExtensionHealth },
    refusals: ['not_found', 'gateway_timeout'],
  },
];

/** An extension and its endpoints, in the form of the extensions' contract. */
export interface DescribingExtension {
  readonly id: string;
  /** Whether its requests time out with 504. */
  readonly isLimited: boolean;
  readonly endpoints: readonly {
    readonly method: Method;
    /** Below `/ext/<id>`. */
    readonly path: string;
    readonly operationId?: string;
    readonly summary: string;
    readonly description?: string;
    readonly examples?: Omit<Examples, 'responses'> & {
      readonly answers?: Examples['responses'];
    };
    readonly scopes: readonly string[] | null;
    readonly query?: object;
    readonly body?: object;
    readonly answers: Readonly<Record<number, object>>;
    readonly answerHeaders?: readonly ResponseHeader[];
    readonly idempotent?: boolean;
    readonly refusals?: readonly ErrorCode[];
  }[];
}

/**
 * The endpoints of an extension in the form of the service's own. `{"$ref": "Task"}` in a schema refers to the
 * service's schema of that title. Their own titles are removed, because they might clash.
 * @param core the service's own endpoints
 * @throws Error for an unknown title
 */
export function endpointsOf(
  { id, isLimited, endpoints }: DescribingExtension,
  core: readonly DescribedEndpoint[],
): readonly DescribedEndpoint[] {
  const known = titledSchemas(core);
  return endpoints.map(({ path, query, body, answers, answerHeaders, examples, ...rest }) => ({
    ...rest,
    operationId: rest.operationId ?? operationIdFrom(rest.method, `/${id}${path}`),
    refusals: [
      'not_found',
      ...(isLimited ? (['gateway_timeout'] as const) : []),
      ...(rest.refusals ?? []),
    ],
    paths: [`/ext/${id}${path}`],
    ...(query === undefined ? {} : { query: resolve(query, known) as TSchema }),
    ...(body === undefined ? {} : { body: resolve(body, known) as TSchema }),
    ...(answerHeaders === undefined ? {} : { responseHeaders: answerHeaders }),
    ...(examples === undefined ? {} : { examples: examplesOf(examples) }),
    responses: Object.fromEntries(
      Object.entries(answers).map(([status, schema]) => [
        status,
        resolve(schema, known) as TSchema,
      ]),
    ),
  }));
}

function examplesOf({
  answers,
  ...rest
}: NonNullable<DescribingExtension['endpoints'][number]['examples']>): Examples {
  return answers === undefined ? rest : { ...rest, responses: answers };
}

function titledSchemas(core: readonly DescribedEndpoint[]): ReadonlyMap<string, TSchema> {
  const found = new Map<string, TSchema>();
  for (const { body, responses } of core) {
    for (const schema of [body, ...Object.values(responses)]) {
      if (schema?.title !== undefined) found.set(schema.title, schema);
    }
  }
  return found;
}

/** @param areProperties whether the value's keys are names of properties instead of keywords of a schema */
function resolve(
  value: unknown,
  known: ReadonlyMap<string, TSchema>,
  areProperties = false,
): unknown {
  if (Array.isArray(value)) return value.map((each: unknown) => resolve(each, known));
  if (typeof value !== 'object' || value === null) return value;
  const { $ref: name } = value as { readonly $ref?: unknown };
  if (typeof name === 'string' && !areProperties) {
    const schema = known.get(name);
    if (schema === undefined) throw new Error(`$ref: the service has no schema ${name}`);
    return schema;
  }
  return Object.fromEntries(
    Object.entries(value)
      .filter(([key]) => areProperties || key !== 'title')
      .map(([key, part]) => [key, resolve(part, known, key === 'properties' && !areProperties)]),
  );
}
