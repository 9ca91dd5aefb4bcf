/** Where everything is that names no namespace: whoever needs only one never sees them. */
export const DEFAULT_NAMESPACE = 'default';

/** What a namespace may be called: 1 to 63 of a-z, 0-9 and -, from a letter to a letter or digit. */
export const NAMESPACE_PATTERN = '^[a-z]([a-z0-9-]{0,61}[a-z0-9])?$';

/** The namespace that the first event of a stream gives; none means `default`. */
export function namespaceOf(data: { readonly namespace?: string | undefined }): string {
  return data.namespace ?? DEFAULT_NAMESPACE;
}

/** The field of a first event that gives its namespace: none in `default`, so that such logs stay as they were. */
export function namespaceField(namespace: string): { namespace?: string } {
  return namespace === DEFAULT_NAMESPACE ? {} : { namespace };
}
