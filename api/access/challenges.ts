import type { Response } from 'express';

/** Under what name a response holds the metadata of the resource that it is about. */
const RESOURCE = 'resource';

/** RFC 6749, section 3.3. An extension may say anything. */
const SCOPE = /^[!#-[\]-~]+$/;

/** What clients can find out about the resource that they have asked for. */
export interface ChallengedResource {
  /** Address of its metadata (RFC 9728, section 5.1). */
  readonly metadata: string;
  /** The request has brought a token, or something in the place of one. */
  readonly hasToken: boolean;
}

/** Has a 401 or 403 of this response name the metadata of the resource. */
export function challengeFor(response: Response, resource: ChallengedResource): void {
  response.locals[RESOURCE] = resource;
}

/**
 * The `WWW-Authenticate` of a refusal, as RFC 6750, section 3 has it. Of several scopes any one is enough, so the first is
 * named: a client would ask for all of a list.
 *
 * @param requiredScopes of the refusal's details
 * @returns undefined where the one that the refusal itself brings, if any, is right
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
