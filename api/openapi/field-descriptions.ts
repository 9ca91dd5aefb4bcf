import type { TSchema } from '@sinclair/typebox';
import { byName } from './descriptions/fields.ts';
import { byPlace } from './descriptions/schemas.ts';

/**
 * What a field, a parameter or a schema means. The most particular text counts: that of its place, its schema's own, and
 * last the one that holds for every field of that name.
 *
 * @param place `Task.title`, `Projection.rebuild.rate`, `<operation id>.<parameter>`, or the title of a schema
 * @returns undefined where nobody has said it, which a test refuses
 */
export function fieldDescription(place: string, schema: TSchema): string | undefined {
  const name = place.slice(place.lastIndexOf('.') + 1);
  const particular = byPlace[place];
  if (particular !== undefined) return particular;
  const own = ownDescription(schema);
  const general = place.includes('.') ? byName[name] : undefined;
  // Of what has a form to keep, the schema's own text completes `must be …`, and alone says too little.
  if (own !== undefined && general !== undefined && isForm(schema)) return `${general}; ${own}`;
  return own ?? general;
}

/** Also that of a value that may be null. */
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
