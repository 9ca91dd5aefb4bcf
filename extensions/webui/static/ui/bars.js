// Charts over time, by hour or day: bars and lines, each with a table of the same numbers.

import { html } from '../preact.js';
import { Nothing, Table } from './elements.js';
import { Unfolding } from './layout.js';

/** The height of the largest value, out of 100. */
const TOP = 96;

/**
 * A chart with its scale and its times, and a table of the same numbers.
 * @param {string} title what it shows, also for screen readers
 * @param {{key: string, label: string}[]} items from left to right
 * @param {string} most the largest value, formatted
 * @param {object[]} columns of the table, as {@link Table} takes them
 */
function Chart({ title, items, most, columns, children }) {
  const ticks = ticksOf(items);
  return html`<figure class="chart">
    <div class="plot">
      <span class="most soft" aria-hidden="true">${most}</span>
      <svg role="img" aria-label=${title} viewBox="0 0 ${items.length} 100" preserveAspectRatio="none">
        ${children}
      </svg>
    </div>
    <div class="axis" aria-hidden="true">${ticks.map((each) => html`<span>${each}</span>`)}</div>
    <${Unfolding} kind="numbers" summary="Numbers">
      ${() => html`<${Table} caption=${title} columns=${columns} items=${items} rowKey="key" />`}
    <//>
  </figure>`;
}

/** At most seven labels, the first and the last among them. */
function ticksOf(items) {
  const many = Math.min(7, items.length);
  if (many < 2) return items.map(({ label }) => label);
  const at = (n) => items[Math.round((n * (items.length - 1)) / (many - 1))].label;
  return [...new Set(Array.from({ length: many }, (_, n) => at(n)))];
}

/**
 * Bars of counts. A part of each may be bad, such as failed runs.
 * @param {{key: string, label: string, about: string, all: number, bad: number, before?: number}[]} items `before` is
 *   drawn as a line over the bars; `about` is shown on hover
 */
export function Bars({ title, items, columns, format = String }) {
  if (items.length === 0) return html`<${Nothing} text="Nothing to show." />`;
  const most = Math.max(1, ...items.flatMap(({ all, before = 0 }) => [all, before]));
  const height = (value) => (value / most) * TOP;
  const line = items
    .map(({ before }, n) => before !== undefined && `${n} ${100 - height(before)}H${n + 1}`)
    .filter(Boolean);
  const bars = items.map(({ key, about, all, bad }, n) => {
    const [whole, part] = [height(all), height(bad)];
    return html`<g key=${key}><title>${about}</title>
      <rect class="back" x=${n} y="0" width="1" height="100" />
      <rect class="all" x=${n + 0.1} y=${100 - whole} width="0.8" height=${whole - part} />
      <rect class="bad" x=${n + 0.1} y=${100 - part} width="0.8" height=${part} />
    </g>`;
  });
  return html`<${Chart} title=${title} items=${items} columns=${columns} most=${format(most)}>
    ${bars}
    ${line.length > 0 && html`<path class="before" d="M${line.join('L')}" />`}
  <//>`;
}

/**
 * Lines of values, with a gap where a value is null.
 * @param {{key: string, label: string}[]} items
 * @param {{kind: string, valueOf: (item: object) => number | null}[]} lines
 */
export function Lines({ title, items, lines, columns, format = String }) {
  const values = lines.flatMap(({ valueOf }) => items.map(valueOf)).filter((each) => each !== null);
  if (values.length === 0) return html`<${Nothing} text="Nothing ran in this period." />`;
  const most = Math.max(...values) || 1;
  const height = (value) => 100 - (value / most) * TOP;
  const paths = lines.map(({ kind, valueOf }) => {
    let isOpen = false;
    const parts = items.map((item, n) => {
      const value = valueOf(item);
      const part = value === null ? '' : `${isOpen ? 'L' : 'M'}${n} ${height(value)}H${n + 1}`;
      isOpen = value !== null;
      return part;
    });
    return html`<path class="line ${kind}" d=${parts.join('')} />`;
  });
  return html`<${Chart} title=${title} items=${items} columns=${columns} most=${format(most)}>${paths}<//>`;
}

/** Counts as a small chart in a row of a table. The row shows the sum in words. */
export function Spark({ counts }) {
  const most = Math.max(1, ...counts);
  return html`<svg class="spark" aria-hidden="true" viewBox="0 0 ${counts.length} 100" preserveAspectRatio="none">
    ${counts.map(
      (each, n) =>
        each > 0 &&
        html`<rect x=${n} y=${100 - (each / most) * 100} width="1" height=${(each / most) * 100} />`,
    )}
  </svg>`;
}
