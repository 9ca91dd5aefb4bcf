import type { Dependencies, Dependency } from './dependency.ts';
import { isAllowedLicence } from './licence.ts';

/** The faults of the dependencies, one line each. */
export function faultsOf({ all, allowScripts }: Dependencies): readonly string[] {
  const faults = all.flatMap((each) => [
    ...licenceFaults(each),
    ...originFaults(each),
    ...scriptFaults(each, allowScripts),
  ]);
  return [...faults, ...unusedDenials({ all, allowScripts })];
}

function licenceFaults(each: Dependency): readonly string[] {
  const { licence, installed } = each;
  if (licence === '') return [`${label(each)} names no licence`];
  if (!isAllowedLicence(licence)) {
    return [`${label(each)} has the licence ${licence}, which is not allowed`];
  }
  if (installed === null || installed.licence === licence) return [];
  return [
    `${label(each)} has the licence ${installed.licence}, but ${licence} in package-lock.json`,
  ];
}

function originFaults(each: Dependency): readonly string[] {
  const { integrity, installed, version } = each;
  return [
    ...(integrity === null ? [`${label(each)} has no integrity in package-lock.json`] : []),
    ...(installed !== null && installed.version !== version
      ? [`${label(each)} is installed as ${installed.version}: run npm ci`]
      : []),
  ];
}

/** Each package with an install script must be denied by name, so that a new script is noticed. */
function scriptFaults(
  each: Dependency,
  allowScripts: Dependencies['allowScripts'],
): readonly string[] {
  const { hasInstallScript, installed, name } = each;
  if (!hasInstallScript && installed?.hasInstallScript !== true) return [];
  if (Object.hasOwn(allowScripts, name) && allowScripts[name] === false) return [];
  const remedy = `set "${name}": false in allowScripts of package.json if it works without`;
  return [`${label(each)} has an install script: ${remedy}`];
}

function unusedDenials({ all, allowScripts }: Dependencies): readonly string[] {
  const scripted = new Set(all.filter((each) => each.hasInstallScript).map(({ name }) => name));
  return Object.keys(allowScripts)
    .filter((name) => !scripted.has(name))
    .map((name) => `allowScripts names ${name}, which has no install script: remove it`);
}

const label = ({ name, version }: Dependency): string => `${name} ${version}`;
