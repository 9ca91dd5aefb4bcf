import type { StepEnd } from '../events/catalogue.ts';
import type { CompiledPipeline, CompiledStep } from '../pipeline/compile.ts';
import { splitItemName } from '../pipeline/output.ts';

/** The ids of all steps of a pipeline in its order, including those in groups. */
export function stepIds({ steps }: Pick<CompiledPipeline, 'steps'>): readonly string[] {
  return steps.flatMap(idsOf);
}

/**
 * The results that a retry from a step reuses: those of all steps that do not come after this step. In a group, the
 * other steps also keep their results.
 * @param ends of finished steps and items
 * @param step an id of {@link stepIds}
 */
export function endsBefore<End extends Pick<StepEnd, 'step'>>(
  pipeline: CompiledPipeline,
  ends: readonly End[],
  step: string,
): readonly End[] {
  const again = stepsAgain(pipeline, step);
  return ends.filter((end) => !again.has(splitItemName(end.step).id));
}

/** The steps that run again: the named one, and all steps after it. */
function stepsAgain({ steps, isGraph }: CompiledPipeline, named: string): ReadonlySet<string> {
  const at = steps.findIndex((step) => idsOf(step).includes(named));
  const first = steps[at];
  if (first === undefined) return new Set();
  const again = new Set(first.id === named ? idsOf(first) : [first.id, named]);
  for (const step of steps.slice(at + 1)) {
    // A graph lists steps in any order.
    if (!isGraph) for (const id of idsOf(step)) again.add(id);
  }
  if (!isGraph) return again;
  for (let before = -1; before !== again.size;) {
    before = again.size;
    for (const step of steps) {
      if (step.needs.some((id) => again.has(id))) for (const id of idsOf(step)) again.add(id);
    }
  }
  return again;
}

const idsOf = (step: CompiledStep): readonly string[] =>
  step.kind === 'group' ? [step.id, ...step.steps.map(({ id }) => id)] : [step.id];
