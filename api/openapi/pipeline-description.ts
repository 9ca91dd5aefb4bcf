import type { TSchema } from '@sinclair/typebox';
import type { JsonObject } from '../../domain/json.ts';
import { CallStepSchema, GroupStepSchema } from '../../domain/pipeline/pipeline.ts';
import type { DescribedTool } from '../dependencies.ts';
import { toolExamples } from './examples/tools.ts';
import type { PublishedSchemas } from './openapi-schemas.ts';

type Schema = Readonly<Record<string, unknown>>;

const ref = (name: string): JsonObject => ({ $ref: `#/components/schemas/${name}` });

const EXPRESSION = 'Expression';

/**
 * Adds the schemas of a task's payload: the pipeline, the steps of each built-in tool, and steps of unknown tools. As in
 * the service, an expression may replace any value.
 * @param tools the built-in ones
 */
export function describePipeline(schemas: PublishedSchemas, tools: readonly DescribedTool[]): void {
  const { uses, with: given, ...common } = CallStepSchema.properties;
  const published = (fields: object): JsonObject =>
    Object.fromEntries(
      Object.entries(fields).map(([name, field]) => [
        name,
        schemas.requestSchema(field as TSchema),
      ]),
    );
  for (const { name, description, schema } of tools) {
    const argumentsName = `${componentOf(name)}Arguments`;
    const takes = schemas.requestSchema(withExpressions(schema as Schema) as unknown as TSchema);
    const described = { description: `Arguments of \`${name}\`.`, ...takes };
    schemas.add(argumentsName, described);
    const { required = [], minProperties = 0 } = schema as {
      readonly required?: readonly string[];
      readonly minProperties?: number;
    };
    const needsArguments = required.length > 0 || minProperties > 0;
    schemas.add(`${componentOf(name)}Step`, {
      type: 'object',
      description,
      properties: {
        uses: { type: 'string', const: name, description: 'the tool' },
        with: {
          description: 'arguments of the tool, or an expression that yields them',
          anyOf: [ref(argumentsName), ref(EXPRESSION)],
        },
        ...published(common),
      },
      required: needsArguments ? ['uses', 'with'] : ['uses'],
      additionalProperties: false,
      examples: [exampleOf(name)],
    });
  }
  schemas.add(EXPRESSION, {
    type: 'string',
    pattern: String.raw`\$\{`,
    description:
      'A string that holds a JMESPath expression, `${…}`, over `now, params, steps, event, task, run, item, index, secrets`. A string that is only one expression keeps the type of its value.',
    examples: ['${params.limit}'],
  });
  const names = tools.map(({ name }) => name);
  const stepOf = (name: string): string => `${componentOf(name)}Step`;
  schemas.add('BuiltInStep', {
    description: 'A step that uses a built-in tool.',
    discriminator: {
      propertyName: 'uses',
      mapping: Object.fromEntries(names.map((name) => [name, ref(stepOf(name))['$ref'] ?? null])),
    },
    oneOf: names.map((name) => ref(stepOf(name))),
  });
  schemas.add('ExtensionStep', {
    type: 'object',
    description:
      'A step that uses the tool of an extension, `<extension>.<tool>`. An unknown tool is accepted with a warning.',
    properties: {
      uses: { ...schemas.requestSchema(uses), not: { enum: names } },
      with: schemas.requestSchema(given),
      ...published(common),
    },
    required: ['uses'],
    additionalProperties: false,
    examples: [{ uses: 'hello.greet', with: { name: 'Ada' } }],
  });
  const { parallel, ...ofGroup } = GroupStepSchema.properties;
  schemas.add('ParallelSteps', {
    type: 'object',
    description: 'A group of steps that run at the same time.',
    properties: {
      parallel: {
        ...schemas.requestSchema(parallel),
        items: { oneOf: [ref('BuiltInStep'), ref('ExtensionStep')] },
      },
      ...published(ofGroup),
    },
    required: ['parallel'],
    additionalProperties: false,
    examples: [
      {
        parallel: [
          { id: 'one', uses: 'echo', with: { n: 1 } },
          { id: 'two', uses: 'echo', with: { n: 2 } },
        ],
      },
    ],
  });
  schemas.add('Step', {
    description: 'A step of a pipeline.',
    oneOf: [ref('BuiltInStep'), ref('ExtensionStep'), ref('ParallelSteps')],
  });
  schemas.add('TaskPayload', {
    type: 'object',
    description: 'What a run of the task does. Unknown fields are kept and cause a warning.',
    properties: {
      pipeline: {
        type: 'array',
        items: ref('Step'),
        description: 'the steps, in order; an empty pipeline succeeds',
      },
      params: {
        type: 'object',
        additionalProperties: true,
        default: {},
        description: 'values that the steps read as `${params.<name>}`',
      },
    },
    required: ['pipeline'],
    additionalProperties: true,
  });
}

/** `http.request` is `HttpRequest`. */
const componentOf = (tool: string): string =>
  tool
    .split(/[^A-Za-z0-9]+/)
    .map((word) => word.slice(0, 1).toUpperCase() + word.slice(1))
    .join('');

/** Lets an expression replace each value inside a schema. */
function withExpressions(schema: Schema): Schema {
  const written: Record<string, unknown> = { ...schema };
  for (const keyword of ['properties', 'patternProperties'] as const) {
    const within = schema[keyword];
    if (isSchema(within)) {
      written[keyword] = Object.fromEntries(
        Object.entries(within).map(([name, part]) => [name, orExpression(part as Schema)]),
      );
    }
  }
  for (const keyword of ['items', 'additionalProperties'] as const) {
    const within = schema[keyword];
    if (isSchema(within)) written[keyword] = orExpression(within);
  }
  if (Array.isArray(schema['anyOf'])) {
    written['anyOf'] = (schema['anyOf'] as readonly Schema[]).map(withExpressions);
  }
  return written;
}

/** A value or an expression. Unchanged if any string is a value. */
function orExpression(schema: Schema): Schema {
  const { description, default: otherwise, ...value } = withExpressions(schema);
  if (takesAnyString(value)) return withExpressions(schema);
  const branches = Object.keys(value).join() === 'anyOf' ? (value['anyOf'] as Schema[]) : [value];
  return {
    ...(description === undefined ? {} : { description }),
    ...(otherwise === undefined ? {} : { default: otherwise }),
    anyOf: [...branches, ref(EXPRESSION)],
  };
}

function takesAnyString(schema: Schema): boolean {
  const { type, anyOf } = schema;
  if (Array.isArray(anyOf)) return (anyOf as readonly Schema[]).some(takesAnyString);
  if (type === undefined) return !('enum' in schema) && !('const' in schema);
  return (
    type === 'string' && !['enum', 'pattern', 'format', 'const'].some((each) => each in schema)
  );
}

const isSchema = (value: unknown): value is Schema =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

const exampleOf = (tool: string): JsonObject => ({
  uses: tool,
  ...(toolExamples[tool] as JsonObject | undefined),
});
