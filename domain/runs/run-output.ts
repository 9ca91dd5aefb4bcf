import type { JsonObject } from '../json.ts';
import { compilePipeline } from '../pipeline/compile.ts';
import { storedOutput } from '../pipeline/progress.ts';
import { endsOf, type StepEnds } from './run-steps.ts';

/**
 * What the last event of a run says of its output where nobody executes it any more: its steps so far, of all that its
 * pipeline has, and under which names their results stand. See `outputOf`.
 *
 * @param payload of the task at the revision that the run is pinned to
 */
export function outputSoFar(run: { readonly steps: StepEnds }, payload: JsonObject): JsonObject {
  // One that failed, and would have been tried again, was executed.
  const ends = new Map(endsOf(run.steps).map((end) => [end.step, end]));
  return storedOutput(compilePipeline(payload), ends, null);
}

/** The same of an output that an execution gave up without saying: under which names results stand. */
export function outputNamed(output: JsonObject, payload: JsonObject): JsonObject {
  if ('summary' in output) return output;
  const { layout } = compilePipeline(payload);
  return Object.keys(layout).length === 0 ? output : { ...output, layout: layout as JsonObject };
}
