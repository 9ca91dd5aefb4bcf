/** The schema of a tool's parameters in the form of the Model Context Protocol. */
export interface InputSchema {
  readonly type: 'object';
  readonly properties: Readonly<Record<string, object>>;
  readonly [keyword: string]: unknown;
}

type Schema = Readonly<Record<string, unknown>>;

/** Keywords whose values are schemas: one, a list, or a map. */
const single = [
  'additionalProperties',
  'contains',
  'else',
  'if',
  'items',
  'not',
  'propertyNames',
  'then',
  'unevaluatedItems',
  'unevaluatedProperties',
];
const lists = ['allOf', 'anyOf', 'oneOf', 'prefixItems'];
const byName = ['$defs', 'definitions', 'dependentSchemas', 'patternProperties', 'properties'];

/** Keywords for arrays. */
const ofArrays = ['contains', 'maxItems', 'minItems', 'prefixItems', 'uniqueItems'];

/**
 * Clients support only part of JSON Schema, and reject the whole list of tools for one schema beyond that. So each
 * property becomes an object (`true` becomes `{}`, `false` becomes `{"not": {}}`). Each array gets a single schema as
 * `items` (a list becomes `prefixItems`). Keywords of the wrong type are removed.
 * @param schema JSON schema of an object
 */
export function inputSchemaOf(schema: object): InputSchema {
  const { properties, required, ...rest } = schema as Schema;
  return {
    ...plain(rest),
    properties: isObject(properties) ? named(properties, asObject) : {},
    type: 'object',
    ...(isListOfStrings(required) ? { required } : {}),
  };
}

function plain(schema: Schema): Schema {
  const written: Record<string, unknown> = {};
  for (const [keyword, value] of Object.entries(schema)) {
    if (keyword === 'items' && Array.isArray(value)) {
      written['prefixItems'] = value.map(asObject);
      written['items'] = asObject(schema['additionalItems']);
    } else if (keyword === 'additionalItems' && Array.isArray(schema['items'])) {
      continue;
    } else if (keyword === 'items') {
      written[keyword] = asObject(value);
    } else if (single.includes(keyword)) {
      written[keyword] = isObject(value) ? plain(value) : value;
    } else if (lists.includes(keyword) && Array.isArray(value)) {
      written[keyword] = value.map(asObject);
    } else if (byName.includes(keyword) && isObject(value)) {
      written[keyword] = named(value, keyword === 'properties' ? asObject : asSchema);
    } else {
      written[keyword] = value;
    }
  }
  return isArray(schema) && !('items' in written) ? { ...written, items: {} } : written;
}

/** Whether a schema describes arrays, by its type or its keywords. */
function isArray(schema: Schema): boolean {
  const { type } = schema;
  if (type === undefined) return ofArrays.some((keyword) => keyword in schema);
  return type === 'array' || (Array.isArray(type) && type.includes('array'));
}

function named(schemas: Schema, written: (schema: unknown) => unknown): Record<string, object> {
  return Object.fromEntries(
    Object.entries(schemas).map(([name, schema]) => [name, written(schema) as object]),
  );
}

const asSchema = (schema: unknown): unknown => (isObject(schema) ? plain(schema) : schema);

function asObject(schema: unknown): object {
  if (isObject(schema)) return plain(schema);
  return schema === false ? { not: {} } : {};
}

const isObject = (value: unknown): value is Schema =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

const isListOfStrings = (value: unknown): boolean =>
  Array.isArray(value) && value.every((each) => typeof each === 'string');
