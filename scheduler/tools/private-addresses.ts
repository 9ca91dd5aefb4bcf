import { lookup as systemLookup } from 'node:dns';
import type { LookupAddress, LookupAllOptions } from 'node:dns';
import { isIP, type LookupFunction } from 'node:net';
import ipaddr from 'ipaddr.js';
import { ToolError } from './tool.ts';

/** Resolves a name to all its addresses, as `dns.lookup` with `all` does. */
export type LookUpAll = (
  hostname: string,
  options: LookupAllOptions,
  callback: (error: NodeJS.ErrnoException | null, addresses: LookupAddress[]) => void,
) => void;

/** An address or name that requests may not go to. */
export class PrivateAddressError extends ToolError {
  constructor(host: string) {
    super(`${host} is a private address, to which no requests are made`, { retryable: false });
    this.name = 'PrivateAddressError';
  }
}

/** All of IPv6 that is given out (IANA's registry of its address space); the rest is reserved. */
const GIVEN_OUT = ipaddr.IPv6.parseCIDR('2000::/3');

/**
 * Whether an IP address is anything but a public one: loopback, private, link-local, shared, reserved,
 * multicast, or IPv6 that stands for an IPv4 address (mapped, compatible, NAT64, 6to4, Teredo) unless that is public
 * and merely mapped.
 */
export function isPrivateAddress(address: string): boolean {
  if (!ipaddr.isValid(address)) return true;
  const parsed = ipaddr.process(address);
  if (parsed.range() !== 'unicast') return true;
  return parsed instanceof ipaddr.IPv6 && !parsed.match(GIVEN_OUT);
}

/** Says of an IP address whether it is out of bounds. */
export type AddressCheck = (address: string) => boolean;

/** @throws PrivateAddressError when a URL's host is a private address itself. Names are checked on connecting. */
export function refusePrivateHost(url: URL, isPrivate: AddressCheck = isPrivateAddress): void {
  const host = url.hostname.replace(/^\[|\]$/g, '');
  if (isIP(host) !== 0 && isPrivate(host)) throw new PrivateAddressError(host);
}

/**
 * A look-up for sockets that refuses names with a private address among theirs. It is the very look-up
 * that the connection is made by, so a name can't change its meaning in between.
 */
export function publicLookup(
  lookUpAll: LookUpAll = systemLookup,
  isPrivate: AddressCheck = isPrivateAddress,
): LookupFunction {
  return (hostname, options, callback) => {
    lookUpAll(hostname, { ...options, all: true }, (error, addresses) => {
      if (error) return callback(error, '', 0);
      const found = addresses.find(({ address }) => isPrivate(address));
      if (found) return callback(new PrivateAddressError(`${hostname} (${found.address})`), '', 0);
      const [first] = addresses;
      if (options.all === true) return callback(null, addresses);
      if (first) return callback(null, first.address, first.family);
      return callback(new Error(`${hostname} has no address`), '', 0);
    });
  };
}
