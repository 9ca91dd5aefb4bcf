import { toIso, type Clock } from '../../domain/clock.ts';
import type { Coordination } from '../../scheduler/coordination.ts';
import { HttpError } from '../errors.ts';
import { networkOf } from './client-network.ts';
import { TooManyWaiting } from './fair-turns.ts';

/** From this failure on within {@link WINDOW}, an agent and address are told to wait. */
const MOST_FAILURES = 10;
/** Milliseconds. */
const WINDOW = 60_000;

/** After which one may try again whose address has too many attempts waiting. Milliseconds. */
const PAUSE = 1000;

type Counting = Pick<Coordination, 'count' | 'counted'>;

interface Dependencies {
  readonly coordination: Counting;
  readonly clock: Pick<Clock, 'now'>;
}

/** The attempts under way, of each name the last: the next one waits for it. */
const queues = new WeakMap<Counting, Map<string, Promise<unknown>>>();

/**
 * Slows down the guessing of secrets. Attempts for one agent from one address go one after the other, as many at
 * once would all be looked at before the first of them has failed. A network of IPv6 counts as one address.
 *
 * @param attempt gets the address, or its network; resolves with null for a failure
 * @returns what the attempt gave; null for a failure that is not yet one too many
 * @throws HttpError 429 from the tenth failure in a minute on, and where too many from the address wait, without another
 *   attempt
 */
export async function braked<T>(
  dependencies: Dependencies,
  { agentId, address }: { readonly agentId: string; readonly address: string },
  attempt: (network: string) => Promise<T | null>,
): Promise<T | null> {
  const network = networkOf(address);
  const name = `token-failures ${agentId} ${network}`;
  return inTurn(dependencies.coordination, name, async () => {
    // Without a trace: whoever asks under ever new names leaves none before a secret was looked at, and that takes time.
    refuseBraked(dependencies, await dependencies.coordination.counted(name, WINDOW));
    const result = await attempt(network).catch((error: unknown) => {
      if (!(error instanceof TooManyWaiting)) throw error;
      throw tooMany(dependencies, 'too many attempts wait; try again', error.limit, PAUSE, PAUSE);
    });
    if (result === null) {
      refuseBraked(dependencies, await dependencies.coordination.count(name, 1, WINDOW));
    }
    return result;
  });
}

function refuseBraked(
  dependencies: Dependencies,
  failures: { readonly sum: number; readonly remaining: number } | null,
): void {
  if (failures === null || failures.sum < MOST_FAILURES) return;
  const message = 'too many failures; wait before you try again';
  throw tooMany(dependencies, message, MOST_FAILURES, WINDOW, failures.remaining);
}

/** @param remaining of the window, after which it makes sense to try again */
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
  // Whatever became of the one before, its own caller was told.
  const mine = before.then(work, work);
  queue.set(name, mine);
  try {
    return await mine;
  } finally {
    if (queue.get(name) === mine) queue.delete(name);
  }
}
