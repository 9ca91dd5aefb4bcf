import type { ClaimRule } from '../../domain/agents/claim-rules.ts';

/** The settings by which people sign in with OpenID Connect. */
export interface PeopleSettings {
  /** `SVC_OIDC_ISSUER`, exactly as the provider writes it. */
  readonly issuer: string;
  readonly clientId: string;
  /** Undefined: a public client, which only PKCE protects. */
  readonly clientSecret: string | undefined;
  /** The scopes requested from the provider, separated by spaces. */
  readonly scopes: string;
  /** The rules for the scopes that claims grant. */
  readonly rules: readonly ClaimRule[];
  /** The `aud` that the issuer's access tokens must have; undefined: no such tokens are accepted. */
  readonly audience: string | undefined;
}
