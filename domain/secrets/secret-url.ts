/** A placeholder of a secret in a webhook's address. */
const placeholder = /\$\{\s*secrets\.([A-Za-z_]\w{0,127})\s*\}/g;

/** The secrets that an address places, by name. */
export function secretsInUrl(url: string): readonly string[] {
  return [...new Set([...url.matchAll(placeholder)].map(([, name = '']) => name))];
}

/** Whether each `${` of an address places a whole secret. A host cannot: no URL has braces there. */
export function placesWholeSecrets(url: string): boolean {
  return !url.replace(placeholder, '').includes('${');
}

/** The address with its secrets; null where they change its host, or make it none. */
export function fillUrl(url: string, values: ReadonlyMap<string, string>): URL | null {
  const filled = url.replace(placeholder, (_whole, name: string) => values.get(name) ?? '');
  if (!URL.canParse(filled) || !URL.canParse(url)) return null;
  const address = new URL(filled);
  return address.origin === new URL(url).origin ? address : null;
}
