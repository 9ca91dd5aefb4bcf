import type { Position } from '../../domain/event-store.ts';
import { shapeRead } from '../../projections/generations/older-shape.ts';
import {
  besideReport,
  isCurrent,
  parseProjectionReport,
  PROJECTION_REPORT,
  shapesOf,
} from '../../projections/projector/projection-report.ts';
import { createProjector, type ProjectorOptions } from '../../projections/projector/projector.ts';
import type { Projection } from '../../projections/read-model.ts';
import { Leadership } from '../../scheduler/processes/leadership.ts';
import type { Stores } from '../stores.ts';
import { reportProjections } from './projector-report.ts';

/** The messages that report failures. */
const FAILURE = 'could not build views that the leading projector lacks; retrying';
const NOT_CHECKED = 'could not check what the leading projector lacks; retrying';

const CHECK_INTERVAL_MS = 2_000;

interface NewerShapesParts extends Pick<
  ProjectorOptions,
  'projections' | 'gatherMs' | 'fillElsewhere' | 'onFill' | 'clock' | 'telemetry'
> {
  readonly stores: Pick<Stores, 'store' | 'readModel' | 'coordination'>;
  /** The owner of the lease. */
  readonly owner: string;
  /** Milliseconds. */
  readonly lease: number;
  readonly onCheckpoint: (name: string, position: Position) => void;
  /** Milliseconds between two checks of what the leading projector builds; default 2,000. */
  readonly look?: number;
}

/** Views that the leading projector does not build, and its fence. */
interface MissingShapes {
  readonly shapes: readonly Projection[];
  readonly fence: number;
}

/**
 * Builds and feeds views in newer shapes that the leading projector, of an older release, does not know, if nothing can
 * be read in their place. Without this, a new release would not be ready until the last older projector has stopped;
 * a rolling deployment that waits for readiness would block. One process per release does this, by a lease of that
 * release's shapes, until one of them leads.
 *
 * Does not reject: failures are retried.
 *
 * @param signal aborted when this process leads, or ends
 */
export async function projectNewerShapes(
  parts: NewerShapesParts,
  signal: AbortSignal,
): Promise<void> {
  const { clock, telemetry, look = CHECK_INTERVAL_MS } = parts;
  const pause = (): Promise<void> => clock.sleep(look, signal).catch(() => {});
  // If nobody leads, this process soon will.
  await pause();
  while (!signal.aborted) {
    try {
      const missing = await findMissing(parts);
      telemetry.failures.worked(FAILURE);
      if (missing.shapes.length > 0) await whileMissing(parts, missing, signal);
    } catch (error) {
      if (signal.aborted) return;
      telemetry.failures.failed(FAILURE, error);
    }
    await pause();
  }
}

/** @throws CoordinationError, ReadModelError */
async function findMissing({
  stores,
  projections,
  clock,
}: NewerShapesParts): Promise<MissingShapes> {
  const { coordination, readModel } = stores;
  const report = parseProjectionReport(await coordination.recall(PROJECTION_REPORT));
  if (report === null || !isCurrent(report, clock.now())) return { shapes: [], fence: 0 };
  const built = new Map(report.views.map(({ name, schema }) => [name, schema]));
  const shapes: Projection[] = [];
  for (const projection of projections) {
    if ((built.get(projection.name) ?? 0) >= projection.schema) continue;
    const read = await shapeRead(readModel, projection);
    if (read === null || read.schema === projection.schema) shapes.push(projection);
  }
  return { shapes, fence: report.fence ?? 0 };
}

/** Until another projector leads, the lease is lost, or the signal is aborted. */
async function whileMissing(
  parts: NewerShapesParts,
  missing: MissingShapes,
  signal: AbortSignal,
): Promise<void> {
  const { stores, projections } = parts;
  const ended = new AbortController();
  const until = AbortSignal.any([signal, ended.signal]);
  const leadership = new Leadership({
    ...parts,
    coordination: stores.coordination,
    name: `projector of ${shapesOf(projections)}`,
  });
  const leading = leadership.run(until);
  const checking = endWhenChanged(parts, missing, ended, until);
  try {
    await leadership.untilLeading(until);
    if (!until.aborted) await project(parts, missing, leadership, until);
  } finally {
    ended.abort();
    await Promise.all([leading, checking]);
  }
}

/** Aborts `ended` once other shapes are missing, or another projector leads. */
async function endWhenChanged(
  parts: NewerShapesParts,
  { shapes, fence }: MissingShapes,
  ended: AbortController,
  until: AbortSignal,
): Promise<void> {
  const { clock, telemetry, look = CHECK_INTERVAL_MS } = parts;
  while (!until.aborted) {
    await clock.sleep(look, until).catch(() => {});
    try {
      const now = await findMissing(parts);
      telemetry.failures.worked(NOT_CHECKED);
      if (now.fence !== fence || shapesOf(now.shapes) !== shapesOf(shapes)) ended.abort();
    } catch (error) {
      // The leader is unknown for now; the fences keep the two projectors apart.
      telemetry.failures.failed(NOT_CHECKED, error);
    }
  }
}

async function project(
  parts: NewerShapesParts,
  { shapes, fence }: MissingShapes,
  leadership: Leadership,
  until: AbortSignal,
): Promise<void> {
  const { stores, projections, telemetry, onCheckpoint } = parts;
  await leadership.whileLeading(until, async (ending, own) => {
    const projector = createProjector({
      ...parts,
      ...stores,
      projections: shapes,
      // Above the fences of all leaders and side projectors so far, and below the fences of all future leaders.
      fence: fence + own / (own + 1),
    });
    const stopListening = projector.onCheckpoint(onCheckpoint);
    const reporting = reportProjections({
      ...parts,
      coordination: stores.coordination,
      fence: own,
      signal: ending.signal,
      status: () => projector.status(),
      name: besideReport(projections),
    });
    const fields = { views: shapesOf(shapes) };
    telemetry.log.info('building views that the leading projector lacks', fields);
    try {
      await projector.run(ending.signal);
    } finally {
      ending.abort();
      stopListening();
      await reporting;
    }
  });
}
