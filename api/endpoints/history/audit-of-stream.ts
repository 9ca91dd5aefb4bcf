import type { EventStore, RecordedEvent } from '../../../domain/event-store.ts';
import {
  auditDocumentOf,
  auditProjection,
  isAudited,
  newestAudited,
  type AuditDocument,
  type AuditFilters,
} from '../../../projections/views/audit.ts';
import type { Names } from '../../../projections/reading/names.ts';
import type { AuditPage } from '../../schemas/answer-schemas-audit.ts';
import { cursorOf, parseCursor } from '../listing.ts';
import { namedItems, type AuditLooks } from './audit-naming.ts';

/** Events that are read at a time. */
const READ = 500;

/**
 * What agents did in one short stream, newest first: read from the log, as the view of the audit would tell it.
 *
 * @param wanted.stream whose events are all read
 * @throws HttpError 400 for a cursor of another list; EventStoreError `UNAVAILABLE`
 */
export async function auditOfStream(
  { store, names }: { readonly store: EventStore; readonly names: Names },
  wanted: AuditFilters & AuditLooks & { readonly stream: string },
  { limit, cursor }: { readonly limit: number; readonly cursor?: string },
): Promise<AuditPage> {
  const after = cursor === undefined ? null : parseCursor(cursor, newestAudited, auditProjection);
  const documents: AuditDocument[] = [];
  for await (const event of eventsOf(store, wanted.stream)) {
    if (isAudited(event, wanted)) documents.push(auditDocumentOf(event));
  }
  const found = [...(await namedItems(documents, wanted, names))];
  found.sort((one, other) => compare(other.at, one.at) || compare(other.position, one.position));
  const [at] = after?.values ?? [];
  const left =
    after === null
      ? found
      : found.filter(
          (one) => (compare(one.at, String(at)) || compare(one.position, after.key)) < 0,
        );
  const items = left.slice(0, limit);
  const last = items.at(-1);
  // As in the view, where more than one equality is not counted.
  const countable = wanted.actor === undefined && wanted.type === undefined;
  const { position: key = '' } = last ?? {};
  return {
    items,
    total: countable ? found.length : null,
    next_cursor:
      left.length > limit && last
        ? cursorOf({ key, document: { at: last.at } }, newestAudited)
        : null,
  };
}

/** The events of a stream from the first on, with those that can't be read, which are in no view either. */
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
