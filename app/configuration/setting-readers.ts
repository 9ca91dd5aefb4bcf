import { isIP } from 'node:net';

/** Environment variables; an empty one counts as not set. */
export type Environment = Readonly<Record<string, string | undefined>>;

/**
 * An invalid setting. The message has one line: the variable, what is wrong with its value (never a secret), and what is
 * allowed.
 */
export class ConfigurationError extends Error {
  /** The environment variable. */
  readonly variable: string;

  constructor(variable: string, problem: string) {
    super(`${variable} ${problem}`);
    this.name = 'ConfigurationError';
    this.variable = variable;
  }
}

/** A variable's value; undefined if it is not set or empty. */
export function settingOf(env: Environment, variable: string): string | undefined {
  const value = env[variable]?.trim();
  return value === '' ? undefined : value;
}

/** A whole number within bounds. */
export function wholeNumber(
  env: Environment,
  variable: string,
  bounds: { readonly from: number; readonly to: number; readonly otherwise: number },
): number {
  const text = settingOf(env, variable);
  if (text === undefined) return bounds.otherwise;
  const value = /^\d{1,15}$/.test(text) ? Number(text) : Number.NaN;
  if (!(value >= bounds.from && value <= bounds.to)) {
    const allowed = `a whole number from ${bounds.from} to ${bounds.to}`;
    throw new ConfigurationError(variable, `is ${quoted(text)}; it must be ${allowed}`);
  }
  return value;
}

/** `true` or `false`; false if it is not set. */
export function booleanSetting(env: Environment, variable: string): boolean {
  const text = settingOf(env, variable);
  if (text === undefined || text === 'false') return false;
  if (text === 'true') return true;
  throw new ConfigurationError(variable, `is ${quoted(text)}; it must be true or false`);
}

/** One of a closed list. */
export function oneOf<T extends string>(
  env: Environment,
  variable: string,
  allowed: readonly T[],
  otherwise: T,
): T {
  const text = settingOf(env, variable);
  if (text === undefined) return otherwise;
  const value = allowed.find((each) => each === text);
  if (value === undefined) {
    throw new ConfigurationError(variable, `is ${quoted(text)}; it must be ${either(allowed)}`);
  }
  return value;
}

/** Values of a closed list, separated by commas, in the order of the list; all if it is not set. */
export function subsetOf<T extends string>(
  env: Environment,
  variable: string,
  allowed: readonly T[],
): readonly T[] {
  const text = settingOf(env, variable);
  if (text === undefined) return allowed;
  const given = new Set(splitList(text));
  const unknown = [...given].find((each) => !allowed.some((known) => known === each));
  if (unknown !== undefined || given.size === 0) {
    const fault = unknown === undefined ? 'names nothing' : `names ${quoted(unknown)}`;
    throw new ConfigurationError(
      variable,
      `${fault}; it must be one or more of ${allowed.join(',')}`,
    );
  }
  return allowed.filter((each) => given.has(each));
}

/** Schemes of EventStoreDB, which is called KurrentDB since 25.0. */
export const eventStoreSchemes = [
  ...['esdb://', 'esdb+discover://'],
  ...['kurrentdb://', 'kurrentdb+discover://'],
] as const;

/**
 * The address of a store. It is never shown, because it can contain a password. A colon in a password must be escaped:
 * drivers silently cut the password there.
 */
export function storeAddress(
  env: Environment,
  variable: string,
  schemes: readonly string[],
): string | undefined {
  const text = settingOf(env, variable);
  if (text === undefined) return undefined;
  const scheme = schemes.find((each) => text.startsWith(each));
  if (scheme === undefined) {
    throw new ConfigurationError(variable, `must begin with ${either(schemes)}`);
  }
  const rest = text.slice(scheme.length);
  const authority = /^[^/?]*/.exec(rest)?.[0] ?? '';
  const credentials = authority.includes('@') ? authority.slice(0, authority.lastIndexOf('@')) : '';
  if (authority.slice(authority.lastIndexOf('@') + 1) === '') {
    throw new ConfigurationError(variable, `names no host; it must be like ${scheme}host:port`);
  }
  if (credentials.split(':').length > 2 || credentials.includes('@')) {
    const fault = "has a user or password with an unescaped ':' or '@'; write %3A or %40";
    throw new ConfigurationError(variable, fault);
  }
  return text;
}

