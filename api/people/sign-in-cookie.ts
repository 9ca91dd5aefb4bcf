import {
  createCipheriv,
  createDecipheriv,
  createHmac,
  randomBytes,
  type KeyObject,
} from 'node:crypto';
import type { Instant } from '../../domain/clock.ts';
import { isJsonObject } from '../../domain/json.ts';
import type { TokenKeys } from '../access/tokens.ts';
import type { SignInProof } from './identity-provider.ts';

/** How long a person may take at the provider. Seconds. */
export const SIGN_IN_SECONDS = 600;

const ALGORITHM = 'aes-256-gcm';
const NONCE_BYTES = 12;
const TAG_BYTES = 16;

/** A sign-in that a browser has started. */
export interface BegunSignIn extends SignInProof {
  /** The view of the page to show afterwards, such as `runs/<id>`; may be empty. */
  readonly view: string;
}

/**
 * Encrypts a sign-in for the browser's cookie, so that no process has to remember it. A reader of the cookie cannot see
 * the proof. The cookie expires after ten minutes.
 */
export function seal(begun: BegunSignIn, now: Instant, { jwtKey }: TokenKeys): string {
  const nonce = randomBytes(NONCE_BYTES);
  const cipher = createCipheriv(ALGORITHM, sealingKey(jwtKey), nonce);
  const until = now + SIGN_IN_SECONDS * 1000;
  const sealed = [cipher.update(JSON.stringify({ ...begun, until }), 'utf8'), cipher.final()];
  return Buffer.concat([nonce, cipher.getAuthTag(), ...sealed]).toString('base64url');
}

/** The sign-in in a cookie; null if this service did not encrypt it, or it has expired. */
export function unseal(cookie: string, now: Instant, keys: TokenKeys): BegunSignIn | null {
  for (const key of [keys.jwtKey, keys.previousJwtKey]) {
    const begun = key === null ? null : openedWith(key, Buffer.from(cookie, 'base64url'));
    if (begun !== null) return begun.until > now ? begun : null;
  }
  return null;
}

function openedWith(
  key: KeyObject,
  sealed: Buffer,
): (BegunSignIn & { readonly until: Instant }) | null {
  const head = NONCE_BYTES + TAG_BYTES;
  if (sealed.length <= head) return null;
  const options = { authTagLength: TAG_BYTES };
  const decipher = createDecipheriv(
    ...([ALGORITHM, sealingKey(key), sealed.subarray(0, NONCE_BYTES), options] as const),
  );
  decipher.setAuthTag(sealed.subarray(NONCE_BYTES, head));
  let text: string;
  try {
    text = decipher.update(sealed.subarray(head), undefined, 'utf8') + decipher.final('utf8');
  } catch {
    // It was encrypted with another key, or changed.
    return null;
  }
  const begun: unknown = JSON.parse(text);
  return isJsonObject(begun) ? (begun as unknown as BegunSignIn & { until: Instant }) : null;
}

const sealingKey = (key: KeyObject): Buffer =>
  createHmac('sha256', key).update('key of sign-ins in progress').digest();
