import { hash } from 'node:crypto';

/** The SHA-256 of a callback's token, in hexadecimal: the log holds only this. */
export function tokenHash(token: string): string {
  return hash('sha256', token, 'hex');
}
