import type { Response } from 'express';

/** Key of `response.locals`. */
const RESOURCE = 'resource';

/** RFC 6749, section 3.3; extensions may require any string. */
const SCOPE = /^[!#-[\]-~]+$/;

/** The protected resource that a request is for. */
export interface ChallengedResource {
  /** Address of its metadata (RFC 9728, section 5.1). */
  readonly metadata: string;
  /** The request has an `Authorization`. */
  readonly hasToken: boolean;
}

/** Makes a 401 or 403 of this response name the resource's metadata. */
export function challengeFor(response: Response, resource: ChallengedResource): void {
  response.locals[RESOURCE] = resource;
}

/**
 * The `WWW-Authenticate` of an error (RFC 6750, section 3). It names the first of several sufficient scopes, because
 * clients would request all of a list.
 * @param requiredScopes of the error's details
 * @returns undefined: the error's own header stays
 */
export function challengeOf(
  response: Response,
  status: number,
  requiredScopes: unknown,
): string | undefined {
  const resource = response.locals[RESOURCE] as ChallengedResource | undefined;
  const parts = resource === undefined ? [] : [`resource_metadata="${resource.metadata}"`];
  if (status === 401) {
    if (resource === undefined) return undefined;
    if (resource.hasToken) parts.unshift('error="invalid_token"');
    return `Bearer ${parts.join(', ')}`;
  }
  const scope: unknown = Array.isArray(requiredScopes) ? requiredScopes[0] : undefined;
  if (status !== 403 || typeof scope !== 'string' || !SCOPE.test(scope)) return undefined;
  return `Bearer ${['error="insufficient_scope"', `scope="${scope}"`, ...parts].join(', ')}`;
}
