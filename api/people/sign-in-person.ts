import { grantOf, personName, type PersonClaims } from '../../domain/agents/claim-rules.ts';
import { personFold } from '../../domain/agents/person.ts';
import type { Instant } from '../../domain/clock.ts';
import { load, type CommandContext } from '../../domain/handle.ts';
import { streams } from '../../domain/streams.ts';
import type { ApiDependencies } from '../dependencies.ts';
import { admitPerson, type AdmittedPerson, type IdentifiedPerson } from './admit-person.ts';
import type { PeopleSettings } from './people-settings.ts';
import { SignInRefusedError } from './sign-in-refused-error.ts';

/** Verified claims. */
export interface VerifiedClaims {
  readonly claims: PersonClaims;
  readonly subject: string;
  readonly issuedAt: Instant;
}

/** A person, with the scopes that the claims grant; null if they grant none. */
export function identify(
  { issuer, rules }: PeopleSettings,
  { claims, subject, issuedAt }: VerifiedClaims,
  isSignIn: boolean,
): IdentifiedPerson | null {
  const grant = grantOf(rules, claims);
  if (grant === null || grant.scopes.length === 0) return null;
  return { issuer, subject, name: personName(claims), grant, issuedAt, isSignIn };
}

/**
 * The agent of a person who has just signed in at the provider, brought in line with the claims.
 * @throws SignInRefusedError for claims that grant no scope; the person's agent then loses its scopes
 * @throws see {@link admitPerson}
 */
export async function signInPerson(
  dependencies: ApiDependencies,
  settings: PeopleSettings,
  verified: VerifiedClaims,
  context: CommandContext,
): Promise<AdmittedPerson> {
  const person = identify(settings, verified, true);
  if (person !== null) return admitPerson({ dependencies, person, context });
  const { issuer } = settings;
  const { subject, issuedAt, claims } = verified;
  const cause = `subject ${JSON.stringify(subject)} of ${issuer}`;
  const message =
    'your account gives you no access here; ask an administrator of this service for a role or group that does';
  const { state } = await load(dependencies.store, streams.person(issuer, subject), personFold);
  if (state === null) throw new SignInRefusedError('no_scopes', message, { cause });
  const grant = { namespace: state.namespace, scopes: [] };
  const without = { issuer, subject, name: personName(claims), grant, issuedAt, isSignIn: false };
  const { agentId } = await admitPerson({ dependencies, person: without, context });
  throw new SignInRefusedError('no_scopes', message, { cause, agentId });
}
