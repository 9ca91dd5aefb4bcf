import type { TSchema } from '@sinclair/typebox';
import type { JsonObject } from '../../domain/json.ts';
import { ErrorBody, mediaTypeOf } from '../schemas/answer-schemas.ts';
import { isIdentifier, refusalsOf, type DescribedEndpoint } from './endpoint-outcomes.ts';
import { errorStatuses, type ErrorCode } from '../errors.ts';
import {
  answeredHeaders,
  headersOf,
  refsTo,
  sentHeaders,
  takenHeaders,
  type AnsweredHeader,
} from './openapi-headers.ts';
import { PublishedSchemas } from './openapi-schemas.ts';

/**
 * The interface as OpenAPI 3.1 describes it, from the endpoints themselves.
 *
 * @param version of the service
 * @throws Error for two schemas of one title
 */
export function describeInterface(
  endpoints: readonly DescribedEndpoint[],
  version: string,
): JsonObject {
  const schemas = new PublishedSchemas();
  const errors = errorResponses(schemas);
  const paths: Record<string, Record<string, JsonObject>> = {};
  for (const endpoint of endpoints) {
    for (const path of endpoint.paths) {
      const operations = (paths[writtenAs(path)] ??= {});
      operations[endpoint.method] = operation(endpoint, path, schemas);
    }
  }
  return {
    openapi: '3.1.0',
    info: {
      title: 'Task scheduling service',
      version,
      description: 'Tasks on schedules and topics, their runs, and the agents that own them.',
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
    servers: [{ url: '/' }],
    paths,
    components: {
      schemas: schemas.components,
      responses: errors,
      headers: answeredHeaders,
      parameters: sentHeaders,
      securitySchemes: { bearer: { type: 'http', scheme: 'bearer', bearerFormat: 'JWT' } },
    },
  };
}

/** `/tasks/:id` as OpenAPI writes it. */
const writtenAs = (path: string): string => path.replaceAll(/:([A-Za-z_]+)/g, '{$1}');

function operation(
  endpoint: DescribedEndpoint,
  path: string,
  schemas: PublishedSchemas,
): JsonObject {
  const { summary, scopes, query, answers } = endpoint;
  const streamed = Object.values(answers).some(
    (schema) => mediaTypeOf(schema) === 'text/event-stream',
  );
  const live = streamed && endpoint.method === 'get';
  const parameters = [
    ...pathParameters(path),
    ...queryParameters(query, schemas),
    ...takenHeaders(endpoint, live),
  ];
  return {
    operationId: operationIdOf(endpoint.method, path),
    summary,
    ...(scopes === null ? {} : { description: scopesText(scopes) }),
    tags: [tagOf(path)],
    security: securityOf(scopes),
    parameters,
    ...requestBody(endpoint, schemas),
    responses: { ...errorsOf(endpoint), ...answersOf(endpoint, schemas) },
  };
}

/** `GET /task/{task_id}/latest` is `getTaskByTaskIdLatest`. */
function operationIdOf(method: string, path: string): string {
  const words = path
    .split('/')
    .filter((segment) => segment !== '')
    .map((segment) => (segment.startsWith(':') ? `by_${segment.slice(1)}` : segment))
    .flatMap((segment) => segment.split(/[^A-Za-z0-9]+/));
  return method + words.map((word) => word.slice(0, 1).toUpperCase() + word.slice(1)).join('');
}

/** Paths that belong to another resource than they begin with. */
const tags: Readonly<Record<string, string>> = {
  task: 'runs',
  stats: 'statistics',
  topics: 'events',
  stream: 'events',
  health: 'service',
  ext: 'extensions',
  docs: 'service',
  'openapi.json': 'service',
};

function tagOf(path: string): string {
  const [, first = ''] = path.split('/');
  return tags[first] ?? first;
}

function scopesText(scopes: readonly string[]): string {
  if (scopes.length === 0) return 'Any valid token.';
  const needed = `Scope ${scopes.map((scope) => `\`${scope}\``).join(' or ')}`;
  return scopes.includes('admin') ? `${needed}.` : `${needed}; \`admin\` implies all.`;
}

/** Any one of the scopes is enough. */
function securityOf(scopes: readonly string[] | null): readonly JsonObject[] {
  if (scopes === null) return [];
  return scopes.length === 0 ? [{ bearer: [] }] : scopes.map((scope) => ({ bearer: [scope] }));
}

function pathParameters(path: string): readonly JsonObject[] {
  return path
    .split('/')
    .filter((segment) => segment.startsWith(':'))
    .map((segment) => ({
      name: segment.slice(1),
      in: 'path',
      required: true,
      schema: isIdentifier(segment)
        ? { type: 'string', format: 'uuid' }
        : { type: 'string', minLength: 1 },
    }));
}

function queryParameters(
  query: TSchema | undefined,
  schemas: PublishedSchemas,
): readonly JsonObject[] {
  const { properties = {}, required = [] } = (query ?? {}) as {
    readonly properties?: Readonly<Record<string, TSchema>>;
    readonly required?: readonly string[];
  };
  return Object.entries(properties).map(([name, schema]) => ({
    name,
    in: 'query',
    // What has a default is always there for the endpoint, and never needed from the client.
    required: required.includes(name) && schema['default'] === undefined,
    schema: schemas.taken(schema),
  }));
}

function requestBody(
  { body, bodyOptional }: DescribedEndpoint,
  schemas: PublishedSchemas,
): JsonObject {
  if (body === undefined) return {};
  const fields = (body as { readonly required?: readonly string[] }).required ?? [];
  // What may be anything is at least there.
  const needed = fields.length > 0 || Object.keys(body).length === 0;
  const required = bodyOptional !== true && needed;
  const content = { 'application/json': { schema: schemas.taken(body) } };
  return { requestBody: { required, content } };
}

function answersOf(endpoint: DescribedEndpoint, schemas: PublishedSchemas): JsonObject {
  const { summary, answers } = endpoint;
  return Object.fromEntries(
    Object.entries(answers).map(([status, schema]) => {
      const type = mediaTypeOf(schema);
      // Of what has no body there is nothing more to say.
      const body =
        type === 'none' ? {} : { content: { [type]: { schema: schemas.answered(schema) } } };
      return [status, { description: summary, headers: headersOf(endpoint), ...body }];
    }),
  );
}

function errorsOf(endpoint: DescribedEndpoint): JsonObject {
  return Object.fromEntries(
    refusalsOf(endpoint).map((code) => [
      String(errorStatuses[code]),
      { $ref: `#/components/responses/${code}` },
    ]),
  );
}

const errorHeaders: Readonly<Partial<Record<ErrorCode, readonly AnsweredHeader[]>>> = {
  unauthorized: ['WWW-Authenticate'],
  rate_limit_exceeded: ['Retry-After'],
  unavailable: ['Retry-After'],
};

function errorResponses(schemas: PublishedSchemas): JsonObject {
  const content = { 'application/json': { schema: schemas.answered(ErrorBody) } };
  return Object.fromEntries(
    Object.keys(errorStatuses).map((code) => {
      const headers = refsTo(['X-Request-Id', ...(errorHeaders[code as ErrorCode] ?? [])]);
      return [code, { description: code.replaceAll('_', ' '), headers, content }];
    }),
  );
}
