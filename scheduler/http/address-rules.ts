import { lookup as systemLookup } from 'node:dns';
import type { LookupAddress, LookupAllOptions } from 'node:dns';
import { isIP, type LookupFunction } from 'node:net';
import ipaddr from 'ipaddr.js';
import {
  containsAddress,
  matchesHost,
  parseHostEntry,
  normalizeHost,
  type HostEntry,
} from './host-list.ts';
import { isMetadataAddress } from './metadata-addresses.ts';

/** `dns.lookup` with `all`. */
export type LookUpAll = (
  hostname: string,
  options: LookupAllOptions,
  callback: (error: NodeJS.ErrnoException | null, addresses: LookupAddress[]) => void,
) => void;

/** Whether an IP address is off limits. */
export type AddressCheck = (address: string) => boolean;

/** `SVC_HTTP_ALLOW_PRIVATE`: all private addresses, none, or a list of hosts, addresses and networks. */
export type AllowedPrivate = boolean | readonly string[];

export interface AddressRulesOptions {
  readonly allowPrivate: AllowedPrivate;
  /** Default: `dns.lookup`. */
  readonly lookUpAll?: LookUpAll | undefined;
  /** Default: {@link isPrivateAddress}. */
  readonly isPrivate?: AddressCheck | undefined;
}

/** Requests to an address or name are not allowed. The message names the setting that would allow them. */
export class AddressRefusedError extends Error {
  readonly #kind: 'private' | 'metadata';

  constructor(host: string, kind: 'private' | 'metadata') {
    const remedy =
      kind === 'private'
        ? 'is a private address; to allow it, add it to SVC_HTTP_ALLOW_PRIVATE'
        : "is a private address of a cloud's metadata service; to allow it, " +
          'list that very address in SVC_HTTP_ALLOW_PRIVATE';
    super(`${host} ${remedy}`);
    this.name = 'AddressRefusedError';
    this.#kind = kind;
  }

  /** The same error with another name, for messages that must not reveal the host. */
  of(host: string): AddressRefusedError {
    return new AddressRefusedError(host, this.#kind);
  }
}

/** The allocated part of IPv6 (IANA's registry of the address space); the rest is reserved. */
const ALLOCATED = ipaddr.IPv6.parseCIDR('2000::/3');

/**
 * Whether an IP address is not public: loopback, private, link-local, shared, reserved, multicast, or IPv6 that embeds
 * an IPv4 address (compatible, NAT64, 6to4, Teredo). A mapped address counts as its IPv4 address.
 */
export function isPrivateAddress(address: string): boolean {
  if (!ipaddr.isValid(address)) return true;
  const parsed = ipaddr.process(address);
  if (parsed.range() !== 'unicast') return true;
  return parsed instanceof ipaddr.IPv6 && !parsed.match(ALLOCATED);
}

/**
 * Decides which addresses requests may go to. The metadata services of clouds give credentials to every caller, so only
 * an entry with exactly their address allows them: neither `true`, nor a network, nor a name.
 */
export class AddressRules {
  /**
   * For sockets: rejects names with a forbidden address. It resolves names for the connection itself, so no check can
   * be out of date.
   */
  readonly lookup: LookupFunction;
  readonly #allowsAll: boolean;
  readonly #entries: readonly HostEntry[];
  readonly #lookUpAll: LookUpAll;
  readonly #isPrivate: AddressCheck;

  /** @throws RangeError for an entry that {@link parseHostEntry} rejects */
  constructor(options: AddressRulesOptions) {
    const { allowPrivate, lookUpAll = systemLookup, isPrivate = isPrivateAddress } = options;
    this.#allowsAll = allowPrivate === true;
    this.#entries = (typeof allowPrivate === 'boolean' ? [] : allowPrivate).map((text) => {
      const entry = parseHostEntry(text);
      if (entry === null) throw new RangeError(`${text} is not a host, address or network`);
      return entry;
    });
    this.#lookUpAll = lookUpAll;
    this.#isPrivate = isPrivate;
    this.lookup = (hostname, options, callback) => this.#lookUp(hostname, options, callback);
  }

  /** @throws AddressRefusedError when a URL's host is a forbidden address. Names are checked when they are resolved. */
  checkLiteral(url: URL): void {
    const host = normalizeHost(url.hostname);
    if (isIP(host) !== 0) this.#check(host, host, host);
  }

  /** Whether a name itself is listed. If it is listed, its resolver is trusted. */
  lists(hostname: string): boolean {
    return this.#entries.some((entry) => matchesHost(entry, hostname));
  }

  /** Checks all addresses of a name that a proxy will resolve. @throws AddressRefusedError, or the error of the lookup */
  async checkName(hostname: string): Promise<void> {
    await new Promise<void>((resolve, reject) => {
      this.lookup(hostname, { all: true }, (error) => (error ? reject(error) : resolve()));
    });
  }

  #lookUp(...[hostname, options, callback]: Parameters<LookupFunction>): void {
    this.#lookUpAll(hostname, { ...options, all: true }, (error, addresses) => {
      if (error) return callback(error, '', 0);
      try {
        for (const { address } of addresses) {
          this.#check(`${hostname} (${address})`, hostname, address);
        }
      } catch (refused) {
        return callback(refused as AddressRefusedError, '', 0);
      }
      const [first] = addresses;
      if (options.all === true) return callback(null, addresses);
      if (first) return callback(null, first.address, first.family);
      return callback(new Error(`${hostname} has no address`), '', 0);
    });
  }

  #check(shown: string, hostname: string, address: string): void {
    const holding = this.#entries.filter((entry) => containsAddress(entry, address));
    if (holding.some((entry) => entry.kind === 'network' && entry.isSingle)) return;
    if (isMetadataAddress(address)) throw new AddressRefusedError(shown, 'metadata');
    if (this.#allowsAll || holding.length > 0 || !this.#isPrivate(address)) return;
    if (!this.lists(hostname)) throw new AddressRefusedError(shown, 'private');
  }
}
