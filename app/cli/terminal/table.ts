/** A column of a {@link table}. */
export interface Column {
  readonly title: string;
  /** Numbers stand to the right. */
  readonly align?: 'left' | 'right';
  /** Cells of more characters are cut, and end in `…`; without it none is. */
  readonly most?: number;
  /** Colours a cell; is given it with its padding too, as colours have no width. Titles stay as they are. */
  readonly paint?: (padded: string, cell: string) => string;
}

/**
 * Rows under aligned columns, for a terminal: the titles, a rule, then a line each, without a last line break.
 * A row's missing cells are empty; a cell stays on its line.
 */
export function table(
  columns: readonly Column[],
  rows: readonly (readonly (string | number | null)[])[],
): string {
  const cells = rows.map((row) =>
    columns.map(({ most }, index) => cut(oneLine(String(row[index] ?? '')), most)),
  );
  const titles = columns.map(({ title }) => title);
  const widths = columns.map((_, index) =>
    Math.max(...[titles, ...cells].map((row) => lengthOf(row[index] ?? ''))),
  );
  const line = (row: readonly string[], painted = true): string =>
    columns
      .map(({ align, paint }, index) => {
        const cell = row[index] ?? '';
        const text = padded(cell, widths[index] ?? 0, align ?? 'left');
        return painted && paint !== undefined ? paint(text, cell) : text;
      })
      .join('  ')
      .trimEnd();
  const rule = widths.map((width) => '─'.repeat(width)).join('  ');
  return [line(titles, false), rule, ...cells.map((row) => line(row))].join('\n');
}

const oneLine = (text: string): string => text.replaceAll(/\s+/g, ' ');

/** In characters and not in UTF-16 units, so that what is outside of the first plane counts once. */
const lengthOf = (text: string): number => [...text].length;

function cut(text: string, most: number | undefined): string {
  const characters = [...text];
  if (most === undefined || characters.length <= most) return text;
  return `${characters.slice(0, most - 1).join('')}…`;
}

function padded(text: string, width: number, align: 'left' | 'right'): string {
  const space = ' '.repeat(width - lengthOf(text));
  return align === 'left' ? text + space : space + text;
}
