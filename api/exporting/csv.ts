import { writeJson } from '../../domain/exact-numbers.ts';
/** What a cell of a table holds; objects and arrays stand in it as JSON. */
export type Cell = string | number | boolean | null | object;

/** These begin a formula in programs for tables (some take the full-width forms too), or are skipped on the way to one. */
const FORMULA = /^[=+\-@\uff1d\uff0b\uff0d\uff20\t\r\n]/;

/**
 * A line of CSV as RFC 4180 has it, its end (CR LF) included: a cell with a comma, a quote or a line end is quoted, and
 * its quotes are doubled. Nothing is an empty cell.
 *
 * A text that a program for tables would take for a formula gets a `'` before it: titles, errors and reasons are what
 * others have written, and opening a table must not run it. Numbers stay numbers.
 */
export function csvLine(cells: readonly (Cell | undefined)[]): string {
  return `${cells.map(cellOf).join(',')}\r\n`;
}

function cellOf(value: Cell | undefined): string {
  if (value === null || value === undefined) return '';
  if (typeof value === 'number' || typeof value === 'boolean') return String(value);
  const text = typeof value === 'string' ? value : writeJson(value);
  const safe = FORMULA.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}
