import type { Credentials, EndPoint, NodePreference } from '@eventstore/db-client';

/** The parts of a connection string. */
export interface ConnectionSettings {
  /** One: that node. Several: members of a cluster; any of them is asked for the leader. */
  readonly hosts: readonly EndPoint[];
  /** `esdb+discover`: the one host is asked for the cluster's members. */
  readonly discover: boolean;
  readonly secure: boolean;
  readonly credentials: Credentials | undefined;
  readonly nodePreference: NodePreference | undefined;
  /** Milliseconds, seconds (`gossipTimeout`) or a number of attempts. Default: the client's own. */
  readonly numbers: Readonly<Partial<Record<NumberOption, number>>>;
  readonly connectionName: string | undefined;
  readonly files: Readonly<Partial<Record<FileOption, string>>>;
}

/** An invalid connection string. Never shows the string, which holds a password. */
export class ConnectionUrlError extends Error {
  constructor(message: string) {
    super(`The EventStoreDB connection string ${message}`);
    this.name = 'ConnectionUrlError';
  }
}

const numberOptions = [
  'keepAliveInterval',
  'keepAliveTimeout',
  'discoveryInterval',
  'gossipTimeout',
  'maxDiscoverAttempts',
] as const;
type NumberOption = (typeof numberOptions)[number];

/** Smallest values: below these the client would never find or keep a connection. */
const smallestValues: Readonly<Partial<Record<NumberOption, number>>> = {
  keepAliveTimeout: 1,
  gossipTimeout: 1,
  maxDiscoverAttempts: 1,
};

/** Options where -1 means never. */
const mayBeNever: readonly NumberOption[] = ['keepAliveInterval', 'keepAliveTimeout'];

/** Node's longest timer, 24 days. Given -1, the client's timers fire after a millisecond, and each ping would disconnect. */
const NEVER_MS = 2 ** 31 - 1;

const fileOptions = ['tlsCAFile', 'userCertFile', 'userKeyFile'] as const;
type FileOption = (typeof fileOptions)[number];

const nodePreferences = ['leader', 'follower', 'read_only_replica', 'random'] as const;

/** Options that the client knows but that would break the adapter, with the reason. */
const refused: Readonly<Record<string, string>> = {
  throwOnAppendFailure: 'hides conflicts',
  defaultDeadline: 'has no effect: the service sets the deadlines of its calls itself',
};

const DEFAULT_PORT = 2113;

/**
 * Reads `esdb://[user:password@]host[:port][,host…][?option=value&…]`; `kurrentdb://` means the same. The client's own
 * parser is not used: it cuts a password at a colon, uses only the first host of `esdb+discover`, and ignores unknown
 * options.
 * @throws ConnectionUrlError
 */
export function readConnectionUrl(url: string): ConnectionSettings {
  const match = /^(?:esdb|kurrentdb)(\+discover)?:\/\/(?:([^?]*)@)?([^?@/]*)\/?(?:\?(.*))?$/s.exec(
    url.trim(),
  );
  if (match === null) throw new ConnectionUrlError('must look like esdb://user:password@host:2113');
  const [, discovery, userInfo, authority = '', query = ''] = match;
  const discover = discovery !== undefined;
  const hosts = authority.split(',').map(readHost);
  if (discover && hosts.length > 1) {
    throw new ConnectionUrlError(
      'names several hosts with esdb+discover, which would use only the first: write esdb:// for a list of hosts',
    );
  }
  const options = readOptions(query);
  const secure = readBoolean(options, 'tls') ?? true;
  const credentials = readCredentials(userInfo);
  if (secure && credentials === undefined) {
    throw new ConnectionUrlError(
      'has no user and password; add them, or tls=false for a server without security',
    );
  }
  return {
    hosts,
    discover,
    secure,
    credentials,
    nodePreference: readNodePreference(options),
    numbers: readNumbers(options),
    connectionName: options.get('connectionName'),
    files: readFiles(options),
  };
}

