import type { TSchema } from '@sinclair/typebox';
import { byName } from './descriptions/fields.ts';
import { byPlace } from './descriptions/schemas.ts';

/**
 * The description of a field, a parameter or a schema. The most specific description wins: that of the place, then that
 * of the schema, then that of the name.
 *
 * @param place `Task.title`, `Projection.rebuild.rate`, `<operation id>.<parameter>`, or the title of a schema
 * @returns undefined if there is none, which a test rejects
 */
export function fieldDescription(place: string, schema: TSchema): string | undefined {
  const name = place.slice(place.lastIndexOf('.') + 1);
  const particular = byPlace[place];
  if (particular !== undefined) return particular;
  const own = ownDescription(schema);
  const general = place.includes('.') ? byName[name] : undefined;
  // A pattern's or format's own description completes `must be …`, and is not sufficient by itself.
  if (own !== undefined && general !== undefined && isForm(schema)) return `${general}; ${own}`;
  return own ?? general;
}

/** Looks into nullable schemas too. */
function ownDescription({ description, anyOf }: TSchema): string | undefined {
  if (description !== undefined) return description;
  const [first] = (anyOf as readonly TSchema[] | undefined) ?? [];
  return anyOf !== undefined && (anyOf as readonly TSchema[]).length === 2
    ? first?.description
    : undefined;
}

const isForm = (schema: TSchema): boolean => {
  const { pattern, anyOf } = schema as { readonly pattern?: unknown; readonly anyOf?: unknown };
  const [first] = (anyOf as readonly TSchema[] | undefined) ?? [];
  return pattern !== undefined || schema['format'] !== undefined || first?.['format'] !== undefined;
};
