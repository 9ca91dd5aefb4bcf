/** The path of a large result of a run. */
export const artifactPath = '/runs/:id/artifacts/:artifact';

/** A path with its ids. @throws RangeError for `''`, `.` and `..`, which URLs would drop */
export function pathTo(path: string, ...ids: readonly string[]): string {
  const invalid = ids.find((id) => ['', '.', '..'].includes(id));
  if (invalid !== undefined) throw new RangeError(`"${invalid}" is not an id`);
  const left = ids.map(encodeURIComponent);
  return path.replaceAll(/:\w+/g, () => left.shift() ?? '');
}
