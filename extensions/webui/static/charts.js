// Drawings: a run's steps over time, and how long runs took. Lengths are set by script: the page allows no inline style.

import { h, nothing } from './dom.js';
import { clockText, duration } from './times.js';

const tones = { succeeded: 'good', failed: 'bad', skipped: 'idle', canceled: 'idle' };

/**
 * Bars over time, one line each.
 * @param {{label: string, from: number, to: number, state: string, more?: Node, level?: string}[]} bars
 *   instants in milliseconds; `more` is shown when a line is opened
 */
export function gantt(title, bars) {
  if (bars.length === 0) return nothing('Nothing has begun yet.');
  const first = Math.min(...bars.map(({ from }) => from));
  const span = Math.max(1, Math.max(...bars.map(({ to }) => to)) - first);
  const at = (instant) => ((instant - first) / span) * 100;
  const rows = bars.map(({ label, from, to, state, more, level = '' }) => {
    const bar = h(`span.bar.${tones[state] ?? 'busy'}`);
    bar.style.left = `${Math.min(at(from), 99.4)}%`;
    bar.style.width = `${Math.max(at(to) - at(from), 0.6)}%`;
    const line = [
      h('span.label', { title: label }, label),
      h('span.track', { 'aria-hidden': 'true' }, bar),
      h('span.took', {}, duration(to - from)),
      h('span.hidden', {}, `, ${state}`),
    ];
    return more === undefined
      ? h('li', { class: level }, h('div.line', {}, line))
      : h(
          'li',
          { class: level },
          h('details', {}, h('summary.line', {}, line), h('div.more', {}, more)),
        );
  });
  const ticks = [0, 0.25, 0.5, 0.75, 1].map((part) => h('span', {}, duration(span * part)));
  return h(
    'div.gantt',
    {},
    h('ol', { 'aria-label': title }, rows),
    h('div.axis', { 'aria-hidden': 'true' }, ticks),
  );
}

/**
 * How long runs took, the oldest at the left.
 * @param {{took: number, state: string, id: string, at: string}[]} runs milliseconds
 */
export function runTimes(runs) {
  if (runs.length === 0) return nothing('No run has ended yet.');
  const sorted = runs.map(({ took }) => took).sort((a, b) => a - b);
  const most = Math.max(1, sorted.at(-1));
  const middle = sorted[Math.floor(sorted.length / 2)];
  const label = `Times of the last ${runs.length} runs: half took at most ${duration(middle)}, the longest ${duration(most)}`;
  const bars = runs.map(({ took, state, at, id }) => {
    const bar = h(`a.${tones[state] ?? 'busy'}`, {
      href: `#/runs/${id}`,
      tabindex: -1,
      title: `${clockText(at)}: ${state}, ${duration(took)}`,
    });
    bar.style.height = `${Math.max(2, (took / most) * 100)}%`;
    return bar;
  });
  const line = h('span.middle-line');
  line.style.bottom = `${(middle / most) * 100}%`;
  return h(
    'div.times',
    {},
    h(
      'div.scale',
      { 'aria-hidden': 'true' },
      h('span', {}, duration(most)),
      h('span', {}, duration(0)),
    ),
    // Each leads to its run: a picture has nothing in it that could be chosen.
    h('div.bars', { role: 'group', 'aria-label': label }, bars, line),
    h('p.hint', {}, `${label}. `, 'The line stands at the middle one.'),
  );
}
