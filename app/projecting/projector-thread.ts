import { parentPort, workerData } from 'node:worker_threads';
import { createLog } from '../../observability/create-log.ts';
import { SystemClock } from '../clock.ts';
import { openTraces } from '../watching/traces.ts';
import { runProjector } from './projector-host.ts';
import { failuresOfProcess } from './projector-failures.ts';
import type {
  ProjectorMessage,
  ProjectorThreadData,
  ToProjectorThread,
} from './projector-protocol.ts';
import { threadPriority } from './thread-priority.ts';

/**
 * While a view is built, the thread gets slightly less of a contended processor: with 0, concurrent reads took up to 1.9
 * times as long. While following it keeps its share: with less, the views fall behind a full queue.
 */
const NICENESS_WHILE_BUILDING = 2;

/**
 * The projector in its own thread, with its own stores. The work on the embedded views never waits for requests and
 * runs, and they never wait for it.
 */
const port = parentPort;
if (port === null) throw new Error('the projector thread needs a parent');

const data = workerData as ProjectorThreadData;

const log = createLog({ level: data.settings.logLevel, fields: { part: 'projector' } });

const send = (message: ProjectorMessage): void => port.postMessage(message);
const failures = failuresOfProcess(log, send);
const opened = await openTraces(data.settings.traces, { version: data.version, log, failures });

const stop = new AbortController();
port.on('message', (message: ToProjectorThread) => {
  if (message.kind === 'stop') stop.abort();
});

await runProjector({
  data,
  clock: new SystemClock(),
  signal: stop.signal,
  send,
  traces: opened.traces,
  priority: threadPriority(NICENESS_WHILE_BUILDING, log),
});
await opened.close();
// A collector that does not answer would keep the thread alive.
if (opened.traces !== undefined) process.exit(0);
port.close();
