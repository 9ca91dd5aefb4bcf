import { isIP } from 'node:net';
import {
  containsAddress,
  matchesHost,
  parseHostEntry,
  normalizeHost,
  type HostEntry,
} from './host-list.ts';

/** `HTTP_PROXY`, `HTTPS_PROXY` and `NO_PROXY`. */
export interface ProxySettings {
  /** For addresses of `http:`; null: none. */
  readonly http: URL | null;
  /** For addresses of `https:`; null: none. */
  readonly https: URL | null;
  /** The entries of `NO_PROXY`. */
  readonly except: readonly string[];
}

export const noProxies: ProxySettings = { http: null, https: null, except: [] };

interface Exception {
  readonly port: string | null;
  /** null: every host. */
  readonly entries: readonly HostEntry[] | null;
}

/** Which proxy a request goes by. */
export class Proxies {
  readonly #settings: ProxySettings;
  readonly #exceptions: readonly Exception[];

  /** An entry of `except` that {@link isProxyException} rejects has no effect. */
  constructor(settings: ProxySettings) {
    this.#settings = settings;
    this.#exceptions = settings.except.map(parseException).filter((each) => each !== null);
  }

  /** @returns null: none, the request goes straight to its host */
  for(url: URL): URL | null {
    const proxy = url.protocol === 'https:' ? this.#settings.https : this.#settings.http;
    if (proxy === null) return null;
    return this.#exceptions.some((exception) => covers(exception, url)) ? null : proxy;
  }
}

/** Whether an entry of `NO_PROXY` can be read: `*`, a name, an address or a network, each also with a port. */
export function isProxyException(text: string): boolean {
  return parseException(text) !== null;
}

function parseException(text: string): Exception | null {
  if (text === '*') return { port: null, entries: null };
  const withPort = isIP(text) === 6 ? null : /^(.+):(\d{1,5})$/.exec(text);
  const [, host = text, port = null] = withPort ?? [];
  const entry = parseHostEntry(host);
  if (entry === null) return null;
  // By custom a name covers its subdomains, with or without a dot before it, and the dot leaves nothing out.
  const entries =
    entry.kind === 'network'
      ? [entry]
      : [
          { ...entry, subdomains: true },
          { ...entry, subdomains: false },
        ];
  return { port, entries };
}

function covers({ port, entries }: Exception, url: URL): boolean {
  const its = url.port === '' ? (url.protocol === 'https:' ? '443' : '80') : url.port;
  if (port !== null && port !== its) return false;
  const host = normalizeHost(url.hostname);
  if (entries === null) return true;
  return entries.some((entry) => matchesHost(entry, host) || containsAddress(entry, host));
}
