import { fromIso, type Clock } from '../../../domain/clock.ts';
import {
  BEGINNING,
  EventStoreError,
  type EventStore,
  type Position,
  type RecordedEvent,
} from '../../../domain/event-store.ts';
import { auditDocumentOf, passes, type AuditFilters } from '../../../projections/views/audit.ts';
import { positionAt, MAX_CLOCK_SKEW_MS } from '../../../projections/reading/position-at.ts';
import type { Names } from '../../../projections/reading/names.ts';
import type { ReadModel } from '../../../projections/read-model.ts';
import type { AuditItem, AuditPage } from '../../schemas/response-schemas-audit.ts';
import type { AuditQuery } from '../../schemas/audit-schemas.ts';
import { invalidCursor } from '../listing.ts';
import type { InReach } from './streams-in-reach.ts';
import { matches, namedItem, type AuditItemFilters } from './audit-naming.ts';

/** The limits of one request: items, items at a time, and milliseconds. */
export const scanLimits = { items: 5_000, page: 500, duration: 1000 };

export interface AuditStores {
  readonly store: EventStore;
  readonly readModel: ReadModel;
  readonly clock: Pick<Clock, 'steady'>;
  readonly names: Names;
}

export type AllAuditFilters = AuditFilters & AuditItemFilters;

/** Reads a page backwards: by revisions of a stream, or by positions of the log. */
interface BackwardReader {
  readonly read: (from: string | undefined) => Promise<readonly RecordedEvent[]>;
  /** The place before an event from which reading continues; null at the beginning. */
  readonly before: (event: RecordedEvent) => string | null;
}

/**
 * The actions of the service, newest first. They are read from the log, within {@link scanLimits}, because they would
 * be most of the view.
 */
export async function auditOfService(
  {
    store,
    readModel,
    clock,
    names,
    isVisible,
  }: AuditStores & { readonly isVisible: InReach | null },
  filters: AllAuditFilters,
  { limit, cursor }: AuditQuery,
): Promise<AuditPage> {
  const { stream, to } = filters;
  const { read, before } =
    stream === undefined
      ? logReader(store, () => endOf({ store, readModel }, to))
      : streamReader(store, stream, to);
  const items: AuditItem[] = [];
  let from: string | null | undefined = cursor;
  const until = clock.steady() + scanLimits.duration;
  for (let examined = 0; examined < scanLimits.items && from !== null;) {
    const page = await read(from);
    examined += page.length;
    for (const event of page) {
      from = before(event);
      if (event.fault !== undefined || !passes(event, filters)) continue;
      if (isVisible !== null && !(await isVisible(event))) continue;
      const item = await namedItem(auditDocumentOf(event), names);
      if (!matches(item, filters)) continue;
      items.push(item);
      if (items.length === limit) return { items, total: null, next_cursor: from };
    }
    const [newest] = page;
    const isPast = filters.from !== undefined && (newest?.metadata.occurredAt ?? '') < filters.from;
    if (newest === undefined || isPast) from = null;
    if (clock.steady() > until) break;
  }
  return { items, total: null, next_cursor: from ?? null };
}

/** @param to leaves out all events that occurred later */
const streamReader = (
  store: EventStore,
  stream: string,
  to: string | undefined,
): BackwardReader => ({
  read: async (from) => {
    if (from !== undefined && !/^\d{1,15}$/.test(from)) throw invalidCursor();
    const revision = from === undefined ? await revisionUpTo(store, stream, to) : Number(from);
    const start = revision === undefined ? {} : { from: revision };
    const options = { direction: 'backwards', limit: scanLimits.page, faulty: true } as const;
    return store.readStream(stream, { ...options, ...start });
  },
  before: ({ revision }) => (revision === 0 ? null : String(revision - 1)),
});

/** @param end the position at which the first page begins */
const logReader = (store: EventStore, end: () => Promise<Position | null>): BackwardReader => ({
  read: async (from) => {
    const place = from ?? (await end());
    try {
      return await store.readAllBackwards(place, scanLimits.page);
    } catch (error) {
      if (error instanceof EventStoreError && error.code === 'INVALID_EVENT') throw invalidCursor();
      throw error;
    }
  },
  before: ({ position }) => position,
});

/** The position after all events that occurred up to an instant; null for the end of the log. */
async function endOf(
  stores: Pick<AuditStores, 'store' | 'readModel'>,
  to: string | undefined,
): Promise<Position | null> {
  if (to === undefined) return null;
  const last = await positionAt(stores, to);
  const [behind] = await stores.store.readAll(last?.position ?? BEGINNING, 1);
  return behind?.position ?? null;
}

/**
 * A revision after all events that occurred up to an instant, found by bisection; undefined for the stream's end.
 * Because clocks differ a little, the revision may lie somewhat later.
 */
async function revisionUpTo(
  store: EventStore,
  stream: string,
  to: string | undefined,
): Promise<number | undefined> {
  if (to === undefined) return undefined;
  const bound = fromIso(to) + MAX_CLOCK_SKEW_MS;
  const isLater = ({ metadata, createdAt }: RecordedEvent): boolean =>
    fromIso(metadata.occurredAt ?? createdAt) > bound;
  const end = { direction: 'backwards', limit: 1, faulty: true } as const;
  const [last] = await store.readStream(stream, end);
  if (last === undefined || !isLater(last)) return undefined;
  let [low, high] = [0, last.revision];
  while (low < high) {
    const middle = Math.floor((low + high) / 2);
    const [found] = await store.readStream(stream, { from: middle, limit: 1, faulty: true });
    if (found === undefined || isLater(found)) high = middle;
    else low = found.revision + 1;
  }
  return low;
}
