import { randomBytes, scrypt, timingSafeEqual, type ScryptOptions } from 'node:crypto';
import { API_KEY_PREFIX } from '../../domain/agents/api-key.ts';
import { FairTurns } from './fair-turns.ts';

/** Cost of a hash: 32 MiB and some 60 ms of a thread (RFC 7914; OWASP password storage cheat sheet). */
const COST = { N: 2 ** 15, r: 8, p: 1 } as const;
const KEY_BYTES = 32;
const SALT_BYTES = 16;
const MEMORY = 64 * 1024 * 1024;

/** A secret of 32 random bytes, in base64url. */
export function newSecret(): string {
  return randomBytes(32).toString('base64url');
}

/** Creates an API key: a recognisable prefix and 32 random bytes. */
export function newApiKey(): string {
  return API_KEY_PREFIX + randomBytes(32).toString('base64url');
}

/** The hash of a secret: `scrypt$N$r$p$salt$key`. Computed off the event loop. */
export async function hashSecret(secret: string): Promise<string> {
  const salt = randomBytes(SALT_BYTES);
  const key = await derive(secret, salt, COST, null);
  const { N, r, p } = COST;
  return ['scrypt', N, r, p, salt.toString('base64url'), key.toString('base64url')].join('$');
}

/**
 * Whether a secret matches a hash; a wrong one takes the same time.
 * @param caller callers take turns; null: the service itself
 * @throws TooManyWaitingError
 */
export async function verifySecret(
  secret: string,
  hash: string,
  caller: string | null = null,
): Promise<boolean> {
  const [kind, N, r, p, salt, key] = hash.split('$');
  if (kind !== 'scrypt' || !salt || !key) throw new Error('unknown kind of secret hash');
  const expected = Buffer.from(key, 'base64url');
  const options = { N: Number(N), r: Number(r), p: Number(p) };
  const actual = await derive(secret, Buffer.from(salt, 'base64url'), options, caller);
  return actual.length === expected.length && timingSafeEqual(actual, expected);
}

/** A hash that no secret matches. */
const nobody = [
  'scrypt',
  COST.N,
  COST.r,
  COST.p,
  Buffer.alloc(SALT_BYTES, 1).toString('base64url'),
  Buffer.alloc(KEY_BYTES, 1).toString('base64url'),
].join('$');

/** Takes as long as {@link verifySecret}, for an unknown agent. */
export async function verifyNobody(secret: string, caller: string): Promise<false> {
  await verifySecret(secret, nobody, caller);
  return false;
}

/** How many hashes are computed concurrently. Files and DNS need the other two threads of the pool. */
const turns = new FairTurns(2);

/** How many hashes may wait for one caller: the work of some seconds. */
const MAX_WAITING = 200;

/** @param caller null: the service itself, or an operator */
function derive(
  secret: string,
  salt: Buffer,
  cost: ScryptOptions,
  caller: string | null,
): Promise<Buffer> {
  const maxWaiting = caller === null ? Infinity : MAX_WAITING;
  return turns.take(caller ?? '', maxWaiting, () => deriveNow(secret, salt, cost));
}

function deriveNow(secret: string, salt: Buffer, cost: ScryptOptions): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    scrypt(secret.normalize('NFC'), salt, KEY_BYTES, { ...cost, maxmem: MEMORY }, (error, key) => {
      if (error) reject(error);
      else resolve(key);
    });
  });
}
