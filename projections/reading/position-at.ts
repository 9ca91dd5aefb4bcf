import { fromIso } from '../../domain/clock.ts';
import { BEGINNING, type EventStore, type Position } from '../../domain/event-store.ts';
import { streams } from '../../domain/streams.ts';
import { EVERY_NAMESPACE } from '../reach.ts';
import { auditFilters, auditProjection, newestAudited } from '../views/audit.ts';
import type { ReadModel } from '../read-model.ts';
import { unlessMissing } from './pages.ts';
import { runsProjection } from '../views/runs.ts';

/** Events per read. */
const PAGE = 500;

/**
 * Milliseconds by which the clocks of machines that write one log may differ. An event later than an instant by more
 * than this has no event of that instant after it. Everything up to there is read, and a busy log has many thousand
 * events per second.
 */
export const MAX_CLOCK_SKEW_MS = 10_000;

export interface PlaceInLog {
  readonly position: Position;
  /** `occurredAt` of the event at this position. */
  readonly at: string;
}

/**
 * The last event of the log that occurred at or before an instant; null if none did. Positions are not times. The views
 * give a place to start, so that only a small part of the log is read.
 *
 * @param at ISO 8601, as the service writes it
 * @throws EventStoreError `UNAVAILABLE`, ReadModelError `UNAVAILABLE`
 */
export async function positionAt(
  { store, readModel }: { readonly store: EventStore; readonly readModel: ReadModel },
  at: string,
): Promise<PlaceInLog | null> {
  const latest = fromIso(at) + MAX_CLOCK_SKEW_MS;
  let found: PlaceInLog | null = null;
  let after = await searchStart({ store, readModel }, at);
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

/** The position at which the search starts: that of the last audited event or queued run before the instant. */
async function searchStart(
  { store, readModel }: { readonly store: EventStore; readonly readModel: ReadModel },
  at: string,
): Promise<Position> {
  // Strictly before that event, because it may be the event to find.
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
  const query = {
    filters: auditFilters({ reach: EVERY_NAMESPACE, to: at }),
    sort: newestAudited,
    limit: 1,
  };
  const [last] = await unlessMissing(readModel.find(auditProjection, query), []);
  return last?.key;
}

async function lastQueued(
  { store, readModel }: { readonly store: EventStore; readonly readModel: ReadModel },
  at: string,
): Promise<Position | undefined> {
  const found = readModel.find(runsProjection, {
    filters: [
      { field: 'listed', op: 'eq', value: true },
      { field: 'queued_at', op: 'lte', value: at },
    ],
    sort: [{ field: 'queued_at', direction: 'descending' }],
    limit: 1,
  });
  const [run] = await unlessMissing(found, []);
  if (run === undefined) return undefined;
  const [first] = await store.readStream(streams.run(run.key), { limit: 1 });
  return first?.position;
}
