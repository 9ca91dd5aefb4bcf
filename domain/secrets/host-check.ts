import { allowsHost } from './allowed-hosts.ts';
import type { Secret } from './secret-source.ts';

/** Why secrets may not be sent to a URL; null if they may. @param shown the host, in a form that an error may show */
export function hostIssue(
  secrets: readonly Pick<Secret, 'name' | 'allowHosts' | 'hostsRemedy'>[],
  url: URL,
  shown: string,
): string | null {
  const refused = secrets.find(({ allowHosts }) => !allowsHost(allowHosts, url));
  if (refused === undefined) return null;
  const { name, allowHosts, hostsRemedy } = refused;
  const where = url.port === '' ? shown : `${shown}:${url.port}`;
  return allowHosts.length === 0
    ? `the secret ${name} may not be sent to any host: ${hostsRemedy}`
    : `the secret ${name} may not be sent to ${where}: ${hostsRemedy}`;
}
