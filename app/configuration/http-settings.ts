import type { AllowedPrivate } from '../../scheduler/http/address-rules.ts';
import { parseHostEntry } from '../../scheduler/http/host-list.ts';
import { isProxyException, type ProxySettings } from '../../scheduler/http/proxies.ts';
import { ConfigurationError, listed, shown, textOf, type Environment } from './setting-readers.ts';

/** The variables of proxies that count here, by the custom of many programs. */
export const proxyVariables = ['HTTP_PROXY', 'HTTPS_PROXY', 'NO_PROXY'] as const;

/** How requests of tasks and webhooks leave the service. */
export interface HttpSettings {
  /**
   * `SVC_HTTP_ALLOW_PRIVATE`: which private and loopback addresses they may go to: all, none, or a list of hosts,
   * addresses and networks. false.
   */
  readonly allowPrivate: AllowedPrivate;
  /** `HTTP_PROXY`, `HTTPS_PROXY`, `NO_PROXY`, each also in lower case. None. */
  readonly proxies: ProxySettings;
}

/** What the variables come to. */
export interface HttpConfiguration {
  readonly http: HttpSettings;
  /** Entries of `NO_PROXY` that cannot be read, a line each. The variable is often set for many programs at once. */
  readonly warnings: readonly string[];
}

/**
 * Reads the settings of outgoing requests. Of a variable in both cases the lower one counts, as with curl.
 * @throws ConfigurationError also for a proxy that is no http or https URL: without it, requests would go past the proxy
 */
export function httpConfiguration(env: Environment): HttpConfiguration {
  const except = listed((eitherCase(env, 'NO_PROXY')?.text ?? '').replace(/\s+/g, ','));
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
    warnings: unread.map((entry) => `NO_PROXY names ${shown(entry)}, which is no host or network`),
  };
}

/** `true`, `false`, or hosts, addresses and networks by commas; false when it is not set. */
function allowedPrivate(env: Environment, variable: string): AllowedPrivate {
  const text = textOf(env, variable);
  if (text === undefined || text === 'false') return false;
  if (text === 'true') return true;
  const entries = listed(text);
  const bad = entries.find((entry) => parseHostEntry(entry) === null);
  if (bad !== undefined || entries.length === 0) {
    const allowed =
      'true or false alone, or hosts, addresses and networks by commas (db.internal,10.0.0.0/8)';
    throw new ConfigurationError(variable, `names ${shown(bad ?? text)}; it must be ${allowed}`);
  }
  return entries;
}

function eitherCase(
  env: Environment,
  name: (typeof proxyVariables)[number],
): { readonly variable: string; readonly text: string } | null {
  for (const variable of [name.toLowerCase(), name]) {
    const text = textOf(env, variable);
    if (text !== undefined) return { variable, text };
  }
  return null;
}

/** Its text is not shown, since it may hold a password. By custom `proxy:3128` means `http://proxy:3128`. */
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
