// Drawings: a run's steps over time, and how long runs took.

import { html } from '../preact.js';
import { counted, dateText, duration } from '../times.js';
import { Nothing } from './elements.js';

const tones = {
  succeeded: 'good',
  failed: 'bad',
  waiting: 'wait',
  skipped: 'idle',
  canceled: 'idle',
};
const toneOf = (state) => tones[state] ?? 'busy';

/**
 * Bars over time, one line each.
 * @param {{label: string, from: number, to: number, state: string, level: string, more?: unknown}[]} bars
 *   instants in milliseconds; `more` is shown when a line is opened
 */
export function Gantt({ title, bars }) {
  if (bars.length === 0) return html`<${Nothing} text="Nothing has started yet." />`;
  const first = Math.min(...bars.map(({ from }) => from));
  const span = Math.max(1, Math.max(...bars.map(({ to }) => to)) - first);
  const at = (instant) => ((instant - first) / span) * 100;
  const rows = bars.map(({ label, from, to, state, more, level }) => {
    const style = {
      left: `${Math.min(at(from), 99.4)}%`,
      width: `${Math.max(at(to) - at(from), 0.6)}%`,
    };
    const line = html`<span class="label" title=${label}>${label}</span>
      <span class="track" aria-hidden="true"><span class="bar ${toneOf(state)}" style=${style}></span></span>
      <span class="took">${duration(to - from)}</span>
      <span class="hidden">, ${state}</span>`;
    return html`<li key="${level} ${label} ${from}" class=${level}>
      ${
        more === undefined
          ? html`<div class="line">${line}</div>`
          : html`<details><summary class="line">${line}</summary><div class="more">${more}</div></details>`
      }
    </li>`;
  });
  const ticks = [0, 0.25, 0.5, 0.75, 1].map((part) => html`<span>${duration(span * part)}</span>`);
  return html`<div class="gantt">
    <ol aria-label=${title}>${rows}</ol>
    <div class="axis" aria-hidden="true">${ticks}</div>
  </div>`;
}

/**
 * How long runs took, the oldest at the left. Each bar leads to its run.
 * @param {{took: number, state: string, id: string, at: string}[]} runs `took` in milliseconds
 */
export function RunTimes({ runs }) {
  if (runs.length === 0) return html`<${Nothing} text="No run has ended yet." />`;
  const sorted = runs.map(({ took }) => took).sort((a, b) => a - b);
  const longest = Math.max(1, sorted.at(-1));
  const median = sorted[Math.floor(sorted.length / 2)];
  const label = `${counted(runs.length, 'run')}: median ${duration(median)}, longest ${duration(longest)}`;
  const bars = runs.map(({ took, state, at, id }) => {
    const height = `${Math.max(2, (took / longest) * 100)}%`;
    const title = `${dateText(at)}: ${state}, ${duration(took)}`;
    return html`<a key=${id} class=${toneOf(state)} href="#/runs/${id}" tabindex="-1" title=${title}
      style=${{ height }}></a>`;
  });
  return html`<div class="times">
    <div class="scale" aria-hidden="true"><span>${duration(longest)}</span><span>${duration(0)}</span></div>
    <div class="bars" role="group" aria-label=${label}>
      ${bars}<span class="median" style=${{ bottom: `${(median / longest) * 100}%` }}></span>
    </div>
    <p class="hint">${label}. The dashed line is the median.</p>
  </div>`;
}
