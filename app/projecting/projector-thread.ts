import { parentPort, workerData } from 'node:worker_threads';
import { createLog } from '../../observability/create-log.ts';
import { SystemClock } from '../clock.ts';
import { runProjector } from './projector-host.ts';
import type { ProjectorThreadData, ProjectorThreadMessage } from './projector-protocol.ts';
import { threadPriority } from './thread-priority.ts';
import { openTraces } from '../watching/traces.ts';

/**
 * Somewhat less of a contended processor than the others have, while a view is made: with 0, reads beside that took up to
 * 1.9 times as long. What follows the log has its share: with less, the views fall behind a full queue, and a processor
 * stands idle until they have caught up.
 */
const NICENESS_WHILE_MAKING = 2;

/**
 * The projector in a thread of its own: folding and writing the embedded views never waits for requests and
 * runs, nor they for it. It opens the stores for itself.
 */
const port = parentPort;
if (port === null) throw new Error('the projector thread needs a parent');

const data = workerData as ProjectorThreadData;

const log = createLog({ level: data.settings.logLevel, fields: { part: 'projector' } });
const opened = await openTraces(data.settings.traces, { version: data.version, log });

const stop = new AbortController();
port.on('message', (message: ProjectorThreadMessage) => {
  if (message.kind === 'stop') stop.abort();
});

await runProjector({
  data,
  clock: new SystemClock(),
  signal: stop.signal,
  tell: (message) => port.postMessage(message),
  traces: opened.traces,
  priority: threadPriority(NICENESS_WHILE_MAKING, log),
});
await opened.close();
// A collector that does not answer would keep the thread.
if (opened.traces !== undefined) process.exit(0);
port.close();
