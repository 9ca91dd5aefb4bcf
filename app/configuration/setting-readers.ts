import { isIP } from 'node:net';

/** The environment, or a part of it. A variable that is set to nothing counts as not set. */
export type Environment = Readonly<Record<string, string | undefined>>;

/**
 * A setting that the service can't start with. The message is one line: the variable, what is wrong with
 * its value (the value itself only where it is no secret), and what is allowed.
 */
export class ConfigurationError extends Error {
  /** The environment variable at fault. */
  readonly variable: string;

  constructor(variable: string, fault: string) {
    super(`${variable} ${fault}`);
    this.name = 'ConfigurationError';
    this.variable = variable;
  }
}

/** The value of a variable; undefined when it is not set or empty. */
export function textOf(env: Environment, variable: string): string | undefined {
  const value = env[variable]?.trim();
  return value === '' ? undefined : value;
}

/** A whole number within bounds. */
export function wholeNumber(
  env: Environment,
  variable: string,
  bounds: { readonly from: number; readonly to: number; readonly otherwise: number },
): number {
  const text = textOf(env, variable);
  if (text === undefined) return bounds.otherwise;
  const value = /^\d{1,15}$/.test(text) ? Number(text) : Number.NaN;
  if (!(value >= bounds.from && value <= bounds.to)) {
    const allowed = `a whole number from ${String(bounds.from)} to ${String(bounds.to)}`;
    throw new ConfigurationError(variable, `is ${shown(text)}; it must be ${allowed}`);
  }
  return value;
}

/** `true` or `false`; false when it is not set. */
export function yesOrNo(env: Environment, variable: string): boolean {
  const text = textOf(env, variable);
  if (text === undefined || text === 'false') return false;
  if (text === 'true') return true;
  throw new ConfigurationError(variable, `is ${shown(text)}; it must be true or false`);
}

/** One of a closed list. */
export function oneOf<T extends string>(
  env: Environment,
  variable: string,
  allowed: readonly T[],
  otherwise: T,
): T {
  const text = textOf(env, variable);
  if (text === undefined) return otherwise;
  const value = allowed.find((each) => each === text);
  if (value === undefined) {
    throw new ConfigurationError(variable, `is ${shown(text)}; it must be ${either(allowed)}`);
  }
  return value;
}

/** Some of a closed list, separated by commas, each once, in the order of the list; all when not set. */
export function someOf<T extends string>(
  env: Environment,
  variable: string,
  allowed: readonly T[],
): readonly T[] {
  const text = textOf(env, variable);
  if (text === undefined) return allowed;
  const given = new Set(listed(text));
  const unknown = [...given].find((each) => !allowed.some((known) => known === each));
  if (unknown !== undefined || given.size === 0) {
    const fault = unknown === undefined ? 'names nothing' : `names ${shown(unknown)}`;
    throw new ConfigurationError(
      variable,
      `${fault}; it must be one or more of ${allowed.join(',')}`,
    );
  }
  return allowed.filter((each) => given.has(each));
}

/** How the address of an EventStoreDB may begin; since 25.0 it is called KurrentDB, and speaks as before. */
export const eventStoreSchemes = [
  ...['esdb://', 'esdb+discover://'],
  ...['kurrentdb://', 'kurrentdb+discover://'],
] as const;

/**
 * The address of a store. Its text is never shown, since it may hold a password; and a colon in a password
 * must be escaped, as drivers cut an unescaped one off without a word.
 */
export function storeAddress(
  env: Environment,
  variable: string,
  schemes: readonly string[],
): string | undefined {
  const text = textOf(env, variable);
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

/** A secret text of a least length; its value never enters a message. */
export function secret(
  env: Environment,
  variable: string,
  bounds: { readonly fromBytes: number; readonly toBytes: number },
): string | undefined {
  const value = env[variable];
  if (value === undefined || value === '') return undefined;
  const bytes = Buffer.byteLength(value, 'utf8');
  if (bytes < bounds.fromBytes || bytes > bounds.toBytes) {
    const allowed = `${String(bounds.fromBytes)} to ${String(bounds.toBytes)} bytes`;
    throw new ConfigurationError(variable, `has ${String(bytes)} bytes; it must have ${allowed}`);
  }
  return value;
}

/**
 * Which proxies to believe: a number of them in front of the service, or their addresses, networks, or the
 * names of Express (`loopback`, `linklocal`, `uniquelocal`). `true`, believing everybody, is refused: any
 * client could then choose the address it is counted under.
 */
export function trustedProxies(env: Environment, variable: string): number | readonly string[] {
  const text = textOf(env, variable);
  if (text === undefined || text === 'false') return 0;
  if (/^\d{1,2}$/.test(text)) return Number(text);
  const entries = listed(text);
  const bad = entries.find((entry) => !isProxy(entry));
  if (bad !== undefined || entries.length === 0) {
    const allowed = 'the number of proxies in front, or their addresses or networks by commas';
    throw new ConfigurationError(variable, `is ${shown(bad ?? text)}; it must be ${allowed}`);
  }
  return entries;
}

/**
 * Origins (`https://host:port`, without a path) by commas, or `*` alone for all; undefined when not set. They are
 * compared as texts with what browsers send, so each is taken only as a browser writes it.
 */
export function origins(env: Environment, variable: string): readonly string[] | undefined {
  const text = textOf(env, variable);
  if (text === undefined) return undefined;
  const entries = listed(text);
  const bad = entries.find((entry) => !isOrigin(entry) && !(entry === '*' && entries.length === 1));
  if (bad !== undefined || entries.length === 0) {
    const allowed = 'origins such as https://app.example by commas, or * alone';
    throw new ConfigurationError(variable, `is ${shown(bad ?? text)}; it must be ${allowed}`);
  }
  return entries;
}

/**
 * An address of the web without a query and a fragment, without a slash at its end; undefined where none is set.
 * @throws ConfigurationError for anything else
 */
export function webAddress(env: Environment, variable: string): string | undefined {
  const text = textOf(env, variable);
  if (text === undefined) return undefined;
  const url = URL.canParse(text) ? new URL(text) : undefined;
  const isPlain = url !== undefined && /^https?:$/.test(url.protocol) && !/[?#@]/.test(text);
  if (isPlain) return url.href.replace(/\/+$/, '');
  const wanted = 'it must be an address such as https://tasks.example';
  throw new ConfigurationError(variable, `is ${shown(text)}; ${wanted}`);
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
  // A network of no bits, everybody, is not taken by Express either.
  return (
    bits === undefined ||
    (/^\d{1,3}$/.test(bits) && Number(bits) > 0 && Number(bits) <= (family === 4 ? 32 : 128))
  );
}

export function listed(text: string): readonly string[] {
  return text
    .split(',')
    .map((each) => each.trim())
    .filter((each) => each !== '');
}

function either(allowed: readonly string[]): string {
  return `${allowed.slice(0, -1).join(', ')} or ${allowed.at(-1) ?? ''}`.replace(/^ or /, '');
}

/** A value as a message shows it: quoted, on one line, not endless. */
export function shown(value: string): string {
  return JSON.stringify(value.length > 60 ? `${value.slice(0, 60)}…` : value);
}
