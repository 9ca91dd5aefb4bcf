import { rowsOfEndMark } from '../../../api/exporting/end-mark.ts';
import type { ExportFormat } from '../../../api/exporting/export-formats.ts';
import { toFile, toScreen, type RowWriter } from '../../analysis/row-writer.ts';
import { IncompleteExportError } from '../calling/command-errors.ts';
import type { Session } from '../calling/session.ts';
import { withProgress } from './archive-progress.ts';
import type { ExportOptions } from './export-options.ts';

/**
 * Exports rows of events or runs from a service. Returns their number.
 * @throws CommandError if the service rejects it; IncompleteExportError if rows are missing, which leaves no file
 */
export async function exportFromService(
  session: Session,
  options: ExportOptions,
  format: ExportFormat,
): Promise<number> {
  const { of, output } = options;
  return withProgress(session, async () => {
    const parts = session.client.rows((api) => {
      const query = { ...queryOf(options), format, end_mark: true };
      return of === 'runs' ? api.exports.runs(query) : api.exports.events(query);
    });
    // Opened before the service is called, so that an existing file is rejected first.
    const { out } = session.environment;
    return writeRows(output === undefined ? toScreen(out) : await toFile(output), parts, format);
  });
}

function queryOf(options: ExportOptions) {
  const { of, since, until, task: task_id, cursor, kind, type, state, trigger } = options;
  const all = { since, until, task_id, cursor };
  return of === 'runs'
    ? { ...all, state, trigger }
    : { ...all, kind: kind?.join(','), type: type?.join(',') };
}

/** Writes all rows but the end mark. Returns their number, from the end mark. @throws IncompleteExportError without one */
async function writeRows(
  writer: RowWriter,
  parts: AsyncIterable<string>,
  format: ExportFormat,
): Promise<number> {
  try {
    // The last line is held back, because it can be the end mark.
    let held = '';
    for await (const part of parts) {
      const text = held + part;
      const from = text.lastIndexOf('\n', text.length - 2) + 1;
      if (from > 0) await writer.write(text.slice(0, from));
      held = text.slice(from);
    }
    const isWhole = held.endsWith('\n');
    const rows = isWhole ? rowsOfEndMark(format, held.trimEnd()) : null;
    if (rows === null) {
      if (isWhole) await writer.write(held);
      throw new IncompleteExportError();
    }
    await writer.finish();
    return rows;
  } catch (error) {
    await writer.abandon();
    throw error;
  }
}
