import type { ClaimRule } from '../../domain/agents/claim-rules.ts';

/** How people sign in with OpenID Connect. */
export interface PeopleSettings {
  /** `SVC_OIDC_ISSUER`, exactly as the provider writes it. */
  readonly issuer: string;
  readonly clientId: string;
  /** Undefined: a public client, which only PKCE protects. */
  readonly clientSecret: string | undefined;
  /** What the provider is asked for, separated by spaces. */
  readonly scopes: string;
  /** What claims give. */
  readonly rules: readonly ClaimRule[];
  /** `aud` of access tokens of the issuer that are accepted; undefined: none are. */
  readonly audience: string | undefined;
}
