import { hostEntryIssue } from '../../domain/secrets/allowed-hosts.ts';
import { SECRET_NAME_PATTERN } from '../../domain/secrets/secret-source.ts';
import { NAMESPACE_PATTERN } from '../../domain/namespaces/namespace.ts';
import type { SecretGrants } from '../../stores/secrets/granted-secrets.ts';
import type { VaultSettings } from '../../stores/secrets/vault-secrets.ts';
import {
  ConfigurationError,
  quoted,
  settingOf,
  splitList,
  webAddress,
  type Environment,
} from './setting-readers.ts';

/** The settings for secrets; the secrets themselves are other variables. */
export const secretVariables = [
  'SVC_SECRETS_KEY',
  'SVC_SECRET_GRANTS',
  'SVC_SECRET_HOSTS',
  'SVC_SECRETS_DIR',
  'SVC_VAULT_ADDR',
  'SVC_VAULT_TOKEN',
  'SVC_VAULT_TOKEN_FILE',
  'SVC_VAULT_MOUNT',
  'SVC_VAULT_PATH',
] as const;

const SECRET = 'SVC_SECRET_';
const FILE = '_FILE';

/** Names that look like secrets but are settings. */
const settingNames: ReadonlySet<string> = new Set(['GRANTS', 'HOSTS']);

/** Where secrets come from. */
export interface SecretSettings {
  /** `SVC_SECRETS_KEY`: keys of 32 bytes; the first encrypts, all of them decrypt. Default: a generated key. */
  readonly keys: readonly Buffer[] | undefined;
  /** `SVC_SECRETS_DIR`: a folder with a file for each secret. None. */
  readonly directory: string | undefined;
  /** `SVC_SECRET_GRANTS` and `SVC_SECRET_HOSTS`, for the secrets of the environment and of files. None. */
  readonly grants: SecretGrants;
  /** `SVC_VAULT_…`. None. */
  readonly vault: VaultSettings | undefined;
}

/** Reads the settings of secrets. @throws ConfigurationError */
export function secretConfiguration(
  env: Environment,
  production: boolean,
): { readonly secrets: SecretSettings; readonly warnings: readonly string[] } {
  const isNamespace = (each: string): boolean =>
    each === '*' || new RegExp(NAMESPACE_PATTERN).test(each);
  const grants: SecretGrants = {
    namespaces: byName(env, 'SVC_SECRET_GRANTS', isNamespace, 'namespaces, or *'),
    hosts: byName(env, 'SVC_SECRET_HOSTS', isHost, 'hosts such as api.example.com:443, or *'),
    grantsDefault: !production,
  };
  const secrets = {
    keys: secretKeys(env, production),
    directory: settingOf(env, 'SVC_SECRETS_DIR'),
    grants,
    vault: vaultSettings(env),
  };
  return { secrets, warnings: warningsAboutSecrets(env, grants) };
}

/**
 * The keys of `SVC_SECRETS_KEY`, separated by white space or commas; undefined without one.
 * @throws ConfigurationError for anything else, and in production for none
 */
export function secretKeys(env: Environment, production: boolean): readonly Buffer[] | undefined {
  const variable = 'SVC_SECRETS_KEY';
  const form = '32 bytes in Base64 (openssl rand -base64 32)';
  const text = settingOf(env, variable);
  if (text === undefined) {
    if (!production) return undefined;
    const fault = `is not set; with NODE_ENV=production it must be ${form}, the same in every process`;
    throw new ConfigurationError(variable, fault);
  }
  const keys = text.split(/[\s,]+/).filter((each) => each !== '');
  return keys.map((written, index) => {
    const key = parseKey(written);
    const which = keys.length === 1 ? '' : ` (key ${index + 1} of ${keys.length})`;
    if (key === null) throw new ConfigurationError(variable, `must be ${form}${which}`);
    if (key.every((byte) => byte === key[0])) {
      throw new ConfigurationError(
        variable,
        `has a key of equal bytes; it must be ${form}${which}`,
      );
    }
    return key;
  });
}

/** A key of 32 bytes in Base64, in either alphabet; null for anything else. */
export function parseKey(text: string): Buffer | null {
  const key = Buffer.from(text, 'base64');
  return /^[A-Za-z0-9+/_-]{43}=?$/.test(text) && key.length === 32 ? key : null;
}

