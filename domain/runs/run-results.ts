import type { EventStore } from '../event-store.ts';
import type { StepEnd } from '../events/catalogue.ts';
import { load } from '../handle.ts';
import type { CompiledPipeline } from '../pipeline/compile.ts';
import { finishedSteps } from '../pipeline/progress.ts';
import { jsonBytes } from '../pipeline/size.ts';
import { requireRun, runFold, type KnownRun } from './run.ts';
import { endsOf } from './run-steps.ts';
import { streams } from '../streams.ts';

/** Step ends that are recorded with one append: so many, and so many bytes of JSON text at most. */
const MOST_AT_ONCE = 100;
const MOST_BYTES_AT_ONCE = 300 * 1024;

/**
 * The ends of a run's finished steps (and items of a `for_each`), those of the runs before it included as far as its
 * own stream does not hold them yet. Without their logs, which stay with the run that wrote them.
 *
 * @param pipeline of the revision that the run is pinned to; those it goes on from are pinned to the same
 * @throws EventStoreError all that the log throws
 */
export async function finishedResults(
  store: EventStore,
  run: Pick<KnownRun, 'steps' | 'request'>,
  pipeline: CompiledPipeline,
): Promise<readonly StepEnd[]> {
  const ends = [endsOf(run.steps)];
  let { steps, request } = run;
  // What a run takes over comes before all that it does itself: so many ends, and it holds all of them.
  while (request.prior_results !== null && steps.count < request.prior_results.steps) {
    const { state } = await load(store, streams.run(request.prior_results.run_id), runFold);
    ({ steps, request } = requireRun(state));
    ends.unshift(endsOf(steps));
  }
  return [...finishedSteps(pipeline, ends.flat()).values()].map(withoutLog);
}

/**
 * The step ends that a run begins with. Where some of them are too large for its request, and stand in the stream of
 * the run that it retries, they are recorded in its own first: from there on that stream is all there is to read. A
 * death in between leaves a part of them, and whoever takes the run up records the rest.
 *
 * @param record makes step ends durable in the run's stream, in this order
 * @param signal aborted: nothing more is recorded; the run is over, or goes on elsewhere
 */
export async function takeOverResults(
  store: EventStore,
  run: KnownRun,
  pipeline: CompiledPipeline,
  record: (steps: readonly StepEnd[]) => Promise<void>,
  signal: AbortSignal,
): Promise<readonly StepEnd[]> {
  const own = endsOf(run.steps);
  const { prior_results } = run.request;
  if (prior_results === null || run.steps.count >= prior_results.steps) return own;
  const finished = await finishedResults(store, run, pipeline);
  const known = new Set(own.map(({ step }) => step));
  for (const some of inAppends(finished.filter(({ step }) => !known.has(step)))) {
    if (signal.aborted) break;
    await record(some);
  }
  return finished;
}

/** In parts that the log takes as one append each. */
function* inAppends(ends: readonly StepEnd[]): Generator<readonly StepEnd[]> {
  let part: StepEnd[] = [];
  let bytes = 0;
  for (const end of ends) {
    const size = jsonBytes(end);
    if (part.length === MOST_AT_ONCE || (part.length > 0 && bytes + size > MOST_BYTES_AT_ONCE)) {
      yield part;
      part = [];
      bytes = 0;
    }
    part.push(end);
    bytes += size;
  }
  if (part.length > 0) yield part;
}

const withoutLog = (end: StepEnd): StepEnd => (end.log.length === 0 ? end : { ...end, log: [] });
