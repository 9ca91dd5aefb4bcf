import { toIso, type Clock } from '../../domain/clock.ts';
import type { Coordination } from '../../scheduler/coordination.ts';
import { HttpError } from '../errors.ts';
import { networkOf } from './client-address.ts';
import { TooManyWaitingError } from './fair-turns.ts';

/** After this many failures within {@link WINDOW}, an agent at an address must wait. */
const MAX_FAILURES = 10;
/** Milliseconds. */
const WINDOW = 60_000;

/** How long an address with too many waiting attempts should pause. Milliseconds. */
const PAUSE_AFTER_FAILURE = 1000;

type Counting = Pick<Coordination, 'count' | 'readCount'>;

interface Dependencies {
  readonly coordination: Counting;
  readonly clock: Pick<Clock, 'now'>;
}

/** The last attempt of each name. The next attempt waits for it. */
const queues = new WeakMap<Counting, Map<string, Promise<unknown>>>();

/**
 * Limits the guessing of secrets. Attempts for one agent from one address, or IPv6 network, run one after the other.
 * Concurrent attempts would all be checked before the first one has failed.
 * @param attempt receives the address or network; resolves with null for a failure
 * @returns the attempt's result; null for a failure
 * @throws HttpError 429, without another attempt, after ten failures in a minute, and if too many attempts wait
 */
export async function limitFailures<T>(
  dependencies: Dependencies,
  { agentId, address }: { readonly agentId: string; readonly address: string },
  attempt: (network: string) => Promise<T | null>,
): Promise<T | null> {
  const network = networkOf(address);
  const name = `token-failures ${agentId} ${network}`;
  return inTurn(dependencies.coordination, name, async () => {
    // `counted` leaves no record. So constantly changing names leave no record before a secret was
    // checked.
    requireFewFailures(dependencies, await dependencies.coordination.readCount(name, WINDOW));
    const result = await attempt(network).catch((error: unknown) => {
      if (!(error instanceof TooManyWaitingError)) throw error;
      const message = 'too many attempts are waiting; try again';
      throw tooMany(dependencies, message, error.limit, PAUSE_AFTER_FAILURE, PAUSE_AFTER_FAILURE);
    });
    if (result === null) {
      requireFewFailures(dependencies, await dependencies.coordination.count(name, 1, WINDOW));
    }
    return result;
  });
}

function requireFewFailures(
  dependencies: Dependencies,
  failures: { readonly sum: number; readonly remaining: number } | null,
): void {
  if (failures === null || failures.sum < MAX_FAILURES) return;
  const message = 'too many failures; wait before you try again';
  throw tooMany(dependencies, message, MAX_FAILURES, WINDOW, failures.remaining);
}

/** @param remaining milliseconds until the next attempt makes sense */
function tooMany(
  { clock }: Dependencies,
  message: string,
  limit: number,
  window: number,
  remaining: number,
): HttpError {
  const reset_at = toIso(clock.now() + remaining);
  const details = { limit, window: `${window / 1000}s`, reset_at };
  const seconds = Math.max(1, Math.ceil(remaining / 1000));
  return new HttpError('rate_limit_exceeded', message, details, { 'Retry-After': String(seconds) });
}

async function inTurn<T>(coordination: Counting, name: string, work: () => Promise<T>): Promise<T> {
  const queue = queues.get(coordination) ?? new Map<string, Promise<unknown>>();
  queues.set(coordination, queue);
  const before = queue.get(name) ?? Promise.resolve();
  // A failure of the previous attempt concerns only its own caller.
  const mine = before.then(work, work);
  queue.set(name, mine);
  try {
    return await mine;
  } finally {
    if (queue.get(name) === mine) queue.delete(name);
  }
}
