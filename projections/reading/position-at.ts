import { fromIso } from '../../domain/clock.ts';
import { BEGINNING, type EventStore, type Position } from '../../domain/event-store.ts';
import { streams } from '../../domain/streams.ts';
import { auditFilters, auditProjection, newestAudited } from '../views/audit.ts';
import { ReadModelError, type ReadModel } from '../read-model.ts';
import { runsProjection } from '../views/runs.ts';

/** Events that are read at a time. */
const PAGE = 500;

/**
 * How far the clocks of the machines that write one log are taken to differ at most. Milliseconds. An event that is
 * later than a moment by more than this has none of that moment behind it. All up to there is read: of a busy log a
 * second is many thousand events.
 */
export const SKEW = 10_000;

/** Where a moment is in the log. */
export interface PlaceInLog {
  readonly position: Position;
  /** `occurredAt` of the event there. */
  readonly at: string;
}

/**
 * The last event of the log that occurred at or before an instant; null where none did. Positions are no times: what
 * the views know of about that time is where it begins to read, so that it reads little of the log.
 *
 * @param at ISO 8601, as the service writes it
 * @throws EventStoreError `UNAVAILABLE`, ReadModelError `UNAVAILABLE`
 */
export async function positionAt(
  { store, readModel }: { readonly store: EventStore; readonly readModel: ReadModel },
  at: string,
): Promise<PlaceInLog | null> {
  const latest = fromIso(at) + SKEW;
  let found: PlaceInLog | null = null;
  let after = await near({ store, readModel }, at);
  for (;;) {
    const page = await store.readAll(after, PAGE);
    for (const { position, metadata } of page) {
      if (metadata.occurredAt <= at) found = { position, at: metadata.occurredAt };
      else if (fromIso(metadata.occurredAt) > latest) return found;
    }
    const last = page.at(-1);
    if (last === undefined) return found;
    after = last.position;
  }
}

/** A position before which no search has to begin: of what was done by somebody, or was queued, shortly before. */
async function near(
  { store, readModel }: { readonly store: EventStore; readonly readModel: ReadModel },
  at: string,
): Promise<Position> {
  // Strictly before that event: it may be the one.
  const before = async (position: Position | undefined): Promise<Position> => {
    if (position === undefined) return BEGINNING;
    const [previous] = await store.readAllBackwards(position, 1);
    return previous?.position ?? BEGINNING;
  };
  const [done, queued] = await Promise.all([
    lastAudited(readModel, at).then(before),
    lastQueued({ store, readModel }, at).then(before),
  ]);
  return done > queued ? done : queued;
}

async function lastAudited(readModel: ReadModel, at: string): Promise<Position | undefined> {
  return orNone(async () => {
    const filters = auditFilters({ to: at });
    const [last] = await readModel.find(auditProjection, {
      filters,
      sort: newestAudited,
      limit: 1,
    });
    return last?.key;
  });
}

async function lastQueued(
  { store, readModel }: { readonly store: EventStore; readonly readModel: ReadModel },
  at: string,
): Promise<Position | undefined> {
  const run = await orNone(async () => {
    const [last] = await readModel.find(runsProjection, {
      filters: [
        { field: 'listed', op: 'eq', value: true },
        { field: 'queued_at', op: 'lte', value: at },
      ],
      sort: [{ field: 'queued_at', direction: 'descending' }],
      limit: 1,
    });
    return last?.key;
  });
  if (run === undefined) return undefined;
  const [first] = await store.readStream(streams.run(run), { limit: 1 });
  return first?.position;
}

/** A view that is not there yet can't help, and need not. */
async function orNone<T>(work: () => Promise<T>): Promise<T | undefined> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof ReadModelError && error.code === 'NO_VIEW') return undefined;
    throw error;
  }
}
