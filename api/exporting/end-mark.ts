import { csvLine } from './csv.ts';
import { eventColumns } from './event-rows.ts';
import type { ExportFormat } from './export-formats.ts';
import { runColumns } from './run-rows.ts';

/** What the last row of an export has in place of a row's first field. */
const NAME = 'end_of_export';

const markOf =
  (columns: readonly string[]) =>
  (format: ExportFormat, rows: number): string =>
    format === 'csv'
      ? csvLine(columns.map((_, index) => [NAME, rows][index]))
      : `${JSON.stringify({ [NAME]: { rows } })}\n`;

/** The last row of an export of runs that is whole. @param rows how many came before it, without a head */
export const runsEndMark = markOf(runColumns);

/** The same of events. */
export const eventsEndMark = markOf(eventColumns);

/**
 * How many rows an end mark counts.
 * @param line without its end
 * @returns null for a line that is no end mark
 */
export function rowsOfEndMark(format: ExportFormat, line: string): number | null {
  const pattern =
    format === 'csv' ? /^end_of_export,(\d+),+$/ : /^\{"end_of_export":\{"rows":(\d+)\}\}$/;
  const rows = pattern.exec(line)?.[1];
  return rows === undefined ? null : Number(rows);
}
