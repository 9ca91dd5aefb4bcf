import { EventStoreError, type Position } from '../../../domain/event-store.ts';
import type { RunEvent } from '../../../domain/events/catalogue.ts';
import { load } from '../../../domain/handle.ts';
import { hasEnded, runFold } from '../../../domain/runs/run.ts';
import { streams } from '../../../domain/streams.ts';
import { ReadModelError } from '../../../projections/read-model.ts';
import { runsProjection, type RunDocument } from '../../../projections/views/runs.ts';
import type { ApiDependencies } from '../../dependencies.ts';

/** How long the view may take to show the end of a run. Milliseconds. */
const LIMIT = 2000;

type Waiting = Pick<ApiDependencies, 'store' | 'readModel' | 'positions' | 'clock' | 'stopping'>;

/**
 * A run once it has ended, or as it is when the time is over, the service stops or nobody waits any more; null while the view does not show it:
 * the run is requested all the same, and a client that is told of a fault would ask for another.
 * @param seconds to wait at most
 * @param gone aborted once nobody waits any more
 */
export async function runAtEnd(
  dependencies: Waiting,
  runId: string,
  seconds: number,
  gone?: AbortSignal,
): Promise<RunDocument | null> {
  const { positions, readModel } = dependencies;
  const ends = gone === undefined ? [dependencies.stopping] : [dependencies.stopping, gone];
  const position = await knownEndOf(dependencies, runId, seconds, ends);
  if (position !== null) await positions.wait(runsProjection, position, LIMIT);
  try {
    return (await readModel.get(runsProjection, runId))?.document ?? null;
  } catch (error) {
    if (error instanceof ReadModelError) return null;
    throw error;
  }
}

/** As {@link endOf}; null where the log can't be followed now. */
async function knownEndOf(
  dependencies: Waiting,
  runId: string,
  seconds: number,
  ends: readonly AbortSignal[],
): Promise<Position | null> {
  try {
    return await endOf(dependencies, runId, seconds, ends);
  } catch (error) {
    if (error instanceof EventStoreError) return null;
    throw error;
  }
}

/** Follows the run's stream. @returns position of the last event that it has seen */
async function endOf(
  { store, clock }: Waiting,
  runId: string,
  seconds: number,
  ends: readonly AbortSignal[],
): Promise<Position | null> {
  const stream = streams.run(runId);
  const loaded = await load(store, stream, runFold);
  let { state, position } = loaded;
  if (hasEnded(state) || position === null) return position;
  const stop = new AbortController();
  const end = (): void => stop.abort();
  const forget = clock.after(seconds * 1000, end);
  for (const each of ends) {
    each.addEventListener('abort', end, { once: true });
    if (each.aborted) end();
  }
  try {
    const following = store.subscribe({
      after: position,
      prefixes: [stream],
      signal: stop.signal,
    });
    for await (const message of following) {
      if (message.kind === 'caught-up') continue;
      for (const event of message.events) {
        state = runFold.evolve(state, event as unknown as RunEvent, event);
        position = event.position;
      }
      if (hasEnded(state)) break;
    }
  } finally {
    forget();
    for (const each of ends) each.removeEventListener('abort', end);
    end();
  }
  return position;
}
