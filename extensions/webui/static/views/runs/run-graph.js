// The steps of a run as a graph, with what has become of each.

import { html } from '../../preact.js';
import { StepGraph } from '../../ui/graph.js';
import { Section } from '../../ui/layout.js';

/** Left out where the run's pipeline is unknown. */
export function RunGraph({ run: { plan, finished_at: end } }) {
  if (plan === null) return null;
  // In a run that has ended, nothing is to come.
  const stateOf = (state) => (end !== null && state === 'pending' ? 'did_not_end' : state);
  const states = new Map(plan.map(({ step, state }) => [step, stateOf(state)]));
  return html`<${Section} title="Graph of steps">
    <${StepGraph} pipeline=${pipelineOf(plan)} states=${states} />
  <//>`;
}

/** The steps of a plan as a pipeline has them, without items of `for_each`. */
function pipelineOf(plan) {
  const steps = plan.filter(({ step }) => !step.endsWith(']'));
  const partsOf = (id) => steps.filter(({ group }) => group === id).map(asStep);
  return steps
    .filter(({ group }) => group === null)
    .map((each) => ({
      ...asStep(each),
      needs: each.needs,
      parallel: each.uses === null ? partsOf(each.step) : [],
    }));
}

const asStep = ({ step: id, uses }) => ({ id, uses });
