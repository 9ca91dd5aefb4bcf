// The steps of a pipeline as a graph.

import { html } from '../preact.js';
import { counted } from '../times.js';
import { layoutOf, stepsOf } from '../step-layout.js';
import { Nothing, State, toneOf } from './elements.js';

/** The most steps that are drawn. */
const MAX_STEPS = 300;

/** `pending` is in the colour of a wait elsewhere, but a step that has not started needs no attention. */
const stepTone = (state) => toneOf(state === 'pending' ? undefined : state);

/**
 * Steps from left to right, with lines between them. A group is a box around its steps.
 * @param {object[]} pipeline of a task
 * @param {Map<string, string>} states by the ids of steps; left out: they have none
 * @param {(step: string) => object} [linkTo] attributes of the link to a step; left out: they are no links
 * @param {string} [chosen] the step whose link is the present one
 */
export function StepGraph({ pipeline, states, linkTo, chosen }) {
  const many = pipeline.reduce((sum, { parallel = [] }) => sum + 1 + parallel.length, 0);
  if (many === 0) return html`<${Nothing} text="No steps." />`;
  if (many > MAX_STEPS) {
    return html`<${Nothing} text="${counted(many, 'step')}  are too many to draw." />`;
  }
  const link = (id) => linkTo && { ...linkTo(id), 'aria-current': id === chosen ? 'true' : null };
  const { width, height, boxes, lines } = layoutOf(stepsOf(pipeline));
  return html`<div class="wide" tabindex="0" role="region" aria-label="Graph of steps">
    <div class="graph" style=${{ width: `${width}px`, height: `${height}px` }}>
      <svg aria-hidden="true" width=${width} height=${height}>
        ${lines.map(({ points }) => html`<path d=${pathOf(points)} />`)}
      </svg>
      <ol>${boxes.map((box) => html`<${Box} key=${box.key} ...${box} states=${states} link=${link} />`)}</ol>
    </div>
  </div>`;
}

function Box({ step, x, y, width, height, states, link }) {
  const { id, after, steps } = step;
  const style = { left: `${x}px`, top: `${y}px`, width: `${width}px`, height: `${height}px` };
  return html`<li class="box ${stepTone(states?.get(id))}" style=${style}>
    <${steps.length > 0 ? Group : Step} ...${step} state=${states?.get(id)} link=${link(id)} />
    ${after.length > 0 && html`<span class="hidden">after ${after.join(', ')}</span>`}
    ${
      steps.length > 0 &&
      html`<ul>
        ${steps.map(
          (each) => html`<li class="box ${stepTone(states?.get(each.id))}">
            <${Step} ...${each} state=${states?.get(each.id)} link=${link(each.id)} />
          </li>`,
        )}
      </ul>`
    }
  </li>`;
}

const Name = ({ id, link }) =>
  link === undefined
    ? html`<span class="name" title=${id}>${id}</span>`
    : html`<a class="name" title=${id} ...${link}>${id}</a>`;

const Group = ({ id, state, link }) =>
  html`<div class="of-step">
    <${Name} id=${id} link=${link} />
    ${state === undefined ? html`<span class="soft">parallel</span>` : html`<${State} of=${state} tone=${stepTone(state)} />`}
  </div>`;

const Step = ({ id, uses, state, link }) =>
  html`<div class="of-step"><${Name} id=${id} link=${link} /></div>
    <div class="of-step"><span class="soft" title=${uses}>${uses}</span>
      ${state !== undefined && html`<${State} of=${state} tone=${stepTone(state)} />`}
    </div>`;

/** A curve from each even point to the next, straight lines between the curves, and the head of an arrow. */
function pathOf([first, ...others]) {
  let { x, y } = first;
  const parts = others.map((to, n) => {
    const middle = (x + to.x) / 2;
    const part =
      n % 2 === 0 ? `C${middle} ${y} ${middle} ${to.y} ${to.x} ${to.y}` : `L${to.x} ${to.y}`;
    ({ x, y } = to);
    return part;
  });
  return `M${first.x} ${first.y}${parts.join('')}m-7 -4l7 4l-7 4`;
}
