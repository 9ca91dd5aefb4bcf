import type { Response } from 'express';

/** What is announced: `tools` are names. */
export interface Announcement {
  readonly server: string;
  readonly version: string;
  readonly capabilities: readonly string[];
  readonly tools: readonly string[];
}

/**
 * Tells a client by server-sent events what it can call: an `announce` at once and whenever that has changed, a
 * `heartbeat` between them. Ends with the connection.
 * @param every milliseconds between heartbeats
 * @param current what is announced now
 */
export function announce(response: Response, every: number, current: () => Announcement): void {
  // How long it lasts is the client's choice, and no measure of the service.
  response.locals['notMeasured'] = true;
  response.status(200);
  response.setHeader('Content-Type', 'text/event-stream; charset=utf-8');
  // Else a proxy might wait for more before it passes anything on.
  response.setHeader('X-Accel-Buffering', 'no');
  let told = '';
  const tell = (): void => {
    const data = JSON.stringify(current());
    if (data === told) return;
    told = data;
    response.write(`event: announce\ndata: ${data}\n\n`);
  };
  tell();
  const beat = setInterval(() => {
    // A client that reads nothing is not written to.
    if (response.writableLength > 0) return;
    tell();
    const data = JSON.stringify({ timestamp: new Date().toISOString() });
    response.write(`event: heartbeat\ndata: ${data}\n\n`);
  }, every);
  beat.unref();
  response.once('close', () => clearInterval(beat));
}
