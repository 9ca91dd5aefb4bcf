// Drawings: how long runs took.

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
