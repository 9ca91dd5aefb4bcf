import { capabilities, type Capability } from '../../extensions/contract.ts';
import { ConfigurationError, shown, textOf, type Environment } from './setting-readers.ts';

/** What extensions are granted, by their ids. */
export type Grants = Readonly<Record<string, readonly Capability[]>>;

/** Whether a variable belongs to an extension: `SVC_EXT_<ID>_<NAME>`. */
export function isExtensionSetting(name: string): boolean {
  return /^SVC_EXT_[A-Z][A-Z0-9_]*_[A-Z0-9_]+$/.test(name);
}

/** `SVC_EXT_PATHS`: folders by colons; undefined where it is not set. */
export function extensionPaths(env: Environment): readonly string[] | undefined {
  return textOf(env, 'SVC_EXT_PATHS')
    ?.split(':')
    .map((path) => path.trim())
    .filter((path) => path !== '');
}

/**
 * `SVC_EXT_GRANTS`: `{"<id>": ["<CAPABILITY>", …]}`; undefined where it is not set.
 * @throws ConfigurationError for what is no such JSON
 */
export function extensionGrants(env: Environment): Grants | undefined {
  const variable = 'SVC_EXT_GRANTS';
  const text = textOf(env, variable);
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
  throw new ConfigurationError(variable, `is ${shown(text)}; it must be ${allowed}`);
}

/** Those of extensions among all variables. */
export function extensionSettings(env: Environment): Readonly<Record<string, string>> {
  const own: Record<string, string> = {};
  for (const [name, value] of Object.entries(env)) {
    if (value !== undefined && isExtensionSetting(name)) own[name] = value;
  }
  return own;
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}
