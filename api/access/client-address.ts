import { SocketAddress, isIP } from 'node:net';
import type { Express, Request } from 'express';

/** Decides whether the machine at an address is a trusted proxy; `hop` counts from the socket's own address, 0. */
type Trust = (address: string, hop: number) => boolean;

/**
 * Gives every request of an application the client's address, alone and in one spelling. It replaces the address of
 * Express, which returns entries of `X-Forwarded-For` as they are: with a port, a client would have a new address, and
 * so a new limit, for each of its connections.
 *
 * @param app its setting `trust proxy` says which entries count
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
 * The address of a client behind trusted proxies. Each proxy appends the address that it was called from, so the
 * entries are read from the last one on, for as long as the machine that wrote them is trusted. An entry without an
 * address (`unknown`, RFC 7239 section 6) ends the way: the address of the proxy that wrote it counts then.
 *
 * @param socket the address of the machine that is connected; undefined once it has hung up
 * @param forwarded the value of `X-Forwarded-For`
 * @returns an address without port, brackets and zone, see {@link addressOf}; undefined where there is none
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
 * The address in a text such as `203.0.113.7`, `203.0.113.7:4711`, `2001:db8::7`, `[2001:db8::7]:4711`, in quotes or
 * not, as proxies write them. Equal addresses give equal texts: IPv6 in the form of RFC 5952, without a zone, and an
 * IPv4 address that is mapped into IPv6 as IPv4.
 *
 * @returns null where there is no address in it
 */
export function addressOf(text: string): string | null {
  const bare = text.replace(/^"(.*)"$/, '$1');
  const [, inBrackets, withPort] = /^(?:\[([^\]]*)\](?::\w*)?|([\d.]+):\w*)$/.exec(bare) ?? [];
  const address = (inBrackets ?? withPort ?? bare).replace(/%.*$/, '');
  if (isIP(address) === 4) return inBrackets === undefined ? address : null;
  if (isIP(address) !== 6) return null;
  const written = new SocketAddress({ address, family: 'ipv6' }).address;
  return /^::ffff:(\d+\.\d+\.\d+\.\d+)$/.exec(written)?.[1] ?? written;
}
