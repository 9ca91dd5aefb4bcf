// The steps of a run over time. Each row leads to its step.

import { html } from '../../preact.js';
import { useStore } from '../../store.js';
import { duration } from '../../times.js';
import { spaced } from '../../ui/elements.js';
import { runBars, stepRows } from './run-rows.js';

const tones = {
  succeeded: 'good',
  failed: 'bad',
  waiting: 'wait',
  queued: 'wait',
  retrying: 'wait',
  running: 'busy',
};
const toneOf = (state) => tones[state] ?? 'idle';

/** States that need no word in their row. */
const quiet = new Set(['succeeded']);

/** @param {{linkTo: (step: string) => object, chosen: string}} selection of a step; `slow`: names of slow steps */
export function Waterfall({ run, selection, slow }) {
  // Open bars grow with the time.
  const now = useStore(() => (run.finished_at === null ? Date.now() : Date.parse(run.finished_at)));
  const rows = stepRows(run, now);
  const whole = runBars(run, now);
  const all = [...whole, ...rows.flatMap(({ bars }) => bars)];
  const first = Math.min(...all.map(({ from }) => from));
  const span = Math.max(1, Math.max(...all.map(({ to }) => to)) - first);
  const took = whole.length === 0 ? null : whole.at(-1).to - whole[0].from;
  const scale = { first, span };
  const isQuiet = [run, ...rows].every(({ state }) => quiet.has(state)) && slow.size === 0;
  return html`<div class="waterfall ${isQuiet ? 'wordless' : ''}">
    <ol aria-label="Attempts and steps over time">
      <${Row} step="" label="Run" level=${0} state=${run.state} bars=${whole} took=${took}
        scale=${scale} selection=${selection} />
      ${rows.map(
        (row) => html`<${Row} key=${row.step} ...${row} label=${row.step} level=${row.level + 1}
          scale=${scale} selection=${selection} isSlow=${slow.has(row.step)} />`,
      )}
    </ol>
    <div class="line" aria-hidden="true">
      <span></span>
      <span class="axis">${[0, 0.5, 1].map((part) => html`<span>${duration(span * part)}</span>`)}</span>
    </div>
  </div>`;
}

function Row({ step, label, level, state, bars, took, isSlow, scale, selection }) {
  const { first, span } = scale;
  const percent = (length) => (length / span) * 100;
  const styleOf = ({ from, to }) => ({
    left: `${Math.min(percent(from - first), 99.4)}%`,
    width: `${Math.max(percent(to - from), 0.6)}%`,
  });
  return html`<li class=${`level-${Math.min(level, 3)}`}>
    <a class="line" ...${selection.linkTo(step)} aria-current=${selection.chosen === step ? 'true' : null}>
      <span class="label" title=${label}>${label}</span>
      <span class="track ${state}" aria-hidden="true">
        ${bars.map((bar) => html`<span class="bar ${toneOf(bar.state)}" title=${bar.text} style=${styleOf(bar)}></span>`)}
      </span>
      <span class="took">${took === null ? '' : duration(took)}</span>
      <span class="word ${toneOf(state)} ${quiet.has(state) ? 'hidden' : ''}">${spaced(state)}</span>
      ${isSlow && html`<span class="word wait">slow</span>`}
    </a>
  </li>`;
}
