import type { EventStore } from '../event-store.ts';
import type { EventOf, StepEnd } from '../events/catalogue.ts';
import { load } from '../handle.ts';
import type { CompiledPipeline } from '../pipeline/compile.ts';
import { finishedSteps } from '../pipeline/progress.ts';
import { jsonBytes } from '../pipeline/json-size.ts';
import { endsBefore } from './retry-step.ts';
import { requireRun, runFold, type KnownRun } from './run.ts';
import { endsOf } from './run-steps.ts';
import { streams } from '../streams.ts';

/** Limits of one append: its step ends, and their bytes of JSON. */
const MAX_ENDS_PER_APPEND = 100;
const MAX_BYTES_PER_APPEND = 300 * 1024;

/**
 * The ends of a run's finished steps (and items of a `for_each`). Ends that its own stream lacks come from the runs
 * that it retries. Logs are left out, because they stay with the run that wrote them.
 * @param pipeline of the revision that the run, and those that it retries, are pinned to
 * @throws EventStoreError all errors of the log
 */
export async function finishedResults(
  store: EventStore,
  run: Pick<KnownRun, 'steps' | 'request'>,
  pipeline: CompiledPipeline,
): Promise<readonly StepEnd[]> {
  const streamed = [endsOf(run.steps)];
  /** The step that each run of {@link streamed} started with, if it was chosen. */
  const begins: (string | undefined)[] = [];
  let { steps, request } = run;
  // A run takes over results before it executes a step. So a stream with this many ends holds all
  // of them.
  while (request.prior_results !== null && steps.count < request.prior_results.steps) {
    begins.unshift(request.prior_results.before);
    const { state } = await load(store, streams.run(request.prior_results.run_id), runFold);
    ({ steps, request } = requireRun(state));
    streamed.unshift(endsOf(steps));
  }
  let finished: readonly StepEnd[] = [];
  for (const [index, ends] of streamed.entries()) {
    const begin = index === 0 ? undefined : begins[index - 1];
    const kept = begin === undefined ? finished : endsBefore(pipeline, finished, begin);
    finished = [...finishedSteps(pipeline, [...kept, ...ends]).values()];
  }
  return finished.map(withoutLog);
}

/**
 * The step ends that a run begins with. Results too large for its request are first copied from the stream of the run
 * that it retries; afterwards its own stream is complete. After a crash in between, the next worker copies the rest.
 *
 * @param record makes step ends durable in the run's stream, in this order
 * @param signal once aborted, nothing more is recorded, because the run has ended or continues elsewhere
 */
export async function copyPriorResults(
  store: EventStore,
  run: KnownRun,
  pipeline: CompiledPipeline,
  record: (ends: readonly EventOf<'RunStepCompleted'>[]) => Promise<void>,
  signal: AbortSignal,
): Promise<readonly StepEnd[]> {
  const own = endsOf(run.steps);
  const { prior_results } = run.request;
  if (prior_results === null || run.steps.count >= prior_results.steps) return own;
  const finished = await finishedResults(store, run, pipeline);
  const known = new Set(own.map(({ step }) => step));
  for (const some of inAppends(finished.filter(({ step }) => !known.has(step)))) {
    if (signal.aborted) break;
    await record(some.map((data) => ({ type: 'RunStepCompleted', data })));
  }
  return finished;
}

/** Splits step ends into parts of one append each. */
function* inAppends(ends: readonly StepEnd[]): Generator<readonly StepEnd[]> {
  let part: StepEnd[] = [];
  let bytes = 0;
  for (const end of ends) {
    const size = jsonBytes(end);
    if (
      part.length === MAX_ENDS_PER_APPEND ||
      (part.length > 0 && bytes + size > MAX_BYTES_PER_APPEND)
    ) {
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