function readCredentials(userInfo: string | undefined): Credentials | undefined {
  if (userInfo === undefined) return undefined;
  const colon = userInfo.indexOf(':');
  if (colon < 1 || colon === userInfo.length - 1) {
    throw new ConnectionUrlError('must have both user and password before the @');
  }
  try {
    return {
      username: decodeURIComponent(userInfo.slice(0, colon)),
      password: decodeURIComponent(userInfo.slice(colon + 1)),
    };
  } catch {
    throw new ConnectionUrlError('has a % in user or password that must be written %25');
  }
}

function readHost(text: string): EndPoint {
  const match = /^([\w.-]+|\[[\da-fA-F:]+\])(?::(\d{1,5}))?$/.exec(text.trim());
  const port = Number(match?.[2] ?? DEFAULT_PORT);
  if (match === null || port < 1 || port > 65_535) {
    throw new ConnectionUrlError('has a host that is not name or name:port');
  }
  return { address: match[1] as string, port };
}

const optionNames = new Map(
  [
    ...numberOptions,
    ...fileOptions,
    ...Object.keys(refused),
    'tls',
    'tlsVerifyCert',
    'nodePreference',
    'connectionName',
  ].map((name) => [normalised(name), name]),
);

/** The options by their proper names. As in the client, `tls-ca-file` and `tlsCAFile` are the same. */
function readOptions(query: string): ReadonlyMap<string, string> {
  const options = new Map<string, string>();
  for (const [key, value] of new URLSearchParams(query.replaceAll('+', '%2B'))) {
    const name = optionNames.get(normalised(key));
    if (name === undefined) throw new ConnectionUrlError(`has an unknown option '${key}'`);
    const reason = refused[name];
    if (reason !== undefined) throw new ConnectionUrlError(`may not set ${name}: it ${reason}`);
    options.set(name, value.trim());
  }
  if (readBoolean(options, 'tlsVerifyCert') === false) {
    throw new ConnectionUrlError(
      'sets tlsVerifyCert=false, which the client does not support: name the authority with tlsCAFile',
    );
  }
  return options;
}

function normalised(name: string): string {
  return name.trim().toLowerCase().replace(/[_-]/g, '');
}

function readBoolean(options: ReadonlyMap<string, string>, name: string): boolean | undefined {
  const value = options.get(name);
  if (value === undefined) return undefined;
  if (value !== 'true' && value !== 'false') {
    throw new ConnectionUrlError(`must set ${name} to true or false`);
  }
  return value === 'true';
}

function readNumbers(options: ReadonlyMap<string, string>): Partial<Record<NumberOption, number>> {
  const numbers: Partial<Record<NumberOption, number>> = {};
  for (const name of numberOptions) {
    const value = options.get(name);
    if (value === undefined) continue;
    numbers[name] = readNumber(name, value);
  }
  return numbers;
}

function readNumber(name: NumberOption, value: string): number {
  if (value === '-1' && mayBeNever.includes(name)) return NEVER_MS;
  if (!/^\d{1,9}$/.test(value)) throw new ConnectionUrlError(`must set ${name} to a number`);
  const number = Number(value);
  const smallest = smallestValues[name] ?? 0;
  if (number < smallest) throw new ConnectionUrlError(`must set ${name} to at least ${smallest}`);
  return number;
}

function readFiles(options: ReadonlyMap<string, string>): Partial<Record<FileOption, string>> {
  const files: Partial<Record<FileOption, string>> = {};
  for (const name of fileOptions) {
    const value = options.get(name);
    if (value !== undefined) files[name] = value;
  }
  if ((files.userCertFile === undefined) !== (files.userKeyFile === undefined)) {
    throw new ConnectionUrlError('must give userCertFile and userKeyFile together');
  }
  return files;
}

function readNodePreference(options: ReadonlyMap<string, string>): NodePreference | undefined {
  const value = options.get('nodePreference');
  if (value === undefined) return undefined;
  const preference = nodePreferences.find(
    (candidate) => normalised(candidate) === normalised(value),
  );
  if (preference === undefined) {
    throw new ConnectionUrlError(`must set nodePreference to one of ${nodePreferences.join(', ')}`);
  }
  return preference;
}
