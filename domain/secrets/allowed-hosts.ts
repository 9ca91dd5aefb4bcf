/** Allows every host. */
export const ANY_HOST = '*';

/** Ports that URLs leave out. */
const defaultPorts: Readonly<Record<string, string>> = { 'http:': '80', 'https:': '443' };

interface HostRule {
  /** The host in the form that URLs use. */
  readonly host: string;
  readonly subdomains: boolean;
  /** Null: any. */
  readonly port: string | null;
}

/**
 * The fault of an entry of `allow_hosts`; null if the entry is valid. Entries are `*`, a name, `*.name` (its
 * subdomains) or an address, with `:port` to allow only that port.
 */
export function hostEntryIssue(entry: string): string | null {
  if (entry === ANY_HOST || parseRule(entry) !== null) return null;
  return 'must be *, a name such as api.example.com, *.example.com or an address, with :port to allow only that port';
}

/** Whether a secret with these entries may be sent to a URL's host and port. */
export function allowsHost(entries: readonly string[], url: URL): boolean {
  if (entries.includes(ANY_HOST)) return true;
  const host = canonicalHost(url.hostname);
  const port = url.port === '' ? (defaultPorts[url.protocol] ?? '') : url.port;
  if (host === null) return false;
  return entries.some((entry) => {
    const rule = parseRule(entry);
    if (rule === null || (rule.port !== null && rule.port !== port)) return false;
    return rule.subdomains ? host.endsWith(`.${rule.host}`) : host === rule.host;
  });
}

function parseRule(entry: string): HostRule | null {
  const subdomains = entry.startsWith('*.');
  const rest = subdomains ? entry.slice(2) : entry;
  const bare = /^[0-9A-Fa-f:.]*:[0-9A-Fa-f:.]*:[0-9A-Fa-f:.]*$/.test(rest) ? `[${rest}]` : rest;
  const [, written = '', port = null] =
    /^(\[[^\]]+\]|[^\s:/?#@\\[\]*]+)(?::(\d{1,5}))?$/.exec(bare) ?? [];
  const host = canonicalHost(written);
  if (host === null || (port !== null && (Number(port) < 1 || Number(port) > 65_535))) return null;
  // An address has no subdomains.
  if (subdomains && (host.startsWith('[') || /^[\d.]+$/.test(host))) return null;
  return { host, subdomains, port: port === null ? null : String(Number(port)) };
}

/** Labels of letters, digits and hyphens (RFC 1123, section 2.1), and underscores, which private names have. */
const hostName = /^[a-z0-9_-]+(?:\.[a-z0-9_-]+)*$/;

/** A host in lower case and Punycode, with addresses in a canonical form; null if it is not a host. */
function canonicalHost(text: string): string | null {
  const address = `http://${text}/`;
  if (text === '' || !URL.canParse(address)) return null;
  const { hostname, pathname, username } = new URL(address);
  if (pathname !== '/' || username !== '') return null;
  const host = hostname.replace(/\.$/, '').toLowerCase();
  return host.startsWith('[') || hostName.test(host) ? host : null;
}
