import type { JsonObject } from '../json.ts';
import { compilePipeline } from '../pipeline/compile.ts';
import { storedOutput } from '../pipeline/progress.ts';
import { endsOf, type StepEnds } from './run-steps.ts';

/**
 * The output that a run's last event records if no worker executes the run: its finished steps, and the names under
 * which their results are stored. See `outputOf`.
 * @param payload of the task at the revision that the run is pinned to
 */
export function partialOutput(run: { readonly steps: StepEnds }, payload: JsonObject): JsonObject {
  // A failed step that would have been retried counts as executed.
  const ends = new Map(endsOf(run.steps).map((end) => [end.step, end]));
  return storedOutput(compilePipeline(payload), ends, null);
}

/** Adds the result names to the output of an execution that was abandoned before it recorded them. */
export function withResultNames(output: JsonObject, payload: JsonObject): JsonObject {
  if ('summary' in output) return output;
  const { layout } = compilePipeline(payload);
  return Object.keys(layout).length === 0 ? output : { ...output, layout: layout as JsonObject };
}
