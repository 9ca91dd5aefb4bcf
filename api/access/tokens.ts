import type { KeyObject } from 'node:crypto';
import jwt from 'jsonwebtoken';
import type { Instant } from '../../domain/clock.ts';

const ISSUER = 'task-scheduling-service';

const tokenTypes = ['access', 'refresh'] as const;
export type TokenType = (typeof tokenTypes)[number];

/** What a token says. Scopes count as the agent's are now, not as stands here. */
export interface Claims {
  /** The agent's id. */
  readonly sub: string;
  readonly type: TokenType;
  /** Separated by spaces. */
  readonly scope: string;
  readonly name: string;
  /** The session that it belongs to. */
  readonly sid: string;
  readonly jti: string;
  /** Seconds since 1970. */
  readonly iat: number;
  readonly exp: number;
}

/** What tokens are signed and verified with. As KeyObjects: verifying with a string costs forty times as much. */
export interface TokenKeys {
  /** Signs and verifies. */
  readonly jwtKey: KeyObject;
  /** Still verifies, during a change of keys. */
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

/**
 * What a token says, when it is one of ours, of the right type, and has not expired; else null. `none` and other
 * algorithms are refused; during a change of keys the previous one still verifies.
 */
export function verifyToken(
  token: string,
  type: TokenType,
  now: Instant,
  keys: TokenKeys,
): Claims | null {
  const claims = decode(token, now, keys.jwtKey) ?? decode(token, now, keys.previousJwtKey);
  return claims !== null && claims.type === type ? claims : null;
}

/** As {@link verifyToken}, for either type, and also for one that has expired: to end its session. */
export function verifyAnyToken(token: string, keys: TokenKeys): Claims | null {
  return decode(token, null, keys.jwtKey) ?? decode(token, null, keys.previousJwtKey);
}

/** @param now null accepts expired ones */
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
    // What must be understood is none of ours (RFC 7515, 4.1.11).
    return !('crit' in header) && isClaims(payload) ? payload : null;
  } catch (error) {
    // A SyntaxError: parts of the right form that hold no JSON. A TypeError: null in the place of claims.
    const kinds = [jwt.JsonWebTokenError, SyntaxError, TypeError];
    if (kinds.some((kind) => error instanceof kind)) return null;
    throw error;
  }
}

function isClaims(claims: unknown): claims is Claims {
  const { sub, type, sid, jti, exp } = (claims ?? {}) as Record<string, unknown>;
  const texts = [sub, sid, jti].every((claim) => typeof claim === 'string' && claim !== '');
  return texts && typeof exp === 'number' && tokenTypes.includes(type as TokenType);
}
