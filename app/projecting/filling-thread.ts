import { parentPort, workerData } from 'node:worker_threads';
import { createEventCodec } from '../../domain/events/codec.ts';
import { createLog } from '../../observability/create-log.ts';
import type { Telemetry } from '../../observability/telemetry.ts';
import { Filling } from '../../projections/generations/filling.ts';
import {
  GenerationFeeder,
  PoisonedFillError,
} from '../../projections/generations/generation-feeder.ts';
import { Parking } from '../../projections/projector/parking.ts';
import { openSqliteEventStore } from '../../stores/sqlite/event-log/event-store.ts';
import { openSqliteReadModel } from '../../stores/sqlite/read-model/read-model.ts';
import { SystemClock } from '../clock.ts';
import type { FillingThreadData, FromFiller, ToFiller } from './filling-protocol.ts';
import { projections } from './projections.ts';
import { threadPriority } from './thread-priority.ts';

/**
 * Of 0 to 19. Where there is something to read, whoever waits for an answer goes first, and so does what follows the log.
 * Where there is not, all wait for this.
 */
const NICENESS = { beside: 15, alone: 2 } as const;

/** How often it is said how far it is. Milliseconds. */
const TELL_EVERY = 100;

const port = parentPort;
if (port === null) throw new Error('a thread that fills needs a parent');
const tell = (message: FromFiller): void => port.postMessage(message);

const { place, order, share } = workerData as FillingThreadData;
const log = createLog({ level: place.logLevel, fields: { part: 'filling', share: share.index } });
const telemetry: Telemetry = {
  log,
  count: (name, labels = {}, by = 1) => tell({ kind: 'count', name, labels, by }),
  observe: () => undefined,
};
threadPriority(order.endsAtPoison ? NICENESS.beside : NICENESS.alone, log).giveWay();

const stop = new AbortController();
const { signal } = stop;
const begun = gate();
const othersFilled = gate();
let turns = 0;
const parks = new Map<number, (error: string | null) => void>();

port.on('message', (message: ToFiller) => {
  if (message.kind === 'begin') begun.open();
  else if (message.kind === 'others-filled') othersFilled.open();
  else if (message.kind === 'parked') parks.get(message.turn)?.(message.error);
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
  const { generation, fence, endsAtPoison, skipped, batchSize } = order;
  const kept = new Parking(readModel, fence);
  const feeder = new GenerationFeeder({
    ...{ readModel, projection, generation, fence, telemetry, endsAtPoison, share },
    skipped: () => skipped,
    // Who follows the log holds keys back as well, and there is one who writes that.
    parking: { of: (view) => kept.of(view), park },
    onPassed: () => undefined,
  });
  const filling = new Filling({
    ...{ feeder, store, clock, telemetry, batchSize },
    sharesEnd: order.head,
    onOpened: () => tell({ kind: 'opened', isPart: feeder.share !== null }),
    others: () => othersFilled.opened,
  });
  const sayProgress = (): void => {
    const { detail } = filling.status();
    const { handled, leftOut } = feeder;
    tell({ kind: 'progress', counts: { handled, leftOut, looked: filling.looked }, detail });
  };
  const filled = new AbortController();
  const sayProgressMeanwhile = async (): Promise<void> => {
    while (!filled.signal.aborted) {
      await clock.sleep(TELL_EVERY, filled.signal).catch(() => {});
      sayProgress();
    }
  };
  let telling: Promise<void> | undefined;
  let end: FromFiller | null = null;
  try {
    if (share.index > 0) await begun.opened;
    // Not before: it would be taken for the last of them.
    telling = sayProgressMeanwhile();
    if (await filling.run(signal)) end = { kind: 'filled' };
  } catch (error) {
    if (error instanceof PoisonedFillError) end = { kind: 'poisoned', poisoned: error.poisoned };
    else end = { kind: 'failed', error: error instanceof Error ? error.message : String(error) };
  } finally {
    filled.abort();
    await telling;
    await readModel.close();
    await store.close();
  }
  if (end !== null) tell(end);
}

async function park(view: string, poisoned: Parameters<Parking['park']>[1]): Promise<void> {
  const turn = (turns += 1);
  const error = await new Promise<string | null>((resolve) => {
    parks.set(turn, resolve);
    tell({ kind: 'park', turn, view, poisoned });
  });
  parks.delete(turn);
  if (error !== null) throw new Error(error);
}

function gate(): { readonly opened: Promise<void>; readonly open: () => void } {
  let open = (): void => {};
  const opened = new Promise<void>((resolve) => (open = resolve));
  return { opened, open };
}
