import type { Clock } from '../../domain/clock.ts';
import { BEGINNING, type EventStore } from '../../domain/event-store.ts';
import type { Telemetry } from '../../observability/telemetry.ts';
import { isFromLog, type IdentifiableLog } from '../log-identity.ts';
import { parkedProjection as parked } from '../projector/parking.ts';
import { ReadModelError, type Projection, type ReadModel } from '../read-model.ts';
import { inShape } from './older-shape.ts';

/**
 * Views of another log. They appear when an older copy of the log is restored. Then the view is ahead of the log, or
 * the log has grown since and lacks the view's last event. Such a view would skip the log's events up to its position
 * and show events that never happened. All generations of the view are discarded, and the view is rebuilt.
 */

/** Typed like any other view, because its documents are not read here. */
const parkedProjection = parked as unknown as Projection;

const CHECK_INTERVAL_MS = 250;
const MAX_CHECKS = 20;
const MAX_CHECK_MS = 5_000;

interface ViewParts {
  readonly projection: Projection;
  readonly store: IdentifiableLog;
  readonly readModel: ReadModel;
  readonly telemetry: Telemetry;
}

/**
 * Whether a view was built from another log. Checks for five seconds, because a node of a cluster may lag behind
 * another.
 * @throws ReadModelError; EventStoreError; the signal's reason
 */
export async function isForeign(
  parts: Omit<ViewParts, 'telemetry'> & { readonly clock: Clock },
  signal: AbortSignal,
): Promise<boolean> {
  const { projection, store, readModel, clock } = parts;
  const end = clock.steady() + MAX_CHECK_MS;
  for (let check = 1; !(await isFromLog(projection, store, readModel)); check += 1) {
    if (check === MAX_CHECKS || clock.steady() >= end) return true;
    await clock.sleep(CHECK_INTERVAL_MS, signal);
  }
  return false;
}

/** There are views but no events: the log is lost, and the views may be all that remains of it. */
class LostLogError extends Error {
  constructor({ name }: Projection) {
    super(
      `the event log is empty, but the view ${name} is not: restore the log, or, to start without it, remove views.db, coordination.db and each *-s*-g*.db, with their -wal and -shm files`,
    );
    this.name = 'LostLogError';
  }
}

/** Discards all generations of a view of another log. @throws ReadModelError; EventStoreError */
export async function discardForeign(parts: ViewParts): Promise<void> {
  const { projection, store, readModel, telemetry } = parts;
  const { name, schema } = projection;
  const what = 'a view was built from another log: discarded, rebuilding';
  telemetry.log.error(what, { projection: name, schema });
  // The parked keys are deleted first, because nothing identifies that log once its views are gone.
  // Otherwise, a key parked at an event of the other log would stay parked in a new generation with
  // the same number.
  if (!(await isFromLog(parkedProjection, store, readModel))) {
    await discardAll(parkedProjection, readModel);
  }
  await discardAll(projection, readModel);
}

async function discardAll(projection: Projection, readModel: ReadModel): Promise<void> {
  await readModel.withdraw(projection);
  for (const generation of await readModel.generations(projection)) {
    await readModel.discard(projection, generation);
  }
}

/**
 * Discards all views of another log before anything reads them. Only for a log on this machine, because its end is
 * always known. A view that cannot be read is left to its projector.
 *
 * @throws LostLogError; EventStoreError
 */
export async function discardForeignViews(
  projections: readonly Projection[],
  store: IdentifiableLog & Pick<EventStore, 'head'>,
  readModel: ReadModel,
  telemetry: Telemetry,
): Promise<void> {
  for (const projection of projections) {
    try {
      for (const schema of await readModel.schemas(projection)) {
        const shape = inShape(projection, schema);
        if (await isFromLog(shape, store, readModel)) continue;
        if ((await store.head()) === BEGINNING) throw new LostLogError(projection);
        await discardForeign({ projection: shape, store, readModel, telemetry });
      }
    } catch (error) {
      if (!(error instanceof ReadModelError)) throw error;
      const fields = { projection: projection.name };
      telemetry.failures.failed('could not compare a view with the log', error, fields);
    }
  }
}
