/**
 * Returns indexes together with the same indexes per namespace. Documents of `default` leave `namespace` out, so the
 * additional indexes cost nothing in `default` if the field is {@link Projection.sparse}.
 */
export function withinNamespaces(
  indexes: readonly (readonly string[])[],
): readonly (readonly string[])[] {
  return [...indexes, ...indexes.map((index) => ['namespace', ...index])];
}
