import { setTimeout as pause } from 'node:timers/promises';
import type { Response } from 'express';

/** What is announced: `tools` are names. */
export interface Announcement {
  readonly server: string;
  readonly version: string;
  readonly capabilities: readonly string[];
  readonly tools: readonly string[];
}

/** The headers go out at once. */
export function begin(response: Response): void {
  // How long it lasts is the client's choice, and no measure of the service.
  response.locals['notMeasured'] = true;
  response.status(200);
  response.setHeader('Content-Type', 'text/event-stream; charset=utf-8');
  // Else a proxy might wait for more before it passes anything on.
  response.setHeader('X-Accel-Buffering', 'no');
  response.flushHeaders();
}

/**
 * Tells a client by server-sent events what it can call: an `announce` at once and whenever that has changed, a
 * `heartbeat` every so often. Resolves once the client is gone.
 * @param options.every milliseconds between heartbeats
 * @param options.gone aborted with the connection
 * @param options.look what is announced now
 * @throws what `look` throws
 */
export async function announce(
  response: Response,
  options: {
    readonly every: number;
    readonly gone: AbortSignal;
    readonly look: () => Announcement;
  },
): Promise<void> {
  const { every, gone, look } = options;
  let told = '';
  try {
    while (!gone.aborted) {
      const data = JSON.stringify(look());
      if (data !== told) response.write(`event: announce\ndata: ${data}\n\n`);
      told = data;
      await pause(every, undefined, { signal: gone });
      // A client that reads nothing is not written to.
      if (response.writableLength > 0) continue;
      const timestamp = new Date().toISOString();
      response.write(`event: heartbeat\ndata: ${JSON.stringify({ timestamp })}\n\n`);
    }
  } catch (error) {
    if (!gone.aborted) throw error;
  } finally {
    response.end();
  }
}
