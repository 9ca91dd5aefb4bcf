import type { Socket } from 'node:net';
import { setImmediate } from 'node:timers/promises';
import type { Response } from 'express';
import type { Clock } from '../../domain/clock.ts';
import type { Telemetry } from '../../observability/telemetry.ts';
import type { Streaming } from '../endpoint.ts';
import { badRequest } from '../errors.ts';
import type { ExportedPart, ExportFormat } from './export-formats.ts';

/** How long a client may read nothing before it is disconnected. Milliseconds. */
const STALL_TIMEOUT = 120_000;

/** How often the caller's access is checked again. Milliseconds. */
const ACCESS_CHECK = 1000;

const mediaTypes: Readonly<Record<ExportFormat, string>> = {
  ndjson: 'application/x-ndjson; charset=utf-8',
  csv: 'text/csv; charset=utf-8; header=present',
};

/** An export that is sent. */
export interface Rows {
  /** The name of the file that a browser saves, without its extension. */
  readonly name: string;
  readonly format: ExportFormat;
  readonly parts: AsyncGenerator<ExportedPart>;
  /** The last row, which proves that the export is complete; null: not wanted. @param rows before it */
  readonly endMark: ((rows: number) => string) | null;
  /** Stops reading once the client has left, or the service stops. */
  readonly stop: AbortController;
}

interface Services {
  readonly clock: Clock;
  readonly telemetry: Telemetry;
  readonly stopping: AbortSignal;
}

/**
 * Sends rows as they are read, no faster than the client takes them. An interrupted answer lacks its last chunk (RFC
 * 9112 section 8), so that clients notice.
 * @throws HttpError 400 without an end mark over HTTP/1.0, which has no chunks; errors of `parts` before the first row.
 *   Later errors close the connection
 */
export async function sendRows(
  { request, response, stillAdmitted }: Streaming,
  rows: Rows,
  { clock, telemetry, stopping }: Services,
): Promise<void> {
  const { parts, stop, format, name } = rows;
  if (request.httpVersion === '1.0' && rows.endMark === null) {
    const issue =
      'is required over HTTP/1.0, because only an end mark shows there that a response is complete';
    throw badRequest([{ field: 'end_mark', issue }]);
  }
  const { signal } = stop;
  const abort = (): void => stop.abort();
  response.once('close', abort);
  stopping.addEventListener('abort', abort, { once: true });
  try {
    // An error before the first row is answered as usual.
    const first = await parts.next();
    response.statusCode = 200;
    response.setHeader('Content-Type', mediaTypes[format]);
    response.setHeader('Content-Disposition', `attachment; filename="${name}.${format}"`);
    // Keeps proxies from buffering.
    response.setHeader('X-Accel-Buffering', 'no');
    if (request.method === 'HEAD') {
      response.end();
      return;
    }
    // Finding the next row may take long.
    request.socket.setTimeout(0);
    let [sent, checked] = [0, clock.steady()];
    for (let part = first; part.done !== true; part = await parts.next()) {
      const { text, count } = part.value;
      sent += count;
      if (text !== '' && !response.write(text)) await drained(response, signal);
      else await setImmediate();
      if (clock.steady() - checked >= ACCESS_CHECK) {
        checked = clock.steady();
        if (!(await stillAdmitted())) throw new Error('the caller lost its access');
      }
      if (signal.aborted) break;
    }
    if (signal.aborted) response.destroy();
    else response.end(rows.endMark?.(sent));
  } catch (error) {
    if (!response.headersSent) throw error;
    if (!signal.aborted) telemetry.failures.failed('export interrupted', error, { export: name });
    response.destroy();
  } finally {
    response.off('close', abort);
    stopping.removeEventListener('abort', abort);
    stop.abort();
    await parts.return(undefined);
  }
}

/** Resolves when the client has read, or the signal aborts. A client that reads nothing is disconnected. */
async function drained(response: Response, signal: AbortSignal): Promise<void> {
  const socket: Socket | null = response.socket;
  socket?.setTimeout(STALL_TIMEOUT);
  await new Promise<void>((resolve) => {
    const done = (): void => {
      response.off('drain', done);
      signal.removeEventListener('abort', done);
      resolve();
    };
    response.once('drain', done);
    signal.addEventListener('abort', done, { once: true });
    if (signal.aborted) done();
  });
  socket?.setTimeout(0);
}
