import type { Clock } from '../../domain/clock.ts';
import type { Position } from '../../domain/event-store.ts';
import type { Telemetry } from '../../observability/telemetry.ts';
import { shapeRead } from '../../projections/generations/older-shape.ts';
import {
  besideReport,
  isOfNow,
  parseProjectionReport,
  PROJECTION_REPORT,
  shapesOf,
} from '../../projections/projector/projection-report.ts';
import { createProjector } from '../../projections/projector/projector.ts';
import type { FillElsewhere } from '../../projections/generations/filling-beside.ts';
import type { Projection } from '../../projections/read-model.ts';
import { Leadership } from '../../scheduler/processes/leadership.ts';
import type { Stores } from '../stores.ts';
import { reportProjections } from './projector-report.ts';

/** How often it is looked what the projector that leads makes. Milliseconds. */
const LOOK = 2_000;

/** What a projector works with that stands beside another. */
export interface BesideParts {
  readonly stores: Pick<Stores, 'store' | 'readModel' | 'coordination'>;
  /** All views of this release. */
  readonly projections: readonly Projection[];
  /** Of the lease. */
  readonly owner: string;
  /** Milliseconds. */
  readonly lease: number;
  readonly gatherMs: number;
  /** What fills large views; default: they are filled here. */
  readonly fillElsewhere?: FillElsewhere | undefined;
  readonly clock: Clock;
  readonly telemetry: Telemetry;
  readonly onCheckpoint: (name: string, position: Position) => void;
  /** Milliseconds between two looks at what the projector that leads makes; default 2,000. */
  readonly look?: number;
}

/** Views that the projector that leads does not make, and its fence. */
interface LeftOut {
  readonly shapes: readonly Projection[];
  readonly fence: number;
}

/**
 * Makes and feeds what the projector that leads does not know, as it is of an older release: views of newer shapes, as
 * far as nothing can be read in their place. Without it a release that changes a shape was not ready before the last
 * projector of the older one had gone, and a deployment that waits for the one before it stops the other would wait for
 * ever. One process of a release does so, by a lease of that release's shapes, until one of it leads.
 *
 * Does not reject: what fails is tried again.
 *
 * @param signal aborted when this process leads, or ends
 */
export async function projectBeside(parts: BesideParts, signal: AbortSignal): Promise<void> {
  const { clock, telemetry, look = LOOK } = parts;
  const rest = (): Promise<void> => clock.sleep(look, signal).catch(() => {});
  // First of all: where nobody leads, this process does in a moment.
  await rest();
  while (!signal.aborted) {
    try {
      const leftOut = await leftOutBy(parts);
      if (leftOut.shapes.length > 0) await whileLeftOut(parts, leftOut, signal);
    } catch (error) {
      if (signal.aborted) return;
      telemetry.log.warn(
        'what the projector that leads leaves out is not made; it is tried again',
        {
          error: error instanceof Error ? error.message : String(error),
        },
      );
    }
    await rest();
  }
}

/** @throws CoordinationError, ReadModelError */
async function leftOutBy({ stores, projections, clock }: BesideParts): Promise<LeftOut> {
  const { coordination, readModel } = stores;
  const report = parseProjectionReport(await coordination.recall(PROJECTION_REPORT));
  if (report === null || !isOfNow(report, clock.now())) return { shapes: [], fence: 0 };
  const made = new Map(report.views.map(({ name, schema }) => [name, schema]));
  const shapes: Projection[] = [];
  for (const projection of projections) {
    if ((made.get(projection.name) ?? 0) >= projection.schema) continue;
    const read = await shapeRead(readModel, projection);
    if (read === null || read.schema === projection.schema) shapes.push(projection);
  }
  return { shapes, fence: report.fence ?? 0 };
}

/** Until the projector that leads is another one, or the lease is lost, or the signal is aborted. */
async function whileLeftOut(
  parts: BesideParts,
  leftOut: LeftOut,
  signal: AbortSignal,
): Promise<void> {
  const { stores, projections, owner, lease, clock, telemetry } = parts;
  const ended = new AbortController();
  const until = AbortSignal.any([signal, ended.signal]);
  const leadership = new Leadership({
    ...{ owner, lease, clock, telemetry, coordination: stores.coordination },
    name: `projector of ${shapesOf(projections)}`,
  });
  const led = leadership.run(until);
  const looked = endWhenOther(parts, leftOut, ended, until);
  try {
    await leadership.untilLeading(until);
    if (!until.aborted) await project(parts, leftOut, leadership, until);
  } finally {
    ended.abort();
    await Promise.all([led, looked]);
  }
}

/** Ends it once something else is left out. */
async function endWhenOther(
  parts: BesideParts,
  { shapes, fence }: LeftOut,
  ended: AbortController,
  until: AbortSignal,
): Promise<void> {
  while (!until.aborted) {
    await parts.clock.sleep(parts.look ?? LOOK, until).catch(() => {});
    try {
      const now = await leftOutBy(parts);
      if (now.fence !== fence || shapesOf(now.shapes) !== shapesOf(shapes)) ended.abort();
    } catch (error) {
      // Nothing is known of the one that leads; what it may do is refused by its fence, or this one's.
      parts.telemetry.log.debug('what is left out could not be looked at', { error });
    }
  }
}

async function project(
  { stores, projections, gatherMs, fillElsewhere, clock, telemetry, onCheckpoint }: BesideParts,
  { shapes, fence }: LeftOut,
  leadership: Leadership,
  until: AbortSignal,
): Promise<void> {
  const { store, readModel, coordination } = stores;
  await leadership.whileLeading(until, async (ending, own) => {
    const projector = createProjector({
      ...{ store, readModel, telemetry, clock, gatherMs, fillElsewhere, projections: shapes },
      // Above all who have led so far and all who stood beside this one, below all who will lead.
      fence: fence + own / (own + 1),
    });
    const stopTelling = projector.onCheckpoint(onCheckpoint);
    const telling = reportProjections({
      ...{ coordination, clock, telemetry, fence: own, signal: ending.signal },
      status: () => projector.status(),
      name: besideReport(projections),
    });
    telemetry.log.info('views that the projector that leads does not know are made beside it', {
      views: shapesOf(shapes),
    });
    try {
      await projector.run(ending.signal);
    } finally {
      ending.abort();
      stopTelling();
      await telling;
    }
  });
}
