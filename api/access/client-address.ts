import { SocketAddress, isIP } from 'node:net';
import type { Express, Request } from 'express';
import { ipKeyGenerator } from 'express-rate-limit';

/** Whether the machine at an address is a trusted proxy; hop 0 is the socket's address. */
type Trust = (address: string, hop: number) => boolean;

/**
 * Gives every request the client's normalized address. Express returns entries of `X-Forwarded-For` unchanged. An entry
 * with a port would give each connection of a client its own limits.
 * @param app its setting `trust proxy` decides which entries count
 */
export function addressByTrust(app: Express): void {
  const trust = app.get('trust proxy fn') as Trust;
  Object.defineProperty(app.request, 'ip', {
    configurable: true,
    get(this: Request) {
      return clientAddress(this.socket.remoteAddress, this.headers['x-forwarded-for'], trust);
    },
  });
}

/**
 * The address of a client behind trusted proxies. Entries are read backwards from the last one, as long as the proxy
 * that wrote them is trusted. At an entry without an address (`unknown`, RFC 7239 section 6), its proxy's address
 * counts.
 * @param socket the address of the connected machine; undefined once it has hung up
 * @param forwarded `X-Forwarded-For`
 * @returns normalized, see {@link addressOf}; undefined if there is none
 */
export function clientAddress(
  socket: string | undefined,
  forwarded: string | readonly string[] | undefined,
  trust: Trust,
): string | undefined {
  let found = socket === undefined ? undefined : (addressOf(socket) ?? socket);
  if (found === undefined || forwarded === undefined || !trust(found, 0)) return found;
  const entries = (typeof forwarded === 'string' ? forwarded : forwarded.join(',')).split(',');
  const given = entries.map((entry) => entry.trim()).filter((entry) => entry !== '');
  for (const [index, entry] of given.reverse().entries()) {
    const address = addressOf(entry);
    if (address === null) return found;
    found = address;
    if (!trust(address, index + 1)) return found;
  }
  return found;
}

/**
 * Normalizes an address as proxies write it, such as `203.0.113.7:4711` or `"[2001:db8::7]:4711"`: without port and zone,
 * IPv6 as in RFC 5952, IPv4 mapped into IPv6 as IPv4.
 * @returns null if there is no address
 */
export function addressOf(given: string): string | null {
  const bare = given.replace(/^"(.*)"$/, '$1');
  const [, inBrackets, withPort] = /^(?:\[([^\]]*)\](?::\w*)?|([\d.]+):\w*)$/.exec(bare) ?? [];
  const address = (inBrackets ?? withPort ?? bare).replace(/%.*$/, '');
  if (isIP(address) === 4) return inBrackets === undefined ? address : null;
  if (isIP(address) !== 6) return null;
  const written = new SocketAddress({ address, family: 'ipv6' }).address;
  return /^::ffff:(\d+\.\d+\.\d+\.\d+)$/.exec(written)?.[1] ?? written;
}

/**
 * How many bits of an IPv6 address identify a caller: the size of the network that a provider assigns to a customer.
 */
const IPV6_SUBNET = 56;

/** The address, or the network of an IPv6 address, that distinguishes callers. */
export function networkOf(address: string): string {
  return ipKeyGenerator(address, IPV6_SUBNET);
}
