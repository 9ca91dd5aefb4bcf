import { isIP } from 'node:net';
import ipaddr from 'ipaddr.js';

/**
 * The addresses at which clouds give a machine its credentials and secrets, according to their documentation.
 * 169.254.169.254 is used by AWS, Google, Azure, Oracle, DigitalOcean, Hetzner, OpenStack and others.
 */
const ofIpv4: ReadonlySet<string> = new Set([
  '169.254.169.254',
  // AWS: ECS tasks and pods in EKS.
  '169.254.170.2',
  '169.254.170.23',
  // Azure: the host.
  '168.63.129.16',
  // Alibaba Cloud.
  '100.100.100.200',
  // Oracle Cloud Classic.
  '192.0.0.192',
  // Tencent Cloud.
  '169.254.0.23',
  // Volcengine.
  '100.96.0.96',
  // Scaleway.
  '169.254.42.42',
]);

const ofIpv6: ReadonlySet<string> = new Set([
  // AWS: instances and pods in EKS.
  'fd00:ec2::254',
  'fd00:ec2::23',
  // Google Cloud.
  'fd20:ce::254',
  // Scaleway.
  'fd00:42::42',
  // OpenStack.
  'fe80::a9fe:a9fe',
]);

/** Whether an IP address, or the IPv4 address that it embeds, is that of a cloud's metadata service. */
export function isMetadataAddress(address: string): boolean {
  if (isIP(address) === 4) return ofIpv4.has(address);
  if (!ipaddr.isValid(address)) return false;
  const parsed = ipaddr.process(address);
  if (parsed instanceof ipaddr.IPv4) return ofIpv4.has(parsed.toString());
  const inside = embedded(parsed);
  return (inside !== null && ofIpv4.has(inside)) || ofIpv6.has(parsed.toRFC5952String());
}

/** The embedded IPv4 address: compatible (RFC 4291), NAT64 (RFC 6052, 8215), 6to4 (RFC 3056), Teredo (RFC 4380). */
function embedded(address: ipaddr.IPv6): string | null {
  const bytes = address.toByteArray();
  const [first, second] = address.parts;
  if (first === 0x2002) return bytes.slice(2, 6).join('.');
  if (first === 0x2001 && second === 0) {
    return bytes
      .slice(12)
      .map((byte) => byte ^ 0xff)
      .join('.');
  }
  const isCompatible = address.parts.slice(0, 4).every((part) => part === 0);
  if (isCompatible || (first === 0x64 && second === 0xff9b)) return bytes.slice(12).join('.');
  return null;
}
