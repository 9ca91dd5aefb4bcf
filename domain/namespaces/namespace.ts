/** The namespace of all records that name none. Users who need only one namespace never see namespaces. */
export const DEFAULT_NAMESPACE = 'default';

/** A valid name of a namespace: 1 to 63 of a-z, 0-9 and -. It starts with a letter and ends with a letter or digit. */
export const NAMESPACE_PATTERN = '^[a-z]([a-z0-9-]{0,61}[a-z0-9])?$';

/** The namespace in the first event of a stream; if there is none, `default`. */
export function namespaceOf(data: { readonly namespace?: string | undefined }): string {
  return data.namespace ?? DEFAULT_NAMESPACE;
}

/**
 * The field of a stream's first event that holds its namespace. It is left out in `default`, so older logs need no
 * change.
 */
export function namespaceField(namespace: string): { namespace?: string } {
  return namespace === DEFAULT_NAMESPACE ? {} : { namespace };
}
