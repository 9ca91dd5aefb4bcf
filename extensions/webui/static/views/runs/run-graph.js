// The steps of a run as a graph, with the state of each.

import { html } from '../../preact.js';
import { Nothing } from '../../ui/elements.js';
import { StepGraph } from '../../ui/graph.js';

/** @param {string} chosen the step that is shown beside it; `linkTo`: attributes of the link to a step */
export function RunGraph({ run: { plan, finished_at: end }, chosen, linkTo }) {
  if (plan === null) {
    return html`<${Nothing} text="Its pipeline is unknown, as its task cannot be read." />`;
  }
  // In a run that has ended, no step is pending.
  const stateOf = (state) => (end !== null && state === 'pending' ? 'did_not_end' : state);
  const states = new Map(plan.map(({ step, state }) => [step, stateOf(state)]));
  return html`<${StepGraph} pipeline=${pipelineOf(plan)} states=${states} chosen=${chosen} linkTo=${linkTo} />`;
}

/** The steps of a plan in the shape of a pipeline, without the items of `for_each`. */
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
