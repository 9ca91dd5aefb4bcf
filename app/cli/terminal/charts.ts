import type { OutputStream } from '../calling/cli-environment.ts';

const EIGHTHS = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'] as const;

/** Characters of a progress bar. */
const BAR_WIDTH = 24;

/** `[████████░░░░]  46 %` @param progress from 0 to 1 */
export function progressBar(progress: number): string {
  const full = Math.round(Math.min(1, progress) * BAR_WIDTH);
  const bar = `[${'█'.repeat(full)}${'░'.repeat(BAR_WIDTH - full)}]`;
  return `${bar} ${String(Math.floor(progress * 100)).padStart(3)} %`;
}

/** Clears the line of a terminal. */
export const CLEAR_LINE = '\r\u001b[2K';

/** Shows progress: on a terminal as a line that is redrawn, otherwise as a line for each tenth. */
export class ProgressLine {
  readonly #screen: OutputStream;
  #tenth = -1;

  constructor(screen: OutputStream) {
    this.#screen = screen;
  }

  get isEmpty(): boolean {
    return this.#tenth === -1;
  }

  /** @param progress from 0 to 1 */
  show(text: string, progress: number): void {
    const tenth = Math.floor(progress * 10);
    if (this.#screen.isTerminal) this.#screen.write(CLEAR_LINE + text);
    else if (tenth !== this.#tenth) this.#screen.write(`${text}\n`);
    this.#tenth = tenth;
  }

  end(): void {
    if (this.#screen.isTerminal) this.#screen.write('\n');
  }
}

/** A chart of one line, a character for each value. */
export function sparkline(values: readonly number[], max: number): string {
  return values
    .map(
      (value) => EIGHTHS[value <= 0 || max <= 0 ? 0 : Math.max(1, Math.round((value / max) * 8))],
    )
    .join('');
}

interface ColumnChart {
  readonly values: readonly number[];
  /** Most columns; with more values, a column shows the greatest of several. */
  readonly width: number;
  /** Lines. */
  readonly height: number;
  /** The label under a value's column, if there is room; null for none. */
  readonly label: (index: number) => string | null;
}

/** A chart of columns over an axis, with the scale on the left, without a final line break. */
export function columnChart({ values, width, height, label }: ColumnChart): string {
  const each = Math.max(1, Math.ceil(values.length / Math.max(1, width)));
  const columns = Array.from({ length: Math.ceil(values.length / each) }, (_, index) =>
    Math.max(0, ...values.slice(index * each, (index + 1) * each)),
  );
  const max = Math.max(0, ...columns);
  const scale = [short(max), short(max / 2)];
  const margin = Math.max(...scale.map((text) => text.length), 1);
  const lines = Array.from({ length: height }, (_, line) => {
    const bottom = height - 1 - line;
    const mark = line === 0 ? scale[0] : line === Math.floor(height / 2) ? scale[1] : '';
    const cells = columns.map((value) => {
      const filled = max === 0 ? 0 : (value / max) * height * 8;
      const atLeast = value > 0 && bottom === 0 ? 1 : 0;
      return EIGHTHS[Math.min(8, Math.max(atLeast, Math.round(filled - bottom * 8)))];
    });
    return `${(mark ?? '').padStart(margin)} ┤${cells.join('')}`.trimEnd();
  });
  const axis = `${'0'.padStart(margin)} └${'─'.repeat(columns.length)}`;
  return [...lines, axis, ' '.repeat(margin + 2) + labels(values.length, each, label)].join('\n');
}

function labels(count: number, each: number, label: ColumnChart['label']): string {
  let line = '';
  for (let index = 0; index < count; index += 1) {
    const text = label(index);
    const column = Math.floor(index / each);
    if (text === null || (line !== '' && column < line.length + 1)) continue;
    if (column + text.length > Math.ceil(count / each)) break;
    line = line.padEnd(column) + text;
  }
  return line;
}

/** A count in about four characters: `950`, `12k`, `1.5M`. */
function short(value: number): string {
  const [size, unit] = (
    [
      [1e9, 'G'],
      [1e6, 'M'],
      [1e3, 'k'],
    ] as const
  ).find(([each]) => value >= each) ?? [1, ''];
  const scaled = value / size;
  return `${scaled < 10 ? Math.round(scaled * 10) / 10 : Math.round(scaled)}${unit}`;
}
