import { ipKeyGenerator } from 'express-rate-limit';

/** Bits of an IPv6 address that are one caller: what a provider gives to one customer. */
const IPV6_SUBNET = 56;

/** Whom an address stands for, where callers are told apart by it: itself, of IPv6 its network. */
export function networkOf(address: string): string {
  return ipKeyGenerator(address, IPV6_SUBNET);
}
