import type { TSchema } from '@sinclair/typebox';
import type { JsonObject, JsonValue } from '../../domain/json.ts';
import { fieldDescription } from './field-descriptions.ts';

/** Keywords whose values are schemas: one, a list, or a map. */
const one = ['items', 'additionalProperties', 'not'];
const lists = ['anyOf', 'allOf', 'oneOf'];
const byName = ['properties'];

/** TypeBox's pattern for a record with any keys. */
const ANY_KEY = '^(.*)$';

/**
 * Converts the service's schemas to OpenAPI 3.1. A schema with a title becomes a component. Internal formats become public
 * ones. Each field gets its description.
 */
export class PublishedSchemas {
  readonly #components = new Map<string, JsonObject>();
  /** Components that replace the schema of their title. */
  readonly #added = new Set<string>();

  /** The components found so far, by name. */
  get components(): JsonObject {
    return Object.fromEntries(
      [...this.#components].sort(([a], [b]) => (a < b ? -1 : 1)),
    ) as JsonObject;
  }

  /** Adds a component. Schemas with that title refer to it. */
  add(title: string, schema: JsonObject): void {
    this.#components.set(title, schema);
    this.#added.add(title);
  }

  /** Converts a request schema, in which unknown fields are errors. @param within name of the schema's owner */
  requestSchema(schema: TSchema, within = ''): JsonObject {
    return this.#publish(schema, false, within);
  }

  /** Converts a response schema. Later versions may add fields. */
  responseSchema(schema: TSchema, within = ''): JsonObject {
    return this.#publish(schema, true, within);
  }

  #publish(schema: TSchema, open: boolean, within: string): JsonObject {
    const { title } = schema;
    if (title === undefined) return this.#written(schema, open, within);
    if (!this.#added.has(title)) this.#put(title, schema, open);
    return { $ref: `#/components/schemas/${title}` };
  }

  #put(title: string, schema: TSchema, open: boolean): void {
    const { title: _title, ...written } = this.#written(schema, open, title);
    const description = fieldDescription(title, schema);
    const described = { ...(description === undefined ? {} : { description }), ...written };
    const known = this.#components.get(title);
    if (known !== undefined && JSON.stringify(known) !== JSON.stringify(described)) {
      throw new Error(`two schemas have the title ${title}`);
    }
    this.#components.set(title, described);
  }

  /** @param within `Task`, or `Projection.rebuild` for a nested field */
  #written(schema: TSchema, open: boolean, within: string): JsonObject {
    const written: Record<string, JsonValue> = {};
    const put = (part: unknown): JsonValue =>
      typeof part === 'object' && part !== null
        ? this.#publish(part as TSchema, open, within)
        : (part as JsonValue);
    for (const [key, value] of Object.entries(schema) as [string, unknown][]) {
      if (key === 'additionalProperties' && value === false && open) continue;
      if (key === 'patternProperties') {
        // JSON.stringify turns a schema without constraints into `{}`.
        written['additionalProperties'] = put((value as Record<string, unknown>)[ANY_KEY] ?? true);
      } else if (key === 'format' && value === 'http-url') {
        written[key] = 'uri';
      } else if (key === 'format' && value === 'well-formed') {
        continue;
      } else if (one.includes(key)) {
        written[key] = put(value);
      } else if (lists.includes(key)) {
        written[key] = (value as readonly unknown[]).map(put);
      } else if (byName.includes(key)) {
        const named = Object.entries(value as Record<string, TSchema>);
        written[key] = Object.fromEntries(
          named.map(([name, part]) => [name, this.#field(part, open, `${within}.${name}`)]),
        );
      } else {
        written[key] = value as JsonValue;
      }
    }
    const isOpen = schema['type'] === 'object' && !('additionalProperties' in schema);
    return isOpen ? { additionalProperties: true, ...written } : written;
  }

  #field(schema: TSchema, open: boolean, path: string): JsonObject {
    const description = fieldDescription(path, schema);
    const written = this.#publish(schema, open, path);
    return description === undefined ? written : { ...written, description };
  }
}
