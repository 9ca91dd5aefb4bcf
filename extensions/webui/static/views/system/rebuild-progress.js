// How far the rebuild of a projection is, and how its result differs.

import { html } from '../../preact.js';
import { count, duration } from '../../times.js';
import { State } from '../../ui/elements.js';

export function RebuildProgress({ name, rebuild }) {
  const { progress, seconds_left: seconds, state, detail, comparison, version } = rebuild;
  const { handled, events_per_second: rate } = rebuild;
  const isRunning = state !== 'ready' && state !== 'failed';
  const text = [
    `${Math.floor(progress * 100)} %`,
    `${count(handled)} events`,
    rate > 0 && `${count(Math.round(rate))} per second`,
    seconds !== null && `${duration(seconds * 1000)} left`,
  ];
  return html`<div class="rebuild">
    <div class="row middle"><${State} of=${state} /><span class="soft">version ${version}</span></div>
    ${
      isRunning &&
      html`<progress value=${progress} max="1" aria-label="Rebuild of ${name}"></progress>
      <p class="hint">${text.filter(Boolean).join(', ')}</p>`
    }
    ${detail && html`<p class="hint">${detail}</p>`}
    ${comparison !== null && html`<${Comparison} ...${comparison} />`}
  </div>`;
}

const Comparison = (comparison) => html`<p class="hint">${comparisonText(comparison)}</p>
  ${
    comparison.first.length > 0 &&
    html`<details>
    <summary>First differences</summary>
    <ul class="list">
      ${comparison.first.map(
        ({ key, difference, fields }) => html`<li key=${key}>
          <code>${key}</code> <${State} of=${difference} />
          ${fields.length > 0 && ` ${fields.join(', ')}`}
        </li>`,
      )}
    </ul>
  </details>`
  }`;

export function comparisonText(comparison) {
  const {
    documents_before: before,
    documents_after: after,
    compared,
    different,
    complete,
  } = comparison;
  const which = complete ? 'all' : `the first ${count(compared)}`;
  const result = different === 0 ? 'none differs' : `${count(different)} differ`;
  return `${count(before)} documents now, ${count(after)} then. Of ${which}, ${result}.`;
}
