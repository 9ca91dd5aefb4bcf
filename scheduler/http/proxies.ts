import { isIP } from 'node:net';
import {
  containsAddress,
  matchesHost,
  normalizeHost,
  parseHostEntry,
  type HostEntry,
} from './host-list.ts';

/** `HTTP_PROXY`, `HTTPS_PROXY` and `NO_PROXY`. */
export interface ProxySettings {
  /** For `http:` URLs; null: none. */
  readonly http: URL | null;
  /** For `https:` URLs; null: none. */
  readonly https: URL | null;
  /** The entries of `NO_PROXY`. */
  readonly except: readonly string[];
}

export const noProxies: ProxySettings = { http: null, https: null, except: [] };

interface ProxyException {
  readonly port: string | null;
  /** null: every host. */
  readonly entries: readonly HostEntry[] | null;
}

export class Proxies {
  readonly #settings: ProxySettings;
  readonly #exceptions: readonly ProxyException[];

  /** Entries of `except` that {@link isProxyException} rejects are ignored. */
  constructor(settings: ProxySettings) {
    this.#settings = settings;
    this.#exceptions = settings.except.map(parseException).filter((each) => each !== null);
  }

  /** @returns null if the request goes directly to its host */
  for(url: URL): URL | null {
    const proxy = url.protocol === 'https:' ? this.#settings.https : this.#settings.http;
    if (proxy === null) return null;
    return this.#exceptions.some((exception) => covers(exception, url)) ? null : proxy;
  }
}

/** Whether an entry of `NO_PROXY` is valid: `*`, a name, an address or a network, each optionally with a port. */
export function isProxyException(text: string): boolean {
  return parseException(text) !== null;
}

function parseException(text: string): ProxyException | null {
  if (text === '*') return { port: null, entries: null };
  const withPort = isIP(text) === 6 ? null : /^(.+):(\d{1,5})$/.exec(text);
  const [, host = text, port = null] = withPort ?? [];
  const entry = parseHostEntry(host);
  if (entry === null) return null;
  // By convention a name covers itself and its subdomains, with or without a leading dot.
  const entries =
    entry.kind === 'network'
      ? [entry]
      : [true, false].map((subdomains) => ({ ...entry, subdomains }));
  return { port, entries };
}

function covers({ port, entries }: ProxyException, url: URL): boolean {
  const urlPort = url.port === '' ? (url.protocol === 'https:' ? '443' : '80') : url.port;
  if (port !== null && port !== urlPort) return false;
  if (entries === null) return true;
  const host = normalizeHost(url.hostname);
  return entries.some((entry) => matchesHost(entry, host) || containsAddress(entry, host));
}
