import type { Socket } from 'node:net';
import { setImmediate } from 'node:timers/promises';
import type { Response } from 'express';
import type { Clock } from '../../domain/clock.ts';
import type { Telemetry } from '../../observability/telemetry.ts';
import type { Streaming } from '../endpoint.ts';
import { badRequest } from '../errors.ts';
import type { ExportedPart, ExportFormat } from './export-formats.ts';

/** How long a client may take nothing before it is cut off. Milliseconds. */
const STALLED = 120_000;

/** How often it is looked whether the caller would still be let in. Milliseconds. */
const LOOK = 1000;

const mediaTypes: Readonly<Record<ExportFormat, string>> = {
  ndjson: 'application/x-ndjson; charset=utf-8',
  csv: 'text/csv; charset=utf-8; header=present',
};

/** What is sent, and how. */
export interface Rows {
  /** Of the file that a browser makes of it, without its ending. */
  readonly name: string;
  readonly format: ExportFormat;
  readonly parts: AsyncGenerator<ExportedPart>;
  /** The last row, where the client wants one that says that all rows are there. @param rows how many there were */
  readonly endMark: ((rows: number) => string) | null;
  /** Ends the reading once the client has left, or the service stops. */
  readonly ends: AbortController;
}

interface Around {
  readonly clock: Clock;
  readonly telemetry: Telemetry;
  readonly stopping: AbortSignal;
}

/**
 * Sends rows as they are read: no faster than the client takes them, and no longer than it is there. An answer that
 * breaks off ends without its last chunk (RFC 9112 section 8), so that no client takes a part for the whole.
 *
 * @throws HttpError 400 over HTTP/1.0, which has no chunks, without an end mark; whatever the rows throw before the first
 *   of them. After that the connection is cut off
 */
export async function sendRows(
  { request, response, counts }: Streaming,
  rows: Rows,
  { clock, telemetry, stopping }: Around,
): Promise<void> {
  const { parts, ends, format, name } = rows;
  if (request.httpVersion === '1.0' && rows.endMark === null) {
    const issue = 'is needed over HTTP/1.0, where nothing else shows that an answer is whole';
    throw badRequest([{ field: 'end_mark', issue }]);
  }
  const stop = (): void => ends.abort();
  response.once('close', stop);
  stopping.addEventListener('abort', stop, { once: true });
  try {
    // What is wrong from the beginning is answered as any error is.
    const first = await parts.next();
    response.statusCode = 200;
    response.setHeader('Content-Type', mediaTypes[format]);
    response.setHeader('Content-Disposition', `attachment; filename="${name}.${format}"`);
    // Else a proxy would take all that it can hold before it passes anything on.
    response.setHeader('X-Accel-Buffering', 'no');
    if (request.method === 'HEAD') {
      response.end();
      return;
    }
    // Finding the next row may take long, and is no fault of the client.
    request.socket.setTimeout(0);
    let [sent, looked] = [0, clock.steady()];
    for (let part = first; part.done !== true; part = await parts.next()) {
      const { text, count } = part.value;
      sent += count;
      if (text !== '' && !response.write(text)) await drained(response, ends.signal);
      else await setImmediate();
      if (clock.steady() - looked >= LOOK) {
        looked = clock.steady();
        if (!(await counts())) throw new Error('the caller is not let in any longer');
      }
      if (ends.signal.aborted) break;
    }
    if (ends.signal.aborted) response.destroy();
    else response.end(rows.endMark?.(sent));
  } catch (error) {
    if (!response.headersSent) throw error;
    if (!ends.signal.aborted) telemetry.log.warn('an export broke off', { export: name, error });
    response.destroy();
  } finally {
    response.off('close', stop);
    stopping.removeEventListener('abort', stop);
    ends.abort();
    await parts.return(undefined);
  }
}

/** Resolves when there is room for more, or nobody waits for it. A client that takes nothing for long is cut off. */
async function drained(response: Response, signal: AbortSignal): Promise<void> {
  const socket: Socket | null = response.socket;
  socket?.setTimeout(STALLED);
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
