import {
  createCipheriv,
  createDecipheriv,
  createHash,
  randomBytes,
  type KeyObject,
} from 'node:crypto';

/** The sizes in bytes of a nonce and of a tag of AES-GCM. */
const NONCE = 12;
const TAG = 16;

/** Encrypts a string for a caller, who can return it but not read it. @param secret of the service */
export function seal(text: string, secret: KeyObject): string {
  const nonce = randomBytes(NONCE);
  const cipher = createCipheriv('aes-256-gcm', keyOf(secret), nonce);
  const sealed = Buffer.concat([cipher.update(text, 'utf8'), cipher.final()]);
  return Buffer.concat([nonce, cipher.getAuthTag(), sealed]).toString('base64url');
}

/** @returns null if it was not encrypted with this secret */
export function unseal(sealed: string, secret: KeyObject): string | null {
  const bytes = Buffer.from(sealed, 'base64url');
  if (bytes.length < NONCE + TAG) return null;
  const decipher = createDecipheriv('aes-256-gcm', keyOf(secret), bytes.subarray(0, NONCE));
  decipher.setAuthTag(bytes.subarray(NONCE, NONCE + TAG));
  try {
    return decipher.update(bytes.subarray(NONCE + TAG), undefined, 'utf8') + decipher.final('utf8');
  } catch {
    return null;
  }
}

const keyOf = (secret: KeyObject): Buffer =>
  createHash('sha256').update('sealed cursor').update(secret.export()).digest();
