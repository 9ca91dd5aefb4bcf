import type { TSchema } from '@sinclair/typebox';
import type { JsonObject, JsonValue } from '../../domain/json.ts';
import { isIdentifier, type DescribedEndpoint } from './endpoint-outcomes.ts';
import type { Examples } from './examples.ts';
import { parameterExamples } from './examples/parameters.ts';
import { fieldDescription } from './field-descriptions.ts';
import type { PublishedSchemas } from './openapi-schemas.ts';

/** The parameters of an operation's path and query, each with its description and an example. */
export function parametersOf(
  endpoint: DescribedEndpoint,
  path: string,
  { parameters: shown = {} }: Examples,
  schemas: PublishedSchemas,
): readonly JsonObject[] {
  const { operationId, query } = endpoint;
  const about = (name: string, schema: TSchema): JsonObject => {
    const description = fieldDescription(`${operationId}.${name}`, schema);
    const example = shown[name] ?? parameterExamples[name];
    return {
      ...(description === undefined ? {} : { description }),
      ...(example === undefined ? {} : { example: example as JsonValue }),
    };
  };
  const { properties = {}, required = [] } = (query ?? {}) as {
    readonly properties?: Readonly<Record<string, TSchema>>;
    readonly required?: readonly string[];
  };
  return [
    ...namesIn(path).map((name) => {
      const schema = pathSchema(name);
      return { name, in: 'path', required: true, ...about(name, schema as TSchema), schema };
    }),
    ...Object.entries(properties).map(([name, schema]) => ({
      name,
      in: 'query',
      // A parameter with a default is required inside the service and optional for clients.
      required: required.includes(name) && schema['default'] === undefined,
      ...about(name, schema),
      schema: schemas.requestSchema(schema),
    })),
  ];
}

const namesIn = (path: string): readonly string[] =>
  path
    .split('/')
    .filter((segment) => segment.startsWith(':'))
    .map((segment) => segment.slice(1));

const pathSchema = (name: string): JsonObject =>
  isIdentifier(`:${name}`) ? { type: 'string', format: 'uuid' } : { type: 'string', minLength: 1 };
