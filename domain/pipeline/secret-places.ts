import { isJsonObject, type JsonValue } from '../json.ts';
import type { Expression } from './expression.ts';

/** A secret in a step's arguments, and its place. */
export interface SecretPlace {
  readonly name: string;
  /** The keys and indexes that lead to its string. */
  readonly path: readonly (string | number)[];
}

/** The secret that a placeholder refers to; null for any other expression. */
export function placedSecret({ path }: Pick<Expression, 'path'>): string | null {
  const [root, name, ...rest] = path ?? [];
  return root === 'secrets' && name !== undefined && rest.length === 0 ? name : null;
}

/** The most references followed in a schema. A cycle would never end. */
const MAX_REFERENCES = 20;

/** Whether the schema of a tool's arguments marks a place, or a place that contains it, with `x-secret`. */
export function takesSecret(schema: object, path: readonly (string | number)[]): boolean {
  return isMarked(schema as JsonValue, path, schema as JsonValue, MAX_REFERENCES);
}

function isMarked(
  schema: JsonValue | undefined,
  path: readonly (string | number)[],
  whole: JsonValue,
  references: number,
): boolean {
  if (!isJsonObject(schema)) return false;
  if (schema['x-secret'] === true) return true;
  const within = (part: JsonValue | undefined, rest = path): boolean =>
    isMarked(part, rest, whole, references);
  const reference = schema['$ref'];
  if (typeof reference === 'string' && references > 0) {
    const found = referenced(whole, reference);
    if (isMarked(found, path, whole, references - 1)) return true;
  }
  for (const keyword of ['anyOf', 'oneOf', 'allOf']) {
    const branches = schema[keyword];
    if (Array.isArray(branches) && branches.some((branch: JsonValue) => within(branch)))
      return true;
  }
  const [key, ...rest] = path;
  if (key === undefined) return false;
  if (typeof key === 'number') {
    const { prefixItems, items } = schema;
    const own = Array.isArray(prefixItems)
      ? (prefixItems[key] as JsonValue | undefined)
      : undefined;
    return within(own ?? items, rest);
  }
  const { properties, additionalProperties } = schema;
  if (isJsonObject(properties) && Object.hasOwn(properties, key)) {
    return within(properties[key], rest);
  }
  return within(additionalProperties, rest);
}

/** The part of a schema that a reference such as `#/$defs/token` names; undefined if there is none. */
function referenced(whole: JsonValue, reference: string): JsonValue | undefined {
  if (!reference.startsWith('#')) return undefined;
  let found: JsonValue | undefined = whole;
  for (const part of reference.slice(1).split('/').slice(1)) {
    const name = part.replaceAll('~1', '/').replaceAll('~0', '~');
    found = isJsonObject(found) && Object.hasOwn(found, name) ? found[name] : undefined;
  }
  return found;
}
