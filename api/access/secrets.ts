import { randomBytes, scrypt, timingSafeEqual, type ScryptOptions } from 'node:crypto';
import { FairTurns } from './fair-turns.ts';

/**
 * Cost of a hash: N = 2^15, r = 8, p = 1 takes 32 MiB and some 60 ms of a thread of the pool (RFC 7914; the
 * figures of the OWASP password storage cheat sheet for servers that check many).
 */
const COST = { N: 2 ** 15, r: 8, p: 1 } as const;
const KEY_BYTES = 32;
const SALT_BYTES = 16;
const MEMORY = 64 * 1024 * 1024;

/** A secret that nobody guesses: 32 random bytes, as text. */
export function newSecret(): string {
  return randomBytes(32).toString('base64url');
}

/** What is kept of a secret: `scrypt$N$r$p$salt$key`. Computed off the event loop. */
export async function hashSecret(secret: string): Promise<string> {
  const salt = randomBytes(SALT_BYTES);
  const key = await derive(secret, salt, COST, null);
  const { N, r, p } = COST;
  return ['scrypt', N, r, p, salt.toString('base64url'), key.toString('base64url')].join('$');
}

/**
 * Whether a secret is the one that was hashed. Takes as long for a wrong one.
 * @param who asks: the others' turns come in between; null: the service itself
 * @throws TooManyWaiting
 */
export async function verifySecret(
  secret: string,
  hash: string,
  who: string | null = null,
): Promise<boolean> {
  const [kind, N, r, p, salt, key] = hash.split('$');
  if (kind !== 'scrypt' || !salt || !key) throw new Error('a secret hash of an unknown kind');
  const expected = Buffer.from(key, 'base64url');
  const options = { N: Number(N), r: Number(r), p: Number(p) };
  const actual = await derive(secret, Buffer.from(salt, 'base64url'), options, who);
  return actual.length === expected.length && timingSafeEqual(actual, expected);
}

/** Of the form of a hash, of no secret. Written down and not made: making it would take time at the first need. */
const nobody = [
  'scrypt',
  COST.N,
  COST.r,
  COST.p,
  Buffer.alloc(SALT_BYTES, 1).toString('base64url'),
  Buffer.alloc(KEY_BYTES, 1).toString('base64url'),
].join('$');

/** For an agent that does not exist: does the work of {@link verifySecret} all the same, and says no. */
export async function verifyNobody(secret: string, who: string): Promise<false> {
  await verifySecret(secret, nobody, who);
  return false;
}

/** Hashes at one time: of the pool's four threads others need some, for files and names of hosts. */
const turns = new FairTurns(2);

/** Hashes that may wait for one who asks from outside: some seconds' work. */
const MOST_WAITING = 200;

/** @param who null: the service itself, or an operator */
function derive(
  secret: string,
  salt: Buffer,
  cost: ScryptOptions,
  who: string | null,
): Promise<Buffer> {
  const work = (): Promise<Buffer> => deriveNow(secret, salt, cost);
  return who === null ? turns.take('', Infinity, work) : turns.take(who, MOST_WAITING, work);
}

function deriveNow(secret: string, salt: Buffer, cost: ScryptOptions): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    scrypt(secret.normalize('NFC'), salt, KEY_BYTES, { ...cost, maxmem: MEMORY }, (error, key) => {
      if (error) reject(error);
      else resolve(key);
    });
  });
}
