import type { Clock } from '../../domain/clock.ts';
import type { Position } from '../../domain/event-store.ts';
import { createLog } from '../../observability/create-log.ts';
import type { Telemetry, Traces } from '../../observability/telemetry.ts';
import { OlderShapesCleanup } from '../../projections/generations/older-shapes-cleanup.ts';
import { shapesOf } from '../../projections/projector/projection-report.ts';
import { createProjector } from '../../projections/projector/projector.ts';
import { REPLAY_REPORT } from '../../projections/replays/replay-report.ts';
import { Replayer } from '../../projections/replays/replayer.ts';
import { Leadership } from '../../scheduler/processes/leadership.ts';
import { onceImportCompleted } from '../starting/unfinished-import.ts';
import { openStores, type Stores } from '../stores.ts';
import { FillingThreads } from './parallel-fill/fill-threads.ts';
import { projectorFailures } from './projector-failures.ts';
import { projectNewerShapes } from './newer-shapes-projector.ts';
import { projections } from './projections.ts';
import type { ProjectorMessage, ProjectorThreadData } from './projector-protocol.ts';
import { reportProjections } from './projector-report.ts';
import { yieldWhileFilling, type Priority } from './fill-priority.ts';

/** Prefix of notices of checkpoints between the processes of a machine. */
const CHECKPOINT_NOTICE = 'view ';

/** Milliseconds in which, under load, a run is requested, started and ended: its document is then written once. */
const GATHER_MS = 50;

const namesByShape = new Map(projections.map((each) => [shapesOf([each]), each.name]));

/**
 * The view of this release that a notice names, and its position. null for other notices, and for another shape of the
 * view, which says nothing about this one.
 */
export function checkpointOf(
  notice: string,
): { readonly name: string; readonly position: Position } | null {
  if (!notice.startsWith(CHECKPOINT_NOTICE)) return null;
  const [shape, position] = notice.slice(CHECKPOINT_NOTICE.length).split(' ');
  const name = namesByShape.get(shape ?? '');
  return name === undefined || position === undefined ? null : { name, position };
}

interface HostOptions {
  readonly data: ProjectorThreadData;
  /** The process's stores, which stay open. Default: it opens its own. */
  readonly stores?: Stores;
  readonly clock: Clock;
  readonly signal: AbortSignal;
  readonly send: (message: ProjectorMessage) => void;
  readonly traces?: Traces | undefined;
  /** The priority of its thread; default: it has no separate thread. */
  readonly priority?: Priority;
}

interface Host extends HostOptions {
  readonly stores: Stores;
  readonly telemetry: Telemetry;
  readonly leadership: Leadership;
  readonly fillElsewhere: FillingThreads | undefined;
  readonly onFill: (() => () => void) | undefined;
}

/** Folds the log into the views whenever this process leads, until the signal is aborted. */
export async function runProjector(options: HostOptions): Promise<void> {
  const { data, clock, signal, send, traces, priority } = options;
  const { owner, lease, settings } = data;
  const log = createLog({ level: settings.logLevel, fields: { part: 'projector' } });
  const telemetry: Telemetry = {
    log,
    failures: projectorFailures(log, send),
    // Counted in the main thread, which serves the metrics.
    count: (name, labels = {}, by = 1) => send({ kind: 'count', name, labels, by }),
    observe: (name, value, labels = {}) => send({ kind: 'observe', name, labels, value }),
    traces,
  };
  const opened = options.stores ?? (await openStores(settings, telemetry));
  const { coordination } = opened;
  const name = 'projector';
  const leadership = new Leadership({ name, owner, lease, coordination, clock, telemetry });
  const ended = new AbortController();
  const leading = leadership.run(AbortSignal.any([signal, ended.signal]));
  const host: Host = {
    ...options,
    stores: { ...opened, store: onceImportCompleted(opened.store) },
    telemetry,
    leadership,
    fillElsewhere: fillingThreads(settings, telemetry),
    onFill: priority && yieldWhileFilling(priority, clock),
  };
  try {
    while (!signal.aborted) {
      await projectUntilLeading(host);
      if (!signal.aborted) await projectWhileLeading(host);
    }
  } finally {
    // Also after an error: a process that does not project must not lead.
    ended.abort();
    await leading;
    if (options.stores === undefined) await opened.close();
  }
}

async function projectWhileLeading(host: Host): Promise<void> {
  const { stores, telemetry, leadership, fillElsewhere, onFill, clock, signal, send } = host;
  const { store, readModel, coordination } = stores;
  await leadership.whileLeading(signal, async (ending, fence) => {
    const shared = { store, readModel, projections, telemetry, clock, fence, onFill };
    const projector = createProjector({ ...shared, gatherMs: GATHER_MS, fillElsewhere });
    const stopListening = projector.onCheckpoint(checkpointSender(host));
    const reporting = reportProjections({
      coordination,
      fence,
      clock,
      telemetry,
      signal: ending.signal,
      status: () => projector.status(),
      tell: (views) => send({ kind: 'status', leads: true, views }),
    });
    const replaying = new Replayer({
      ...shared,
      async tell(progress) {
        await coordination.remember(REPLAY_REPORT, JSON.stringify(progress), fence);
      },
    }).run(ending.signal);
    const cleaning = new OlderShapesCleanup({
      ...shared,
      memory: {
        recall: (name) => coordination.recall(name),
        remember: (name, value) => coordination.remember(name, value, fence),
      },
    }).run(ending.signal);
    try {
      await projector.run(ending.signal);
    } finally {
      ending.abort();
      stopListening();
      await Promise.all([reporting, replaying, cleaning]);
      send({ kind: 'status', leads: false, views: [] });
    }
  });
}

/** Builds views that the leading projector does not know, until this process leads or the signal is aborted. */
async function projectUntilLeading(host: Host): Promise<void> {
  const { data, leadership, signal } = host;
  const leads = new AbortController();
  const { owner, lease } = data;
  const onCheckpoint = checkpointSender(host);
  const projecting = projectNewerShapes(
    { ...host, projections, owner, lease, gatherMs: GATHER_MS, onCheckpoint },
    AbortSignal.any([signal, leads.signal]),
  );
  await leadership.untilLeading(signal);
  leads.abort();
  await projecting;
}

/** Only if both stores are embedded, as threads can open them then. */
function fillingThreads(
  { dataDirectory, eventStoreUrl, readModelUrl, logLevel }: ProjectorThreadData['settings'],
  telemetry: Telemetry,
): FillingThreads | undefined {
  if (eventStoreUrl !== undefined || readModelUrl !== undefined) return undefined;
  const place = { log: dataDirectory, views: dataDirectory, logLevel };
  return new FillingThreads({ place, telemetry });
}

/** Sends checkpoints to this process and the others of the machine, once per turn of the event loop. */
function checkpointSender({ stores, send }: Host): (name: string, position: Position) => void {
  const shapes = new Map(projections.map((each) => [each.name, shapesOf([each])]));
  const passed = new Map<string, Position>();
  const sendAll = (): void => {
    send({ kind: 'checkpoints', views: [...passed] });
    for (const [name, position] of passed) {
      stores.notices?.publish(`${CHECKPOINT_NOTICE}${shapes.get(name) ?? name} ${position}`);
    }
    passed.clear();
  };
  return (name, position) => {
    if (passed.size === 0) setImmediate(sendAll);
    passed.set(name, position);
  };
}
