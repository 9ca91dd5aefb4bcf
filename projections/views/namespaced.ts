/**
 * Indexes, and the same ones within each namespace but `default`, whose documents leave the field out. Where `namespace`
 * is {@link Projection.sparse}, those cost nothing as long as there is no other namespace.
 */
export function withinNamespaces(
  indexes: readonly (readonly string[])[],
): readonly (readonly string[])[] {
  return [...indexes, ...indexes.map((index) => ['namespace', ...index])];
}
