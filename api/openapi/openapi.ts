import type { TSchema } from '@sinclair/typebox';
import type { JsonObject, JsonValue } from '../../domain/json.ts';
import type { DescribedTool } from '../dependencies.ts';
import { ErrorBody, mediaTypeOf, mediaTypesOf, schemaAs } from '../schemas/response-schemas.ts';
import { errorStatuses, type ErrorCode } from '../errors.ts';
import { isPublished, refusalsOf, type DescribedEndpoint } from './endpoint-outcomes.ts';
import { examples as ownExamples, type Examples } from './examples.ts';
import { errorExample } from './examples/errors.ts';
import {
  responseHeaders,
  headersOf,
  refsTo,
  requestHeaderComponents,
  requestHeaders,
  type ResponseHeader,
} from './openapi-headers.ts';
import { parametersOf } from './openapi-parameters.ts';
import { PublishedSchemas } from './openapi-schemas.ts';
import { tagOf, tags } from './openapi-tags.ts';
import { operationIdAt } from './operation-ids.ts';
import { describePipeline } from './pipeline-description.ts';

/**
 * Describes the interface as OpenAPI 3.1, from the endpoints.
 *
 * @param about.version of the service
 * @param about.tools the built-in tools
 * @throws Error if two different schemas share a title
 */
export function describeInterface(
  endpoints: readonly DescribedEndpoint[],
  about: { readonly version: string; readonly tools: readonly DescribedTool[] },
): JsonObject {
  const schemas = new PublishedSchemas();
  describePipeline(schemas, about.tools);
  const errors = errorResponses(schemas);
  const paths: Record<string, Record<string, JsonObject>> = {};
  for (const endpoint of endpoints.filter(isPublished)) {
    for (const [index, path] of endpoint.paths.entries()) {
      const operations = (paths[writtenAs(path)] ??= {});
      operations[endpoint.method] = operation(endpoint, index, schemas);
    }
  }
  return {
    openapi: '3.1.0',
    info: {
      title: 'Task scheduling service',
      version: about.version,
      description: 'Tasks on schedules and topics, their runs, and the agents that own them.',
      contact: { name: 'The operator of this service' },
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
    servers: [{ url: '/' }],
    tags,
    paths,
    components: {
      schemas: schemas.components,
      responses: errors,
      headers: responseHeaders,
      parameters: requestHeaderComponents,
      securitySchemes: {
        bearer: {
          type: 'http',
          scheme: 'bearer',
          bearerFormat: 'JWT',
          description: 'An access token of `POST /agents/auth/token`.',
        },
      },
    },
  };
}

/** Converts `/tasks/:id` to OpenAPI's form, without a trailing slash. */
const writtenAs = (path: string): string =>
  path.replaceAll(/:([A-Za-z_]+)/g, '{$1}').replace(/(?<=.)\/$/, '');

function operation(
  endpoint: DescribedEndpoint,
  index: number,
  schemas: PublishedSchemas,
): JsonObject {
  const { method, paths, summary, scopes, responses, operationId } = endpoint;
  const [first] = paths;
  const path = paths[index] ?? first;
  const shown = endpoint.examples ?? ownExamples[operationId] ?? {};
  const live =
    method === 'get' &&
    Object.values(responses).some((schema) => mediaTypeOf(schema) === 'text/event-stream');
  const same = index === 0 ? [] : [`The same as \`${method.toUpperCase()} ${writtenAs(first)}\`.`];
  const said = [endpoint.description ?? [], same, scopesText(endpoint)].flat();
  return {
    operationId: operationIdAt(operationId, index),
    summary,
    description: said.join('\n\n'),
    tags: [tagOf(path)],
    security: scopes === null ? [] : [{ bearer: [] }],
    ...(scopes === null ? {} : { 'x-required-scopes': scopes }),
    parameters: [
      ...parametersOf(endpoint, path, shown, schemas),
      ...requestHeaders(endpoint, live),
    ],
    ...requestBody(endpoint, shown, schemas),
    responses: { ...errorsOf(endpoint), ...responsesOf(endpoint, shown, schemas) },
  };
}

/** Any one of the scopes is enough. */
function scopesText({ scopes, acceptsOwn = false }: DescribedEndpoint): string {
  if (scopes === null) return 'No token is needed.';
  if (scopes.length === 0) return 'Any valid token is enough.';
  const needed = `Needs the scope ${scopes.map((scope) => `\`${scope}\``).join(' or ')}`;
  const own = scopes.map((scope) => `\`${scope}:own\``).join(' or ');
  const narrow = acceptsOwn ? ` With ${own}, it shows only the caller's own records.` : '';
  return `${scopes.includes('admin') ? `${needed}.` : `${needed}, or \`admin\`.`}${narrow}`;
}

function requestBody(
  { body, bodyOptional, oauth, operationId }: DescribedEndpoint,
  { body: example }: Examples,
  schemas: PublishedSchemas,
): JsonObject {
  if (body === undefined) return {};
  const fields = (body as { readonly required?: readonly string[] }).required ?? [];
  // A body of any type must still be present.
  const needed = fields.length > 0 || Object.keys(body).length === 0;
  const required = bodyOptional !== true && needed;
  const type = oauth === true ? 'application/x-www-form-urlencoded' : 'application/json';
  const content = { [type]: shownAs(schemas.requestSchema(body, operationId), example) };
  return { requestBody: { required, content } };
}

const shownAs = (schema: JsonObject, example: unknown): JsonObject => ({
  schema,
  ...(example === undefined ? {} : { example: example as JsonValue }),
});

function responsesOf(
  endpoint: DescribedEndpoint,
  { responses: shown = {}, otherMediaTypes = {} }: Examples,
  schemas: PublishedSchemas,
): JsonObject {
  const { summary, responses, operationId } = endpoint;
  return Object.fromEntries(
    Object.entries(responses).map(([status, schema]: [string, TSchema]) => {
      const type = mediaTypeOf(schema);
      const example = shown[Number(status)];
      const body =
        type === 'none'
          ? {}
          : {
              content: Object.fromEntries(
                mediaTypesOf(schema).map((each) => [
                  each,
                  shownAs(
                    schemas.responseSchema(schemaAs(schema, each), operationId),
                    each === type ? example : otherMediaTypes[each],
                  ),
                ]),
              ),
            };
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

const errorHeaders: Readonly<Partial<Record<ErrorCode, readonly ResponseHeader[]>>> = {
  unauthorized: ['WWW-Authenticate'],
  forbidden: ['WWW-Authenticate'],
  rate_limit_exceeded: ['Retry-After'],
  unavailable: ['Retry-After'],
};

function errorResponses(schemas: PublishedSchemas): JsonObject {
  const schema = schemas.responseSchema(ErrorBody);
  return Object.fromEntries(
    (Object.keys(errorStatuses) as ErrorCode[]).map((code) => {
      const headers = refsTo(['X-Request-Id', ...(errorHeaders[code] ?? [])]);
      const content = { 'application/json': shownAs(schema, errorExample(code)) };
      return [code, { description: code.replaceAll('_', ' '), headers, content }];
    }),
  );
}
