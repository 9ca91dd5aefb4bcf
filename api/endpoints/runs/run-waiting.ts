import { EventStoreError, type Position } from '../../../domain/event-store.ts';
import type { RunEvent } from '../../../domain/events/catalogue.ts';
import { load } from '../../../domain/handle.ts';
import { hasEnded, runFold } from '../../../domain/runs/run.ts';
import { streams } from '../../../domain/streams.ts';
import { ReadModelError } from '../../../projections/read-model.ts';
import { runsProjection, type RunDocument } from '../../../projections/views/runs.ts';
import type { ApiDependencies } from '../../dependencies.ts';

/** How long the view may take to show the end of a run. Milliseconds. */
const MAX_LAG = 2000;

type Waiting = Pick<ApiDependencies, 'store' | 'readModel' | 'positions' | 'clock' | 'stopping'>;

/**
 * A run in its state when it has ended, the time is over, the service stops or the client has left. null if the view
 * lacks the run, because an error would make clients request another run.
 * @param seconds the longest wait
 * @param gone aborts once the client has left
 */
export async function runAtEnd(
  dependencies: Waiting,
  runId: string,
  seconds: number,
  gone?: AbortSignal,
): Promise<RunDocument | null> {
  const { positions, readModel } = dependencies;
  const signals = gone === undefined ? [dependencies.stopping] : [dependencies.stopping, gone];
  try {
    const position = await endOf(dependencies, runId, seconds, signals);
    if (position !== null) await positions.wait(runsProjection, position, MAX_LAG);
  } catch (error) {
    if (!(error instanceof EventStoreError)) throw error;
  }
  try {
    return (await readModel.get(runsProjection, runId))?.document ?? null;
  } catch (error) {
    if (error instanceof ReadModelError) return null;
    throw error;
  }
}

/** Follows the run's stream until it ends. @returns position of the last event */
async function endOf(
  { store, clock }: Waiting,
  runId: string,
  seconds: number,
  signals: readonly AbortSignal[],
): Promise<Position | null> {
  const stream = streams.run(runId);
  const loaded = await load(store, stream, runFold);
  let { state, position } = loaded;
  if (hasEnded(state) || position === null) return position;
  const stop = new AbortController();
  const end = (): void => stop.abort();
  const cancel = clock.after(seconds * 1000, end);
  // `AbortSignal.any` would keep something of each call at `stopping`.
  for (const each of signals) {
    each.addEventListener('abort', end, { once: true });
    if (each.aborted) end();
  }
  try {
    const { signal } = stop;
    const following = store.subscribe({ after: position, prefixes: [stream], signal });
    for await (const message of following) {
      if (message.kind === 'caught-up') continue;
      for (const event of message.events) {
        state = runFold.evolve(state, event as unknown as RunEvent, event);
        position = event.position;
      }
      if (hasEnded(state)) break;
    }
  } finally {
    cancel();
    for (const each of signals) each.removeEventListener('abort', end);
    end();
  }
  return position;
}
