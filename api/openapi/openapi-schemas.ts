import type { TSchema } from '@sinclair/typebox';
import type { JsonObject, JsonValue } from '../../domain/json.ts';

/** Parts of a schema that are schemas: one, a list, or by name. */
const one = ['items', 'additionalProperties', 'not'];
const lists = ['anyOf', 'allOf', 'oneOf'];
const byName = ['properties'];

/** What TypeBox makes of a record whose keys may be anything. */
const ANY_KEY = '^(.*)$';

/**
 * Puts schemas of this service as OpenAPI 3.1 has them: those with a title become components of that name, formats
 * that only this service knows become public ones.
 */
export class PublishedSchemas {
  readonly #components = new Map<string, JsonObject>();

  /** The components that were met so far, by name. */
  get components(): JsonObject {
    return Object.fromEntries(
      [...this.#components].sort(([a], [b]) => (a < b ? -1 : 1)),
    ) as JsonObject;
  }

  /** Of what a client sends: an unknown field is a fault. */
  taken(schema: TSchema): JsonObject {
    return this.#publish(schema, false);
  }

  /** Of what it is answered: later versions may have more fields. */
  answered(schema: TSchema): JsonObject {
    return this.#publish(schema, true);
  }

  #publish(schema: TSchema, open: boolean): JsonObject {
    const { title } = schema;
    if (title === undefined) return this.#written(schema, open);
    const written = this.#written(schema, open);
    const known = this.#components.get(title);
    if (known !== undefined && JSON.stringify(known) !== JSON.stringify(written)) {
      throw new Error(`two schemas have the title ${title}`);
    }
    this.#components.set(title, written);
    return { $ref: `#/components/schemas/${title}` };
  }

  #written(schema: TSchema, open: boolean): JsonObject {
    const written: Record<string, JsonValue> = {};
    const put = (part: unknown): JsonValue =>
      typeof part === 'object' && part !== null
        ? this.#publish(part as TSchema, open)
        : (part as JsonValue);
    for (const [key, value] of Object.entries(schema) as [string, unknown][]) {
      if (key === 'additionalProperties' && value === false && open) continue;
      if (key === 'patternProperties') {
        // JSON.stringify leaves nothing of a schema that takes everything but `{}`.
        written['additionalProperties'] = put((value as Record<string, unknown>)[ANY_KEY] ?? true);
      } else if (key === 'format' && value === 'http-url') {
        written[key] = 'uri';
      } else if (one.includes(key)) {
        written[key] = put(value);
      } else if (lists.includes(key)) {
        written[key] = (value as readonly unknown[]).map(put);
      } else if (byName.includes(key)) {
        const named = Object.entries(value as Record<string, unknown>);
        written[key] = Object.fromEntries(named.map(([name, part]) => [name, put(part)]));
      } else {
        written[key] = value as JsonValue;
      }
    }
    return written;
  }
}
