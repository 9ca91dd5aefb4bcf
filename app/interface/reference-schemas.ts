import { isJsonObject, type JsonObject, type JsonValue } from '../../domain/json.ts';

const objectsIn = (value: JsonValue | undefined): readonly JsonObject[] =>
  Array.isArray(value) ? value.filter(isJsonObject) : [];

const code = (value: JsonValue): string =>
  `\`${typeof value === 'string' ? value : JSON.stringify(value)}\``;

/** The last segment of a reference: `#/components/schemas/Task` names `Task`. */
export const nameOf = (reference: string): string =>
  reference.slice(reference.lastIndexOf('/') + 1);

/** The value under a key of an object, as an object; an empty object without a value. */
export function objectAt(object: JsonObject, key: string): JsonObject {
  const value = object[key];
  return isJsonObject(value) ? value : {};
}

/** The objects of the list under a key; others are left out. */
export const listAt = (object: JsonObject, key: string): readonly JsonObject[] =>
  objectsIn(object[key]);

/** The string under a key; an empty string without a value. */
export function textAt(object: JsonObject, key: string): string {
  const value = object[key];
  return typeof value === 'string' ? value : '';
}

/** The number at a key; undefined if there is none. */
function numberAt(object: JsonObject, key: string): number | undefined {
  const value = object[key];
  return typeof value === 'number' ? value : undefined;
}

/** Bounds as a reader says them: `1 to 200`, `at least 1`, `at most 200`. */
function bounds(schema: JsonObject, low: string, high: string, unit = ''): readonly string[] {
  const [least, most] = [numberAt(schema, low), numberAt(schema, high)];
  const unbounded = most === undefined || most === Number.MAX_SAFE_INTEGER;
  if (least === undefined) return unbounded ? [] : [`at most ${most}${unit}`];
  if (unbounded) return least === 0 && unit !== '' ? [] : [`at least ${least}${unit}`];
  return [least === most ? `${least}${unit}` : `${least} to ${most}${unit}`];
}

/**
 * The type of a schema in a few words, with its bounds: `integer, 1 to 200`.
 * @param schema a schema of the OpenAPI document
 * @param link makes a link to a schema by its name
 */
export function typeOf(schema: JsonObject, link: (name: string) => string): string {
  const reference = textAt(schema, '$ref');
  if (reference !== '') return link(nameOf(reference));
  const choices = [...listAt(schema, 'anyOf'), ...listAt(schema, 'oneOf')];
  if (choices.length > 0) {
    return [...new Set(choices.map((choice) => typeOf(choice, link)))].join(' or ');
  }
  if (schema['const'] !== undefined) return code(schema['const']);
  const values = schema['enum'];
  if (Array.isArray(values)) return values.map(code).join(', ');
  const type = textAt(schema, 'type') || 'any JSON';
  if (type === 'array') {
    const items = typeOf(objectAt(schema, 'items'), link);
    return [`array of ${items}`, ...bounds(schema, 'minItems', 'maxItems', ' items')].join(', ');
  }
  const above = numberAt(schema, 'exclusiveMinimum');
  return [
    type,
    ...(textAt(schema, 'format') === '' ? [] : [textAt(schema, 'format')]),
    ...bounds(schema, 'minimum', 'maximum'),
    ...(above === undefined ? [] : [`more than ${above}`]),
    ...bounds(schema, 'minLength', 'maxLength', ' characters'),
  ].join(', ');
}

/**
 * One line of a list about a field or a parameter.
 * @param indent the depth of the line in nested lists
 */
export function fieldLine(
  name: string,
  schema: JsonObject,
  link: (name: string) => string,
  { required = false, description = textAt(schema, 'description'), indent = '' } = {},
): string {
  const traits = [
    typeOf(schema, link),
    ...(required ? ['required'] : []),
    ...(schema['default'] === undefined ? [] : [`default ${code(schema['default'])}`]),
  ];
  const meaning = description === '' ? '' : `: ${description.replaceAll('\n', ' ')}`;
  return `${indent}- \`${name}\` (${traits.join('; ')})${meaning}`;
}

/** The fields of a schema as lines of a list. Fields of nested objects follow the object's line. */
export function fieldLines(
  schema: JsonObject,
  link: (name: string) => string,
  isResponse = false,
  indent = '',
): readonly string[] {
  const required = schema['required'];
  const names = Array.isArray(required) ? required : [];
  return Object.entries(objectAt(schema, 'properties')).flatMap(([name, value]) => {
    if (!isJsonObject(value)) return [];
    const options = { required: !isResponse && names.includes(name), indent };
    const inner = textAt(value, 'type') === 'array' ? objectAt(value, 'items') : value;
    return [
      fieldLine(name, value, link, options),
      ...fieldLines(inner, link, isResponse, `${indent}  `),
    ];
  });
}
