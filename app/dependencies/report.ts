import type { Dependencies, Dependency } from './dependency.ts';

/** A report for people: the production packages, one line each, and a summary of all licences. */
export function reportOf({ all }: Dependencies): string {
  const production = all.filter(({ isProduction }) => isProduction);
  const width = Math.max(...production.map((each) => nameOf(each).length));
  const lines = production.map((each) => {
    const marks = [
      ...(each.isDirect ? ['direct'] : []),
      ...(each.hasInstallScript ? ['install script, denied'] : []),
    ];
    return `${nameOf(each).padEnd(width)}  ${each.licence.padEnd(14)}  ${marks.join(', ')}`;
  });
  return [
    ...lines.map((line) => line.trimEnd()),
    '',
    `Production: ${production.length} packages: ${licencesOf(production)}`,
    `Development: ${licencesOf(all.filter(({ isProduction }) => !isProduction))}`,
  ].join('\n');
}

const nameOf = ({ name, version }: Dependency): string => `${name} ${version}`;

/** `157 MIT, 48 Apache-2.0`, the most frequent first. */
function licencesOf(some: readonly Dependency[]): string {
  const counts = new Map<string, number>();
  for (const { licence } of some) counts.set(licence, (counts.get(licence) ?? 0) + 1);
  return [...counts]
    .sort(([one, first], [other, second]) => second - first || one.localeCompare(other))
    .map(([licence, count]) => `${count} ${licence}`)
    .join(', ');
}
