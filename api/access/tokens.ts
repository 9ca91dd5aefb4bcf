import type { KeyObject } from 'node:crypto';
import jwt from 'jsonwebtoken';
import type { Instant } from '../../domain/clock.ts';

const ISSUER = 'task-scheduling-service';

/** `page`: the token of the page's cookie, an access token that lasts as long as its session. */
const tokenTypes = ['access', 'refresh', 'page'] as const;
export type TokenType = (typeof tokenTypes)[number];

/** The claims of a token. The agent's present scopes apply, not those in the token. */
export interface Claims {
  /** The agent's id. */
  readonly sub: string;
  readonly type: TokenType;
  /** Separated by spaces. */
  readonly scope: string;
  readonly name: string;
  /** The session's id. */
  readonly sid: string;
  readonly jti: string;
  /** Seconds since 1970. */
  readonly iat: number;
  readonly exp: number;
}

/** Keys as KeyObjects: verifying with a string takes forty times as long. */
export interface TokenKeys {
  /** Signs and verifies. */
  readonly jwtKey: KeyObject;
  /** Verifies older tokens while keys are rotated. */
  readonly previousJwtKey: KeyObject | null;
}

/** Signs a token (HS256, RFC 7519). @param lifeSeconds from now until it expires */
export function signToken(
  claims: Omit<Claims, 'iat' | 'exp'>,
  lifeSeconds: number,
  now: Instant,
  key: KeyObject,
): string {
  const iat = Math.floor(now / 1000);
  const payload = { ...claims, iat, exp: iat + lifeSeconds, iss: ISSUER, aud: ISSUER };
  return jwt.sign(payload, key, { algorithm: 'HS256' });
}

/** The claims of a valid token of one of the types; null for all others. Only HS256 is accepted. */
export function verifyToken(
  token: string,
  types: readonly TokenType[],
  now: Instant,
  keys: TokenKeys,
): Claims | null {
  const claims = decode(token, now, keys.jwtKey) ?? decode(token, now, keys.previousJwtKey);
  return claims !== null && types.includes(claims.type) ? claims : null;
}

/** Like {@link verifyToken}, but for any type and even if expired. Used to end its session. */
export function verifyAnyToken(token: string, keys: TokenKeys): Claims | null {
  return decode(token, null, keys.jwtKey) ?? decode(token, null, keys.previousJwtKey);
}

/** @param now null accepts expired tokens */
function decode(token: string, now: Instant | null, key: KeyObject | null): Claims | null {
  if (key === null) return null;
  try {
    const { header, payload } = jwt.verify(token, key, {
      complete: true,
      algorithms: ['HS256'],
      issuer: ISSUER,
      audience: ISSUER,
      ...(now === null ? { ignoreExpiration: true } : { clockTimestamp: Math.floor(now / 1000) }),
    });
    // No critical extension is supported (RFC 7515, 4.1.11).
    return !('crit' in header) && isClaims(payload) ? payload : null;
  } catch (error) {
    // SyntaxError: a part is no JSON. TypeError: the claims are null.
    const kinds = [jwt.JsonWebTokenError, SyntaxError, TypeError];
    if (kinds.some((kind) => error instanceof kind)) return null;
    throw error;
  }
}

function isClaims(claims: unknown): claims is Claims {
  const { sub, type, sid, jti, exp } = (claims ?? {}) as Record<string, unknown>;
  const hasIds = [sub, sid, jti].every((claim) => typeof claim === 'string' && claim !== '');
  return hasIds && typeof exp === 'number' && tokenTypes.includes(type as TokenType);
}
