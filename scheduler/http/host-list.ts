import { BlockList, isIP } from 'node:net';

/** An entry of a list of hosts: a name, or a network of one or more addresses. */
export type HostEntry =
  | { readonly kind: 'name'; readonly name: string; readonly subdomains: boolean }
  | { readonly kind: 'network'; readonly network: BlockList; readonly isSingle: boolean };

/** Words for true and false. If a list contains one as a host, that is a mistake. */
const booleanWords = new Set(['true', 'false', 'yes', 'no', 'on', 'off']);

const label = '[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?';
const hostName = new RegExp(`^${label}(\\.${label})*$`);

/**
 * Parses an entry: `db.internal`, `.internal` or `*.internal` (subdomains only), `10.1.2.3`, `fd00::1`, `[fd00::1]`,
 * `10.0.0.0/8`, `fd00::/8`. Returns null for anything else.
 */
export function parseHostEntry(text: string): HostEntry | null {
  const [address = '', bits, ...more] = text.replace(/^\[([^\]]*)\]/, '$1').split('/');
  if (more.length > 0) return null;
  const version = address.includes('%') ? 0 : isIP(address);
  if (version !== 0) return networkOf(address, version === 4 ? 'ipv4' : 'ipv6', bits);
  if (bits !== undefined) return null;
  const below = text.replace(/^\*?\./, '');
  const name = canonicalName(below);
  if (name === null || booleanWords.has(name)) return null;
  return { kind: 'name', name, subdomains: below !== text };
}

/** Whether an entry names a host. Subdomains only match entries that say so. */
export function matchesHost(entry: HostEntry, hostname: string): boolean {
  if (entry.kind !== 'name') return false;
  const name = normalizeHost(hostname);
  return entry.subdomains ? name.endsWith(`.${entry.name}`) : name === entry.name;
}

/** Whether an address is in an entry's network. */
export function containsAddress(entry: HostEntry, address: string): boolean {
  if (entry.kind !== 'network') return false;
  const version = isIP(address);
  return version !== 0 && entry.network.check(address, version === 4 ? 'ipv4' : 'ipv6');
}

/** A host in lower case, without the brackets of an IPv6 address or the final dot of an absolute name. */
export function normalizeHost(hostname: string): string {
  return hostname.replace(/^\[|\]$|\.$/g, '').toLowerCase();
}

function networkOf(
  address: string,
  family: 'ipv4' | 'ipv6',
  bits: string | undefined,
): HostEntry | null {
  const all = family === 'ipv4' ? 32 : 128;
  if (bits !== undefined && !(/^\d{1,3}$/.test(bits) && Number(bits) <= all)) return null;
  const network = new BlockList();
  const prefix = bits === undefined ? all : Number(bits);
  network.addSubnet(address, prefix, family);
  return { kind: 'network', network, isSingle: prefix === all };
}

/** A name as URLs write it: in lower case, and in Punycode where it is not ASCII. */
function canonicalName(text: string): string | null {
  if (/[/?#@:\\\s]/.test(text) || !URL.canParse(`http://${text}`)) return null;
  const name = normalizeHost(new URL(`http://${text}`).hostname);
  // Some programs read `127.1` and `1` as addresses, others as names.
  return isIP(name) === 0 && hostName.test(name) ? name : null;
}
