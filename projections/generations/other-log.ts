import type { Clock } from '../../domain/clock.ts';
import { BEGINNING, type EventStore } from '../../domain/event-store.ts';
import type { Telemetry } from '../../observability/telemetry.ts';
import { isOfLog, type KnownLog } from '../of-log.ts';
import { parkedProjection as parked } from '../projector/parking.ts';
import { ReadModelError, type Projection, type ReadModel } from '../read-model.ts';
import { inShape } from './shapes.ts';

/** As any other view, for what asks nothing of its documents. */
const parkedProjection = parked as unknown as Projection;

/**
 * Views of another log, as it is where an older copy of the log was put in its place: they have passed more than this
 * one has; or it has grown beyond that since, and lacks what they took last. Such a view takes none of the events up to
 * where it is, and says what never was; so it is thrown away, with all its generations, and made anew.
 */

/** Milliseconds between two looks at the log, how many there are at most, and for how long it is looked at. */
const BETWEEN = 250;
const LOOKS = 20;
const PATIENCE = 5_000;

/**
 * Whether a view is of another log. That is looked at for five seconds, as a node of a cluster may know less of the log
 * for a moment than another has said before.
 *
 * @throws ReadModelError; EventStoreError; the signal's reason
 */
export async function isOfOtherLog(
  projection: Projection,
  store: KnownLog,
  readModel: ReadModel,
  clock: Clock,
  signal: AbortSignal,
): Promise<boolean> {
  const end = clock.steady() + PATIENCE;
  for (let look = 1; !(await isOfLog(projection, store, readModel)); look += 1) {
    if (look === LOOKS || clock.steady() >= end) return true;
    await clock.sleep(BETWEEN, signal);
  }
  return false;
}

/** There are views, and no event: the log is lost, and they may be all that is left to tell what was in it. */
export class LostLogError extends Error {
  constructor({ name }: Projection) {
    super(
      `the event log is empty, and the view ${name} beside it is not: put the log back, or remove views.db, coordination.db and each *-s*-g*.db, with their -wal and -shm, to begin without it`,
    );
    this.name = 'LostLogError';
  }
}

/** Throws away all generations of a view of another log. @throws ReadModelError; EventStoreError */
export async function throwAway(
  projection: Projection,
  store: KnownLog,
  readModel: ReadModel,
  telemetry: Telemetry,
): Promise<void> {
  const { name, schema } = projection;
  const what = 'a view is of another log than this one: it is thrown away, and made anew';
  telemetry.log.error(what, { projection: name, schema });
  // First, as nothing tells of that log once its views have gone. What is held back for an event behind this log's end
  // would be so in a generation of the same number, too, whose events it then takes for later ones.
  if (!(await isOfLog(parkedProjection, store, readModel))) {
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
 * Throws away all views of another log, before anybody works by what they say. For a log of this machine alone, whose end
 * is known at any time. A view that can't be read says nothing either, and is left to its projector.
 *
 * @throws LostLogError; EventStoreError
 */
export async function throwAwayOfOtherLog(
  projections: readonly Projection[],
  store: KnownLog & Pick<EventStore, 'head'>,
  readModel: ReadModel,
  telemetry: Telemetry,
): Promise<void> {
  for (const projection of projections) {
    try {
      for (const schema of await readModel.schemas(projection)) {
        const shape = inShape(projection, schema);
        if (await isOfLog(shape, store, readModel)) continue;
        if ((await store.head()) === BEGINNING) throw new LostLogError(projection);
        await throwAway(shape, store, readModel, telemetry);
      }
    } catch (error) {
      if (!(error instanceof ReadModelError)) throw error;
      const fields = { projection: projection.name, error: error.message };
      telemetry.log.warn('a view could not be compared with the log', fields);
    }
  }
}