/** A secret of a minimum length; its value is never shown. */
export function secret(
  env: Environment,
  variable: string,
  bounds: { readonly fromBytes: number; readonly toBytes: number },
): string | undefined {
  const value = env[variable];
  if (value === undefined || value === '') return undefined;
  const bytes = Buffer.byteLength(value, 'utf8');
  if (bytes < bounds.fromBytes || bytes > bounds.toBytes) {
    const allowed = `${bounds.fromBytes} to ${bounds.toBytes} bytes`;
    throw new ConfigurationError(variable, `has ${bytes} bytes; it must have ${allowed}`);
  }
  return value;
}

/**
 * Trusted proxies: their number, or their addresses, networks or Express's names (`loopback`, `linklocal`,
 * `uniquelocal`). `true` is rejected, because every client could then choose its own address.
 */
export function trustedProxies(env: Environment, variable: string): number | readonly string[] {
  const text = settingOf(env, variable);
  if (text === undefined || text === 'false') return 0;
  if (/^\d{1,2}$/.test(text)) return Number(text);
  const entries = splitList(text);
  const bad = entries.find((entry) => !isProxy(entry));
  if (bad !== undefined || entries.length === 0) {
    const allowed = 'the number of proxies in front, or their addresses or networks by commas';
    throw new ConfigurationError(variable, `is ${quoted(bad ?? text)}; it must be ${allowed}`);
  }
  return entries;
}

/**
 * Origins (`https://host:port`, without a path), separated by commas, or `*` for all; undefined if it is not set. They
 * must be written as browsers send them.
 */
export function origins(env: Environment, variable: string): readonly string[] | undefined {
  const text = settingOf(env, variable);
  if (text === undefined) return undefined;
  const entries = splitList(text);
  const bad = entries.find((entry) => !isOrigin(entry) && !(entry === '*' && entries.length === 1));
  if (bad !== undefined || entries.length === 0) {
    const allowed = 'origins such as https://app.example by commas, or * alone';
    throw new ConfigurationError(variable, `is ${quoted(bad ?? text)}; it must be ${allowed}`);
  }
  return entries;
}

/**
 * A web address without query and fragment, returned without a final slash; undefined if it is not set.
 * @throws ConfigurationError for anything else
 */
export function webAddress(env: Environment, variable: string): string | undefined {
  const text = settingOf(env, variable);
  if (text === undefined) return undefined;
  const url = URL.canParse(text) ? new URL(text) : undefined;
  const isPlain = url !== undefined && /^https?:$/.test(url.protocol) && !/[?#@]/.test(text);
  if (isPlain) return url.href.replace(/\/+$/, '');
  const wanted = 'it must be an address such as https://tasks.example';
  throw new ConfigurationError(variable, `is ${quoted(text)}; ${wanted}`);
}

function isOrigin(text: string): boolean {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  return url !== undefined && /^https?:$/.test(url.protocol) && url.origin === text;
}

function isProxy(entry: string): boolean {
  if (['loopback', 'linklocal', 'uniquelocal'].includes(entry)) return true;
  const [address = '', bits, ...more] = entry.split('/');
  const family = isIP(address);
  if (family === 0 || more.length > 0) return false;
  // Express rejects a network of 0 bits, which is everyone, too.
  return (
    bits === undefined ||
    (/^\d{1,3}$/.test(bits) && Number(bits) > 0 && Number(bits) <= (family === 4 ? 32 : 128))
  );
}

/** The items of a list, separated by commas. */
export function splitList(text: string): readonly string[] {
  return text
    .split(',')
    .map((each) => each.trim())
    .filter((each) => each !== '');
}

function either(allowed: readonly string[]): string {
  return `${allowed.slice(0, -1).join(', ')} or ${allowed.at(-1) ?? ''}`.replace(/^ or /, '');
}

/** A value for a message: quoted, on one line, shortened. */
export function quoted(value: string): string {
  return JSON.stringify(value.length > 60 ? `${value.slice(0, 60)}…` : value);
}
