import type {
  FieldValue,
  FieldValues,
  Projection,
  ValuesQuery,
} from '../../../projections/read-model.ts';

/**
 * The values in a response to a query of `compileValues`.
 * @param text the key and the values of each document, as JSON; undefined for none
 */
export function fieldValuesIn(
  { fields: kinds }: Projection,
  { fields }: ValuesQuery,
  text = '[]',
): readonly FieldValues[] {
  const isBoolean = fields.map((field) => kinds[field] === 'boolean');
  const rows = JSON.parse(text) as [string, ...FieldValue[]][];
  return rows.map(([key, ...cells]) => {
    // Booleans are stored as numbers.
    const values = cells.map((cell, n) => (isBoolean[n] && cell !== null ? cell === 1 : cell));
    return { key, values };
  });
}
