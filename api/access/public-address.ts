import type { Request } from 'express';

/**
 * The address of the service, without a trailing slash.
 * @param settings.publicUrl `SVC_PUBLIC_URL`; undefined: the address that the client used
 */
export function baseOf(
  request: Request,
  { publicUrl }: { readonly publicUrl: string | undefined },
): string {
  return publicUrl ?? addressOf(request) ?? 'http://localhost';
}

/** The origin that the client used; null for an invalid `Host`. */
export function addressOf(request: Request): string | null {
  const address = `${request.protocol}://${request.host ?? ''}`;
  return URL.canParse(address) ? new URL(address).origin : null;
}
