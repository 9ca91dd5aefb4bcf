import { parentPort, workerData } from 'node:worker_threads';
import { createEventCodec } from '../../../domain/events/codec.ts';
import { createLog } from '../../../observability/create-log.ts';
import { FailureLog } from '../../../observability/failure-log.ts';
import type { Telemetry } from '../../../observability/telemetry.ts';
import { errorMessage } from '../../../projections/error-message.ts';
import { Filling } from '../../../projections/generations/filling.ts';
import {
  GenerationWriter,
  PoisonedFillError,
} from '../../../projections/generations/generation-writer.ts';
import { ShareFill } from '../../../projections/parallel-fill/share-fill.ts';
import { Parking } from '../../../projections/projector/parking.ts';
import { openSqliteEventStore } from '../../../stores/sqlite/event-log/event-store.ts';
import { openSqliteReadModel } from '../../../stores/sqlite/read-model/read-model.ts';
import { SystemClock } from '../../clock.ts';
import type { FillingThreadData, FromFiller, ToFiller } from './filling-protocol.ts';
import { projections } from '../projections.ts';
import { threadPriority } from '../thread-priority.ts';

/**
 * 0 to 19. Beside a live view, requests and the projector go first. Without one, everything waits for this thread.
 */
const NICENESS = { beside: 15, alone: 2 } as const;

const PROGRESS_INTERVAL_MS = 100;

const port = parentPort;
if (port === null) throw new Error('a filling thread needs a parent');
const send = (message: FromFiller): void => port.postMessage(message);

const { place, order, share } = workerData as FillingThreadData;
const log = createLog({ level: place.logLevel, fields: { part: 'filling', share: share.index } });
const telemetry: Telemetry = {
  log,
  count: (name, labels = {}, by = 1) => send({ kind: 'count', name, labels, by }),
  observe: () => undefined,
  failures: new FailureLog(log),
};
threadPriority(order.endsAtPoison ? NICENESS.beside : NICENESS.alone, log).lower();

const stop = new AbortController();
const { signal } = stop;
const begun = gate();
const othersFilled = gate();
let lastParkId = 0;
const pendingParks = new Map<number, (error: string | null) => void>();

port.on('message', (message: ToFiller) => {
  if (message.kind === 'begin') begun.open();
  else if (message.kind === 'others-filled') othersFilled.open();
  else if (message.kind === 'parked') pendingParks.get(message.id)?.(message.error);
  else stop.abort();
});
signal.addEventListener('abort', () => {
  begun.open();
  othersFilled.open();
});

await fill();
port.close();

async function fill(): Promise<void> {
  const clock = new SystemClock();
  const { log: directory, views } = place;
  const codec = createEventCodec();
  const reading = { readOnly: true, isWritten: true };
  const store = await openSqliteEventStore({ directory, codec, telemetry, ...reading });
  const readModel = await openSqliteReadModel({ directory: views, telemetry });
  const projection = projections.find(({ name }) => name === order.name);
  if (projection === undefined) throw new Error(`there is no view ${order.name}`);
  const parked = new Parking(readModel, order.fence);
  const writer = new GenerationWriter({
    ...order,
    readModel,
    projection,
    telemetry,
    share,
    skipped: () => order.skipped,
    // The projector parks keys too, and parked keys have one writer.
    parking: { of: (view) => parked.of(view), park },
    onPassed: () => undefined,
  });
  const filling = new Filling({
    writer,
    store,
    clock,
    telemetry,
    batchSize: order.batchSize,
    share: new ShareFill({
      end: order.head,
      onOpened: () => send({ kind: 'opened', isPart: writer.share !== null }),
      othersFilled: othersFilled.opened,
    }),
  });
  const ended = new AbortController();
  const reportProgress = async (): Promise<void> => {
    while (!ended.signal.aborted) {
      await clock.sleep(PROGRESS_INTERVAL_MS, ended.signal).catch(() => {});
      const { handled, leftOut } = writer;
      const counts = { handled, leftOut, looked: filling.looked };
      send({ kind: 'progress', counts, detail: filling.status().detail });
    }
  };
  let reporting: Promise<void> | undefined;
  let end: FromFiller | null = null;
  try {
    if (share.index > 0) await begun.opened;
    // Not earlier, because this share's position would count as the slowest of all.
    reporting = reportProgress();
    if (await filling.run(signal)) end = { kind: 'filled' };
  } catch (error) {
    if (error instanceof PoisonedFillError) end = { kind: 'poisoned', poisoned: error.poisoned };
    else end = { kind: 'failed', error: errorMessage(error) };
  } finally {
    ended.abort();
    await reporting;
    await readModel.close();
    await store.close();
  }
  if (end !== null) send(end);
}

async function park(view: string, poisoned: Parameters<Parking['park']>[1]): Promise<void> {
  const id = (lastParkId += 1);
  const error = await new Promise<string | null>((resolve) => {
    pendingParks.set(id, resolve);
    send({ kind: 'park', id, view, poisoned });
  });
  pendingParks.delete(id);
  if (error !== null) throw new Error(error);
}

function gate(): { readonly opened: Promise<void>; readonly open: () => void } {
  let open = (): void => {};
  const opened = new Promise<void>((resolve) => (open = resolve));
  return { opened, open };
}