/** The names of the secrets in the environment. */
export function environmentSecrets(env: Environment): readonly string[] {
  const names = Object.keys(env)
    .filter((variable) => variable.startsWith(SECRET) && env[variable] !== undefined)
    .map((variable) => variable.slice(SECRET.length))
    .map((name) => (name.endsWith(FILE) ? name.slice(0, -FILE.length) : name));
  return [...new Set(names)].filter(isSecretName).sort();
}

/** Whether a variable such as `SVC_SECRET_<name>` is a secret. */
export function isSecretName(name: string): boolean {
  return !settingNames.has(name) && new RegExp(SECRET_NAME_PATTERN).test(name);
}

const isHost = (entry: string): boolean => hostEntryIssue(entry) === null;

/** `NAME=item,item;NAME2=*` @throws ConfigurationError */
function byName(
  env: Environment,
  variable: string,
  isItem: (item: string) => boolean,
  what: string,
): ReadonlyMap<string, readonly string[]> {
  const lists = new Map<string, readonly string[]>();
  for (const part of (settingOf(env, variable) ?? '').split(';')) {
    if (part.trim() === '') continue;
    const [, name = '', list = ''] = /^\s*(\w+)\s*=(.*)$/s.exec(part) ?? [];
    const items = splitList(list);
    const isGood = isSecretName(name) && items.length > 0 && items.every(isItem);
    if (!isGood || lists.has(name)) {
      const fault = lists.has(name) ? `names ${name} twice` : `has ${quoted(part.trim())}`;
      const form = `NAME=item,item;NAME2=*, where the items are ${what}`;
      throw new ConfigurationError(variable, `${fault}; it must be like ${form}`);
    }
    lists.set(name, items);
  }
  return lists;
}

function vaultSettings(env: Environment): VaultSettings | undefined {
  const address = webAddress(env, 'SVC_VAULT_ADDR');
  const token = settingOf(env, 'SVC_VAULT_TOKEN');
  const tokenFile = settingOf(env, 'SVC_VAULT_TOKEN_FILE');
  if (address === undefined) {
    const other = secretVariables
      .slice(secretVariables.indexOf('SVC_VAULT_TOKEN'))
      .find((name) => settingOf(env, name) !== undefined);
    if (other === undefined) return undefined;
    const fault = `is not set, but ${other} is; set it to Vault's address, or remove the others`;
    throw new ConfigurationError('SVC_VAULT_ADDR', fault);
  }
  if ((token === undefined) === (tokenFile === undefined)) {
    const fault = token === undefined ? 'is not set' : 'is set together with SVC_VAULT_TOKEN_FILE';
    throw new ConfigurationError('SVC_VAULT_TOKEN', `${fault}; set one of the two`);
  }
  const path = (settingOf(env, 'SVC_VAULT_PATH') ?? '{namespace}/{name}').replace(/^\/+|\/+$/g, '');
  if (!path.includes('{namespace}') || !path.includes('{name}')) {
    const allowed =
      'it must have {namespace} and {name}, so that no namespace reads the secrets of another';
    throw new ConfigurationError('SVC_VAULT_PATH', `is ${quoted(path)}; ${allowed}`);
  }
  const mount = (settingOf(env, 'SVC_VAULT_MOUNT') ?? 'secret').replace(/^\/+|\/+$/g, '');
  return { address, token, tokenFile, mount, path };
}

/** Warns installations that are older than the rules for hosts and, in production, for grants. */
function warningsAboutSecrets(
  env: Environment,
  { namespaces, hosts, grantsDefault }: SecretGrants,
): readonly string[] {
  const names = environmentSecrets(env);
  const unsent = names.filter((name) => !hosts.has(name));
  const ungranted = grantsDefault ? [] : names.filter((name) => !namespaces.has(name));
  return [
    ...(unsent.length === 0
      ? []
      : [
          `no task can send ${variables(unsent)}: name the hosts in SVC_SECRET_HOSTS, such as ${unsent[0] ?? ''}=api.example.com`,
        ]),
    ...(ungranted.length === 0
      ? []
      : [
          `no namespace may use ${variables(ungranted)}: in production, grant it with SVC_SECRET_GRANTS=${ungranted[0] ?? ''}=default`,
        ]),
  ];
}

const variables = (names: readonly string[]): string =>
  names.map((name) => `${SECRET}${name}`).join(', ');
