import type { Request } from 'express';

/** `SVC_PUBLIC_URL`: the address under which clients reach the service; undefined: the one that they used. */
interface PublicAddress {
  readonly publicUrl: string | undefined;
}

/** The address of the service, without a slash at its end. */
export function baseOf(request: Request, { publicUrl }: PublicAddress): string {
  return publicUrl ?? addressOf(request) ?? 'http://localhost';
}

/** The origin that the client used, as far as it can be told; null for a `Host` that is none. */
export function addressOf(request: Request): string | null {
  const address = `${request.protocol}://${request.host ?? ''}`;
  return URL.canParse(address) ? new URL(address).origin : null;
}
