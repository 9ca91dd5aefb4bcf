import type { EventStore, RecordedEvent } from '../../../domain/event-store.ts';
import {
  auditDocumentOf,
  auditProjection,
  isAudited,
  newestAudited,
  type AuditDocument,
  type EventFilters,
} from '../../../projections/views/audit.ts';
import type { Names } from '../../../projections/reading/names.ts';
import type { AuditItem, AuditPage } from '../../schemas/response-schemas-audit.ts';
import { behindCursor, cursorOf } from '../listing.ts';
import type { InReach } from './streams-in-reach.ts';
import { matchingItems, type AuditItemFilters } from './audit-naming.ts';

/** How many events are read at a time. */
const READ = 500;

/**
 * The actions of agents in one short stream, newest first. They are read from the log, in the form of the audit view.
 * @param filters.stream the stream, whose events are all read
 * @throws HttpError 400 for a cursor of another list; EventStoreError `UNAVAILABLE`
 */
export async function auditOfStream(
  {
    store,
    names,
    isVisible,
  }: {
    readonly store: EventStore;
    readonly names: Names;
    /** Whether an event is in the reader's reach; null: every event is. */
    readonly isVisible: InReach | null;
  },
  filters: EventFilters & AuditItemFilters & { readonly stream: string },
  { limit, cursor }: { readonly limit: number; readonly cursor?: string },
): Promise<AuditPage> {
  const { after } = behindCursor(cursor, newestAudited, auditProjection);
  const documents: AuditDocument[] = [];
  for await (const event of eventsOf(store, filters.stream)) {
    if (!isAudited(event, filters)) continue;
    if (isVisible === null || (await isVisible(event))) documents.push(auditDocumentOf(event));
  }
  const found = await matchingItems(documents, filters, names);
  found.sort((one, other) => compare(other.at, one.at) || compare(other.position, one.position));
  const isBehind = ({ at, position }: AuditItem): boolean =>
    after === undefined ||
    (compare(at, String(after.values[0])) || compare(position, after.key)) < 0;
  const rest = found.filter(isBehind);
  const items = rest.slice(0, limit);
  const last = items.at(-1);
  // Like the view, counts with at most one equality.
  const isCounted = filters.actor === undefined && filters.type === undefined;
  const next_cursor =
    rest.length > limit && last
      ? cursorOf({ key: last.position, document: { at: last.at } }, newestAudited)
      : null;
  return { items, total: isCounted ? found.length : null, next_cursor };
}

/** The events of a stream, including unreadable ones, which no view has. */
async function* eventsOf(store: EventStore, stream: string): AsyncGenerator<RecordedEvent> {
  for (let from = 0; ;) {
    const page = await store.readStream(stream, { from, limit: READ, faulty: true });
    yield* page;
    const last = page.at(-1);
    if (last === undefined || page.length < READ) return;
    from = last.revision + 1;
  }
}

const compare = (one: string, other: string): number => (one < other ? -1 : one > other ? 1 : 0);
