import { writeJson } from '../../domain/exact-numbers.ts';

/** The value of a cell; objects and arrays are written as JSON. */
export type Cell = string | number | boolean | null | object;

/** Characters that begin a formula in spreadsheets (some accept full-width forms), or are skipped before one. */
const FORMULA = /^[=+\-@\uff1d\uff0b\uff0d\uff20\t\r\n]/;

/**
 * A line of CSV (RFC 4180), with its CR LF. Strings that a spreadsheet would take for a formula get a `'` in front:
 * titles, errors and reasons come from other people, and opening the table must not execute them.
 */
export function csvLine(cells: readonly (Cell | undefined)[]): string {
  return `${cells.map(cellOf).join(',')}\r\n`;
}

function cellOf(value: Cell | undefined): string {
  if (value === null || value === undefined) return '';
  if (typeof value === 'number' || typeof value === 'boolean') return String(value);
  const string = typeof value === 'string' ? value : writeJson(value);
  const safe = FORMULA.test(string) ? `'${string}` : string;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}
