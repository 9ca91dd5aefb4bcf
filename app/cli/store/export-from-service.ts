import type { ExportFormat } from '../../../api/exporting/export-formats.ts';
import { rowsOfEndMark } from '../../../api/exporting/end-mark.ts';
import { counted } from '../../../domain/explain/words.ts';
import { toFile, toScreen, type RowWriter } from '../../analysis/row-writer.ts';
import { BrokenExport } from '../calling/faults.ts';
import type { Session } from '../calling/session.ts';
import { withScreen } from './archive-screen.ts';
import type { ExportOptions } from './export-command.ts';

/**
 * Rows of events or of runs from a service, by its address and a token.
 *
 * @throws CommandFault what the service refuses; BrokenExport where the rows end too soon: then no file is left
 */
export async function exportFromService(
  session: Session,
  options: ExportOptions,
  format: ExportFormat,
): Promise<void> {
  const { of, output } = options;
  const { out } = session.surroundings;
  const rows = await withScreen(session, async () => {
    const parts = session.client.rows((api) => {
      const query = { ...queryOf(options), format, end_mark: true };
      return of === 'runs' ? api.exports.runs(query) : api.exports.events(query);
    });
    // Before the service is asked: where there is a file of that name, nothing is.
    return writeRows(output === undefined ? toScreen(out) : await toFile(output), parts, format);
  });
  const where = output === undefined ? '' : ` to ${output}`;
  session.aside(`${counted(rows, of === 'events' ? 'event' : 'run')}${where}`);
}

function queryOf(options: ExportOptions) {
  const { of, since, until, task: task_id, cursor, kind, type, state, trigger } = options;
  const all = { since, until, task_id, cursor };
  return of === 'runs'
    ? { ...all, state, trigger }
    : { ...all, kind: kind?.join(','), type: type?.join(',') };
}

/** Writes all but the end mark. @returns how many rows that counts. @throws BrokenExport where there is none */
async function writeRows(
  writer: RowWriter,
  parts: AsyncIterable<string>,
  format: ExportFormat,
): Promise<number> {
  try {
    // The last line is held back: it may be the end mark.
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
      // On the screen it is a row as the others are.
      if (isWhole) await writer.write(held);
      throw new BrokenExport();
    }
    await writer.finish();
    return rows;
  } catch (error) {
    await writer.abandon();
    throw error;
  }
}
