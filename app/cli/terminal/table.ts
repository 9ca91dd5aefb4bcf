/** A column of a {@link table}. */
export interface Column {
  readonly title: string;
  /** Default: left. Numbers are aligned right. */
  readonly align?: 'left' | 'right';
  /** Longer cells are cut and end in `…`. */
  readonly maxWidth?: number;
  /** Colours a cell. Receives it padded, because colours have no width. */
  readonly paint?: (padded: string, cell: string) => string;
}

/** Null is an empty cell. */
export type Cell = string | number | null;

/** Formats rows under aligned titles, a line each, without a final line break. */
export function table(columns: readonly Column[], rows: readonly (readonly Cell[])[]): string {
  const cells = rows.map((row) =>
    columns.map(({ maxWidth }, index) => cut(oneLine(String(row[index] ?? '')), maxWidth)),
  );
  const titles = columns.map(({ title }) => title);
  const widths = columns.map((_, index) =>
    Math.max(...[titles, ...cells].map((row) => lengthOf(row[index] ?? ''))),
  );
  const line = (row: readonly string[], isTitle = false): string =>
    columns
      .map(({ align, paint }, index) => {
        const cell = row[index] ?? '';
        const space = ' '.repeat((widths[index] ?? 0) - lengthOf(cell));
        const padded = align === 'right' ? space + cell : cell + space;
        return isTitle || paint === undefined ? padded : paint(padded, cell);
      })
      .join('  ')
      .trimEnd();
  const rule = widths.map((width) => '─'.repeat(width)).join('  ');
  return [line(titles, true), rule, ...cells.map((row) => line(row))].join('\n');
}

const oneLine = (text: string): string => text.replaceAll(/\s+/g, ' ');

/** In code points, so that an emoji counts once. */
const lengthOf = (text: string): number => [...text].length;

function cut(text: string, maxWidth: number | undefined): string {
  if (maxWidth === undefined || lengthOf(text) <= maxWidth) return text;
  return `${[...text].slice(0, maxWidth - 1).join('')}…`;
}
