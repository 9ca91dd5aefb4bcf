import { capabilities, type Capability } from '../../extensions/contract.ts';
import type { AllowedPlugins } from '../../extensions/host/plugins.ts';
import {
  ConfigurationError,
  quoted,
  settingOf,
  splitList,
  type Environment,
} from './setting-readers.ts';

/** Granted capabilities by extension id. */
export type Grants = Readonly<Record<string, readonly Capability[]>>;

/** Whether a variable belongs to an extension: `SVC_EXT_<ID>_<NAME>`. */
export function isExtensionSetting(name: string): boolean {
  return /^SVC_EXT_[A-Z][A-Z0-9_]*_[A-Z0-9_]+$/.test(name);
}

/** `SVC_EXT_PATHS`: folders separated by colons; undefined if it is not set. */
export function extensionPaths(env: Environment): readonly string[] | undefined {
  return settingOf(env, 'SVC_EXT_PATHS')
    ?.split(':')
    .map((path) => path.trim())
    .filter((path) => path !== '');
}

/**
 * `SVC_EXT_GRANTS`: `{"<id>": ["<CAPABILITY>", …]}`; undefined if it is not set.
 * @throws ConfigurationError for other content
 */
export function extensionGrants(env: Environment): Grants | undefined {
  const variable = 'SVC_EXT_GRANTS';
  const text = settingOf(env, variable);
  if (text === undefined) return undefined;
  const known: readonly unknown[] = capabilities;
  const isGrants = (value: unknown): value is Grants =>
    typeof value === 'object' &&
    value !== null &&
    !Array.isArray(value) &&
    Object.values(value).every(
      (list) => Array.isArray(list) && list.every((each) => known.includes(each)),
    );
  const parsed = parse(text);
  if (isGrants(parsed)) return parsed;
  const allowed = `a JSON object of ids, each with an array of ${capabilities.join(', ')}`;
  throw new ConfigurationError(variable, `is ${quoted(text)}; it must be ${allowed}`);
}

/** The name of an npm package, as in a package.json. */
const PACKAGE_NAME = /^(@[a-z0-9~-][a-z0-9._~-]*\/)?[a-z0-9~-][a-z0-9._~-]*$/;

/**
 * `SVC_EXT_PLUGINS`: npm packages whose plugins may be loaded, separated by commas, or `*`. If it is not set: all
 * packages, or none in production.
 * @throws ConfigurationError for other content
 */
export function allowedPlugins(env: Environment, production: boolean): AllowedPlugins {
  const variable = 'SVC_EXT_PLUGINS';
  const text = settingOf(env, variable);
  if (text === undefined) return production ? [] : 'all';
  if (text === '*') return 'all';
  const names = splitList(text);
  const bad = names.find((name) => !PACKAGE_NAME.test(name));
  if (bad === undefined && names.length > 0) return names;
  const allowed = 'names of npm packages separated by commas, or * alone for all';
  throw new ConfigurationError(variable, `names ${quoted(bad ?? text)}; it must be ${allowed}`);
}

/** The variables of extensions. */
export function extensionSettings(env: Environment): Readonly<Record<string, string>> {
  const settings = Object.entries(env).filter(
    (entry): entry is [string, string] => entry[1] !== undefined && isExtensionSetting(entry[0]),
  );
  return Object.fromEntries(settings);
}

function parse(json: string): unknown {
  try {
    return JSON.parse(json);
  } catch {
    return undefined;
  }
}
