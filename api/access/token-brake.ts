import { toIso } from '../../domain/clock.ts';
import type { Coordination } from '../../scheduler/coordination.ts';
import type { ApiDependencies } from '../dependencies.ts';
import { HttpError } from '../errors.ts';

/** From this failure on within {@link WINDOW}, an agent and address are told to wait. */
const MOST_FAILURES = 10;
/** Milliseconds. */
const WINDOW = 60_000;

/** The attempts under way, of each name the last: the next one waits for it. */
const queues = new WeakMap<Coordination, Map<string, Promise<unknown>>>();

/**
 * Slows down the guessing of secrets. Attempts for one agent from one address go one after the other, as many at
 * once would all be looked at before the first of them has failed.
 *
 * @param attempt resolves with null for a failure
 * @returns what the attempt gave; null for a failure that is not yet one too many
 * @throws HttpError 429 from the tenth failure in a minute on, without another attempt
 */
export async function braked<T>(
  dependencies: Pick<ApiDependencies, 'coordination' | 'clock'>,
  { agentId, address }: { readonly agentId: string; readonly address: string },
  attempt: () => Promise<T | null>,
): Promise<T | null> {
  const name = `token-failures ${agentId} ${address}`;
  return inTurn(dependencies.coordination, name, async () => {
    await count(dependencies, name, 0);
    const result = await attempt();
    if (result === null) await count(dependencies, name, 1);
    return result;
  });
}

async function count(
  { coordination, clock }: Pick<ApiDependencies, 'coordination' | 'clock'>,
  name: string,
  by: number,
): Promise<void> {
  const { sum, remaining } = await coordination.count(name, by, WINDOW);
  if (sum < MOST_FAILURES) return;
  throw new HttpError(
    'rate_limit_exceeded',
    'too many failures; wait before you try again',
    {
      limit: MOST_FAILURES,
      window: `${WINDOW / 1000}s`,
      reset_at: toIso(clock.now() + remaining),
    },
    { 'Retry-After': String(Math.max(1, Math.ceil(remaining / 1000))) },
  );
}

async function inTurn<T>(
  coordination: Coordination,
  name: string,
  work: () => Promise<T>,
): Promise<T> {
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
