import { parentPort, workerData } from 'node:worker_threads';
import { SystemClock } from './clock.ts';
import { runProjector } from './projector-host.ts';
import type { ProjectorThreadData, ProjectorThreadMessage } from './projector-protocol.ts';

/**
 * The projector in a thread of its own: folding and writing the embedded views never waits for requests and
 * runs, nor they for it. It opens the stores for itself.
 */
const port = parentPort;
if (port === null) throw new Error('the projector thread needs a parent');

const stop = new AbortController();
port.on('message', (message: ProjectorThreadMessage) => {
  if (message.kind === 'stop') stop.abort();
});

await runProjector({
  data: workerData as ProjectorThreadData,
  clock: new SystemClock(),
  signal: stop.signal,
  tell: (message) => port.postMessage(message),
});
port.close();
