import { DEFAULT_NAMESPACE } from '../namespaces/namespace.ts';

/** Claims of a token, by name. */
export type PersonClaims = Readonly<Record<string, unknown>>;

/** A rule of `SVC_OIDC_CLAIMS`: the scopes of people whose claims match. */
export interface ClaimRule {
  /** The path to the claim, such as `['realm_access', 'roles']`; undefined: the rule matches everyone. */
  readonly claim?: readonly string[] | undefined;
  /** The value that the claim, or one item of its list, must have. undefined: any value. */
  readonly is?: string | boolean | number | undefined;
  readonly scopes: readonly string[];
  /** undefined: `default`. */
  readonly namespace?: string | undefined;
}

/** The namespace and the scopes that a person's claims give. */
export interface Grant {
  readonly namespace: string;
  /** Sorted, without duplicates. */
  readonly scopes: readonly string[];
}

/**
 * The namespace and the scopes that claims give. The first rule that matches decides the namespace. The scopes are those
 * of all matching rules of that namespace.
 * @returns null if no rule matches
 */
export function grantOf(rules: readonly ClaimRule[], claims: PersonClaims): Grant | null {
  const matching = rules.filter((rule) => matches(rule, claims));
  const [first] = matching;
  if (first === undefined) return null;
  const namespace = namespaceOfRule(first);
  const scopes = matching
    .filter((rule) => namespaceOfRule(rule) === namespace)
    .flatMap((rule) => rule.scopes);
  return { namespace, scopes: [...new Set(scopes)].sort() };
}

const namespaceOfRule = ({ namespace }: ClaimRule): string => namespace ?? DEFAULT_NAMESPACE;

function matches({ claim, is }: ClaimRule, claims: PersonClaims): boolean {
  if (claim === undefined) return true;
  // At some providers, anybody can enter any address as long as it is not verified.
  if (claim.length === 1 && claim[0] === 'email' && claims['email_verified'] !== true) return false;
  const value = valueAt(claims, claim);
  if (is === undefined) return value !== undefined && value !== null && value !== false;
  return value === is || (Array.isArray(value) && value.includes(is));
}

function valueAt(claims: PersonClaims, path: readonly string[]): unknown {
  return path.reduce<unknown>(
    (value, key) =>
      typeof value === 'object' && value !== null && Object.hasOwn(value, key)
        ? (value as Record<string, unknown>)[key]
        : undefined,
    claims,
  );
}

/** Claims that may name a person, the best first. */
const naming = ['preferred_username', 'email', 'name', 'sub'];

/** The longest name of an agent, minus what {@link personName} may append. */
const MAX_NAME = 80;

/** A name for the agent of a person. It need not be unique. */
export function personName(claims: PersonClaims): string {
  for (const claim of naming) {
    const value = claims[claim];
    if (typeof value !== 'string') continue;
    // Invisible characters are removed, because they could make a name look like another one.
    const name = [...value.replaceAll(/[\p{C}\s]+/gu, ' ').trim()];
    const short = name.slice(0, MAX_NAME).join('').trim();
    if (short !== '') return short;
  }
  return 'person';
}
