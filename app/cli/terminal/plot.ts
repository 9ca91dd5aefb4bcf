const EIGHTHS = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'] as const;

/** A line of one character a value, as high as the value is beside the greatest one. */
export function sparkline(values: readonly number[], most: number): string {
  return values
    .map(
      (value) => EIGHTHS[value <= 0 || most <= 0 ? 0 : Math.max(1, Math.round((value / most) * 8))],
    )
    .join('');
}

/** What {@link columnPlot} draws. */
export interface ColumnPlot {
  readonly values: readonly number[];
  /** Characters that the columns may take; where there are more values, a column shows the greatest of several. */
  readonly width: number;
  /** Lines. */
  readonly height: number;
  /** What stands under the first column of a value, where there is room; null for nothing. */
  readonly label: (index: number) => string | null;
}

/** Columns over an axis, with the scale at the left. Ends without a line break. */
export function columnPlot({ values, width, height, label }: ColumnPlot): string {
  const each = Math.max(1, Math.ceil(values.length / Math.max(1, width)));
  const columns = Array.from({ length: Math.ceil(values.length / each) }, (_, index) =>
    Math.max(0, ...values.slice(index * each, (index + 1) * each)),
  );
  const most = Math.max(0, ...columns);
  const scale = [short(most), short(most / 2)];
  const margin = Math.max(...scale.map((text) => text.length), 1);
  const lines = Array.from({ length: height }, (_, line) => {
    const bottom = height - 1 - line;
    const mark = line === 0 ? scale[0] : line === Math.floor(height / 2) ? scale[1] : '';
    const cells = columns.map((value) => {
      const filled = most === 0 ? 0 : (value / most) * height * 8;
      // Whatever is not nothing is seen.
      const least = value > 0 && bottom === 0 ? 1 : 0;
      return EIGHTHS[Math.min(8, Math.max(least, Math.round(filled - bottom * 8)))];
    });
    return `${(mark ?? '').padStart(margin)} ┤${cells.join('')}`.trimEnd();
  });
  const axis = `${'0'.padStart(margin)} └${'─'.repeat(columns.length)}`;
  return [...lines, axis, ' '.repeat(margin + 2) + labels(values.length, each, label)].join('\n');
}

function labels(count: number, each: number, label: ColumnPlot['label']): string {
  let text = '';
  for (let index = 0; index < count; index += 1) {
    const said = label(index);
    const column = Math.floor(index / each);
    if (said === null || (text !== '' && column < text.length + 1)) continue;
    if (column + said.length > Math.ceil(count / each)) break;
    text = text.padEnd(column) + said;
  }
  return text;
}

/** A count in four characters or so: `950`, `12k`, `1.5M`. */
function short(value: number): string {
  for (const [size, unit] of [
    [1e9, 'G'],
    [1e6, 'M'],
    [1e3, 'k'],
  ] as const) {
    if (value >= size) return `${trimmed(value / size)}${unit}`;
  }
  return trimmed(value);
}

const trimmed = (value: number): string =>
  String(value < 10 ? Math.round(value * 10) / 10 : Math.round(value));
