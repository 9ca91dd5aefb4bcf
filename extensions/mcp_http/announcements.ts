import { setTimeout as pause } from 'node:timers/promises';
import type { Response } from 'express';

/** An announcement. `tools` are names. */
export interface Announcement {
  readonly server: string;
  readonly version: string;
  readonly capabilities: readonly string[];
  readonly tools: readonly string[];
}

/** Sends the headers at once. */
export function begin(response: Response): void {
  // The client chooses the duration, so it must not count as a request's duration.
  response.locals['notMeasured'] = true;
  response.status(200);
  response.setHeader('Content-Type', 'text/event-stream; charset=utf-8');
  // Otherwise, a proxy might buffer the stream.
  response.setHeader('X-Accel-Buffering', 'no');
  response.flushHeaders();
}

/**
 * Sends a client the tools that it may call as server-sent events: `announce` at once and after each change, and
 * `heartbeat` regularly. Resolves once the client has disconnected.
 * @param options.every milliseconds between heartbeats
 * @param options.gone aborted with the connection
 * @param options.look returns the current announcement
 * @throws the errors of `look`
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
      // Do not buffer for a client that does not read.
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
