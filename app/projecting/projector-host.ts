import type { Clock } from '../../domain/clock.ts';
import type { Position } from '../../domain/event-store.ts';
import { createLog } from '../../observability/create-log.ts';
import type { Telemetry, Traces } from '../../observability/telemetry.ts';
import { OlderShapesGoing } from '../../projections/generations/older-shapes-going.ts';
import { shapesOf } from '../../projections/projector/projection-report.ts';
import { createProjector } from '../../projections/projector/projector.ts';
import { REPLAY_REPORT } from '../../projections/replays/replay-report.ts';
import { Replayer } from '../../projections/replays/replayer.ts';
import { Leadership } from '../../scheduler/processes/leadership.ts';
import { FillingThreads } from './filling-threads.ts';
import { givingWay, type Priority } from './giving-way.ts';
import { projections } from './projections.ts';
import { projectBeside } from './projector-beside.ts';
import { reportProjections } from './projector-report.ts';
import type { ProjectorThreadData, ProjectorWord } from './projector-protocol.ts';
import { onceWhole } from '../starting/half-import.ts';
import { openStores, type Stores } from '../stores.ts';

/** How notices of checkpoints begin, between the processes of a machine. */
const CHECKPOINT_NOTICE = 'view ';

/**
 * What a notice of another process of the machine says: a view of this release, and how far it is. null where it says
 * something else, or is of another shape of the view, which says nothing of this one's.
 */
export function checkpointOf(
  notice: string,
): { readonly name: string; readonly position: Position } | null {
  if (!notice.startsWith(CHECKPOINT_NOTICE)) return null;
  const [shape, position] = notice.slice(CHECKPOINT_NOTICE.length).split(' ');
  const name = namesOfShapes.get(shape ?? '');
  return name === undefined || position === undefined ? null : { name, position };
}

const namesOfShapes = new Map(projections.map((each) => [shapesOf([each]), each.name]));

/**
 * The projector, with stores of its own: folds the log into the views whenever this process leads, until the
 * signal is aborted.
 */
export async function runProjector(options: {
  readonly data: ProjectorThreadData;
  readonly clock: Clock;
  readonly signal: AbortSignal;
  readonly tell: (word: ProjectorWord) => void;
  readonly traces?: Traces | undefined;
  /** Of the thread that this is; default: it is none of its own. */
  readonly priority?: Priority;
}): Promise<void> {
  const { data, clock, signal, tell, traces, priority } = options;
  const log = createLog({ level: data.settings.logLevel, fields: { part: 'projector' } });
  // Counted where the process's metrics are: metrics of a thread's own would cost it a timer, and nobody reads them.
  const telemetry: Telemetry = {
    log,
    count: (name, labels = {}, by = 1) => tell({ kind: 'count', name, labels, by }),
    observe: (name, value, labels = {}) => tell({ kind: 'observe', name, labels, value }),
    traces,
  };
  const opened = await openStores(data.settings, telemetry);
  const whole = onceWhole(opened.store);
  const store = priority === undefined ? whole : givingWay(whole, priority, clock);
  const stores = { ...opened, store };
  const { coordination } = stores;
  const { owner, lease } = data;
  const leadership = new Leadership({
    name: 'projector',
    owner,
    lease,
    coordination,
    clock,
    telemetry,
  });
  const ended = new AbortController();
  const led = leadership.run(AbortSignal.any([signal, ended.signal]));
  try {
    while (!signal.aborted) {
      await besideUntilLeading(stores, leadership, telemetry, options);
      if (!signal.aborted) await projectWhileLeading(stores, leadership, telemetry, options);
    }
  } finally {
    // Also after a fault: who does not project must not lead.
    ended.abort();
    await led;
    await stores.close();
  }
}

/** Under load a run is requested, started and ended within this: one document written, not three. Milliseconds. */
const GATHER_MS = 50;

async function projectWhileLeading(
  stores: Stores,
  leadership: Leadership,
  telemetry: Telemetry,
  { data, clock, signal, tell }: Parameters<typeof runProjector>[0],
): Promise<void> {
  const { store, readModel, coordination } = stores;
  const fillElsewhere = fillingThreads(data.settings, telemetry);
  await leadership.whileLeading(signal, async (ending, fence) => {
    const projector = createProjector({
      ...{ store, readModel, projections, telemetry, clock, fence },
      ...{ gatherMs: GATHER_MS, fillElsewhere },
    });
    const stopTelling = projector.onCheckpoint(checkpointTeller(stores, tell));
    const telling = reportProjections({
      ...{ coordination, fence, clock, telemetry, signal: ending.signal },
      status: () => projector.status(),
      tell: (views) => tell({ kind: 'status', leads: true, views }),
    });
    const replaying = new Replayer({
      ...{ store, readModel, clock, telemetry, fence },
      async tell(progress) {
        await coordination.remember(REPLAY_REPORT, JSON.stringify(progress), fence);
      },
    }).run(ending.signal);
    const olderGoing = new OlderShapesGoing({
      ...{ store, readModel, projections, clock, telemetry },
      memory: {
        recall: (name) => coordination.recall(name),
        remember: (name, value) => coordination.remember(name, value, fence),
      },
    }).run(ending.signal);
    try {
      await projector.run(ending.signal);
    } finally {
      ending.abort();
      stopTelling();
      await Promise.all([telling, replaying, olderGoing]);
      tell({ kind: 'status', leads: false, views: [] });
    }
  });
}

/** Views that the one that leads does not know, until this one leads or the signal is aborted. */
async function besideUntilLeading(
  stores: Stores,
  leadership: Leadership,
  telemetry: Telemetry,
  { data, clock, signal, tell }: Parameters<typeof runProjector>[0],
): Promise<void> {
  const leads = new AbortController();
  const { owner, lease } = data;
  const beside = projectBeside(
    {
      ...{ stores, projections, owner, lease, clock, telemetry, gatherMs: GATHER_MS },
      fillElsewhere: fillingThreads(data.settings, telemetry),
      onCheckpoint: checkpointTeller(stores, tell),
    },
    AbortSignal.any([signal, leads.signal]),
  );
  await leadership.untilLeading(signal);
  leads.abort();
  await beside;
}

/** Where both stores are embedded: there other threads can open them. */
function fillingThreads(
  { dataDirectory, eventStoreUrl, readModelUrl, logLevel }: ProjectorThreadData['settings'],
  telemetry: Telemetry,
): FillingThreads | undefined {
  if (eventStoreUrl !== undefined || readModelUrl !== undefined) return undefined;
  const place = { log: dataDirectory, views: dataDirectory, logLevel };
  return new FillingThreads({ place, telemetry });
}

/**
 * Says how far the views are, in this process and to the others of the machine: once in a turn of the event loop, as each
 * word wakes who hears it.
 */
function checkpointTeller(
  { notices }: Stores,
  tell: (word: ProjectorWord) => void,
): (name: string, position: Position) => void {
  const shapes = new Map(projections.map((each) => [each.name, shapesOf([each])]));
  const passed = new Map<string, Position>();
  const say = (): void => {
    tell({ kind: 'checkpoints', views: [...passed] });
    for (const [name, position] of passed) {
      notices?.publish(`${CHECKPOINT_NOTICE}${shapes.get(name) ?? name} ${position}`);
    }
    passed.clear();
  };
  return (name, position) => {
    if (passed.size === 0) setImmediate(say);
    passed.set(name, position);
  };
}
