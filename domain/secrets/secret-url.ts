/** A placeholder of a secret in a webhook's address. */
const placeholder = /\$\{\s*secrets\.([A-Za-z_]\w{0,127})\s*\}/g;

/** The names of the secrets in an address. */
export function secretsInUrl(url: string): readonly string[] {
  return [...new Set([...url.matchAll(placeholder)].map(([, name = '']) => name))];
}

/**
 * Whether each `${` of an address is a complete placeholder of a secret. The host has no placeholder, because a URL has
 * no braces there.
 */
export function placesWholeSecrets(url: string): boolean {
  return !url.replace(placeholder, '').includes('${');
}

/** The address with its secrets; null if they change its host or make the address invalid. */
export function fillUrl(url: string, values: ReadonlyMap<string, string>): URL | null {
  const filled = url.replace(placeholder, (_whole, name: string) => values.get(name) ?? '');
  if (!URL.canParse(filled) || !URL.canParse(url)) return null;
  const address = new URL(filled);
  return address.origin === new URL(url).origin ? address : null;
}
