// Drawings: a run's steps over time, and how long runs took.

import { h, s } from './dom.js';
import { duration } from './times.js';

const WIDTH = 900;
const LEFT = 170;
const ROW = 26;
const colour = { succeeded: 'good', failed: 'bad', skipped: 'idle', canceled: 'idle' };

/**
 * Bars over time, one line each.
 * @param {{label: string, from: number, to: number, state: string}[]} bars instants in milliseconds
 */
export function gantt(title, bars) {
  if (bars.length === 0) return h('p.soft', {}, 'Nothing has begun yet.');
  const first = Math.min(...bars.map(({ from }) => from));
  const span = Math.max(1, Math.max(...bars.map(({ to }) => to)) - first);
  const height = bars.length * ROW + 26;
  const x = (at) => LEFT + ((at - first) / span) * (WIDTH - LEFT - 90);
  const ticks = [0, 0.25, 0.5, 0.75, 1];
  return scrolled(
    title,
    s(
      'svg',
      { viewBox: `0 0 ${WIDTH} ${height}`, role: 'img', 'aria-label': title },
      ticks.map((part) => [
        s('line', {
          x1: x(first + span * part),
          x2: x(first + span * part),
          y1: 0,
          y2: height - 20,
        }),
        s(
          'text',
          { class: 'axis', x: x(first + span * part), y: height - 5, 'text-anchor': 'middle' },
          duration(span * part),
        ),
      ]),
      bars.map(({ label, from, to, state }, n) => {
        const wide = Math.max(3, x(to) - x(from));
        const took = duration(to - from);
        return s(
          'g',
          {},
          s('title', {}, `${label}: ${state}, ${took}`),
          s(
            'text',
            { x: 4, y: n * ROW + 17 },
            label.length > 24 ? `${label.slice(0, 23)}…` : label,
          ),
          s('rect', {
            class: `bar-${colour[state] ?? 'wait'}`,
            x: x(from),
            y: n * ROW + 4,
            width: wide,
            height: ROW - 8,
            rx: 3,
          }),
          s('text', { x: x(from) + wide + 5, y: n * ROW + 17 }, took),
        );
      }),
    ),
  );
}

/**
 * How long runs took, the oldest at the left.
 * @param {{took: number, state: string, id: string, at: string}[]} runs milliseconds
 */
export function runTimes(runs) {
  if (runs.length === 0) return h('p.soft', {}, 'No run has ended yet.');
  const height = 150;
  const most = Math.max(1, ...runs.map(({ took }) => took));
  const wide = Math.min(24, (WIDTH - 80) / runs.length);
  const label = `Times of the last ${runs.length} runs, the longest ${duration(most)}`;
  return scrolled(
    label,
    s(
      'svg',
      { viewBox: `0 0 ${WIDTH} ${height}`, role: 'img', 'aria-label': label },
      [0, 0.5, 1].map((part) => {
        const y = height - 10 - part * (height - 30);
        return [
          s('line', { x1: 70, x2: WIDTH, y1: y, y2: y }),
          s(
            'text',
            { class: 'axis', x: 64, y: y + 4, 'text-anchor': 'end' },
            duration(most * part),
          ),
        ];
      }),
      runs.map(({ took, state, at }, n) => {
        const tall = Math.max(2, (took / most) * (height - 30));
        return s(
          'rect',
          {
            class: `bar-${colour[state] ?? 'wait'}`,
            x: 74 + n * wide,
            y: height - 10 - tall,
            width: Math.max(2, wide - 3),
            height: tall,
          },
          s('title', {}, `${at}: ${state}, ${duration(took)}`),
        );
      }),
    ),
  );
}

const scrolled = (label, drawing) =>
  h('div.wide', { tabindex: 0, role: 'region', 'aria-label': `${label}, drawn` }, drawing);
