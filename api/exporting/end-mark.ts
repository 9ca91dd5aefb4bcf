import { csvLine } from './csv.ts';
import { eventColumns } from './event-rows.ts';
import type { ExportFormat } from './export-formats.ts';
import { runColumns } from './run-rows.ts';

/** The first field of the last row of an export. */
const NAME = 'end_of_export';

const markOf =
  (columns: readonly string[]) =>
  (format: ExportFormat, rows: number): string =>
    format === 'csv'
      ? csvLine(columns.map((_, index) => [NAME, rows][index]))
      : `${JSON.stringify({ [NAME]: { rows } })}\n`;

/** The last row of a complete export of runs. @param rows before it, without the header */
export const runsEndMark = markOf(runColumns);

/** The last row of a complete export of events. */
export const eventsEndMark = markOf(eventColumns);

/** The number of rows in an end mark; null for any other line. @param line without its line end */
export function rowsOfEndMark(format: ExportFormat, line: string): number | null {
  const pattern =
    format === 'csv' ? /^end_of_export,(\d+),+$/ : /^\{"end_of_export":\{"rows":(\d+)\}\}$/;
  const rows = pattern.exec(line)?.[1];
  return rows === undefined ? null : Number(rows);
}
