import type { AllowedPrivate } from '../../scheduler/http/address-rules.ts';
import { parseHostEntry } from '../../scheduler/http/host-list.ts';
import { isProxyException, type ProxySettings } from '../../scheduler/http/proxies.ts';
import {
  ConfigurationError,
  splitList,
  quoted,
  settingOf,
  type Environment,
} from './setting-readers.ts';

/** The usual proxy variables. */
export const proxyVariables = ['HTTP_PROXY', 'HTTPS_PROXY', 'NO_PROXY'] as const;

/** Settings of requests by tasks and webhooks. */
export interface HttpSettings {
  /**
   * `SVC_HTTP_ALLOW_PRIVATE`: allowed private and loopback addresses: all, none, or a list of hosts, addresses and
   * networks. Default: none.
   */
  readonly allowPrivate: AllowedPrivate;
  /** `HTTP_PROXY`, `HTTPS_PROXY`, `NO_PROXY`, also in lower case. Default: none. */
  readonly proxies: ProxySettings;
}

/** The parsed variables. */
interface HttpConfiguration {
  readonly http: HttpSettings;
  /** Invalid entries of `NO_PROXY`. They are no errors, because the variable is often set for many programs. */
  readonly warnings: readonly string[];
}

/**
 * Reads the settings of outgoing requests. A lower-case variable overrides the upper-case one, as with curl.
 * @throws ConfigurationError also for an invalid proxy: without it, requests would bypass the proxy
 */
export function httpConfiguration(env: Environment): HttpConfiguration {
  const except = splitList((eitherCase(env, 'NO_PROXY')?.text ?? '').replace(/\s+/g, ','));
  const unread = except.filter((entry) => !isProxyException(entry));
  return {
    http: {
      allowPrivate: allowedPrivate(env, 'SVC_HTTP_ALLOW_PRIVATE'),
      proxies: {
        http: proxyUrl(env, 'HTTP_PROXY'),
        https: proxyUrl(env, 'HTTPS_PROXY'),
        except: except.filter(isProxyException),
      },
    },
    warnings: unread.map(
      (entry) => `NO_PROXY names ${quoted(entry)}, which is not a host or network`,
    ),
  };
}

/** `true`, `false`, or hosts, addresses and networks, separated by commas; false if it is not set. */
function allowedPrivate(env: Environment, variable: string): AllowedPrivate {
  const text = settingOf(env, variable);
  if (text === undefined || text === 'false') return false;
  if (text === 'true') return true;
  const entries = splitList(text);
  const bad = entries.find((entry) => parseHostEntry(entry) === null);
  if (bad !== undefined || entries.length === 0) {
    const allowed =
      'true or false alone, or hosts, addresses and networks by commas (db.internal,10.0.0.0/8)';
    throw new ConfigurationError(variable, `names ${quoted(bad ?? text)}; it must be ${allowed}`);
  }
  return entries;
}

function eitherCase(
  env: Environment,
  name: (typeof proxyVariables)[number],
): { readonly variable: string; readonly text: string } | null {
  for (const variable of [name.toLowerCase(), name]) {
    const text = settingOf(env, variable);
    if (text !== undefined) return { variable, text };
  }
  return null;
}

/** Never shown, because it can contain a password. `proxy:3128` means `http://proxy:3128`. */
function proxyUrl(env: Environment, name: 'HTTP_PROXY' | 'HTTPS_PROXY'): URL | null {
  const given = eitherCase(env, name);
  if (given === null) return null;
  const { variable, text } = given;
  const address = text.includes('://') ? text : `http://${text}`;
  const url = URL.canParse(address) ? new URL(address) : null;
  if (url === null || !['http:', 'https:'].includes(url.protocol) || url.hostname === '') {
    throw new ConfigurationError(variable, 'must be an http or https URL, like http://proxy:3128');
  }
  if (!isEscaped(url)) {
    throw new ConfigurationError(variable, 'has a user or password with an unescaped %; write %25');
  }
  return url;
}

function isEscaped({ username, password }: URL): boolean {
  try {
    return decodeURIComponent(username + password) !== null;
  } catch {
    return false;
  }
}
