import type { EventStore, RecordedEvent } from '../domain/event-store.ts';

const PAGE_SIZE = 500;

/**
 * Reads a stream to its end.
 *
 * @param options.from the first revision; default 0
 * @param options.faulty includes events that do not match their schema, instead of throwing `CORRUPT_EVENT`
 * @throws EventStoreError
 */
export async function readWholeStream(
  store: EventStore,
  stream: string,
  { from = 0, ...options }: { readonly from?: number; readonly faulty?: boolean } = {},
): Promise<readonly RecordedEvent[]> {
  const events: RecordedEvent[] = [];
  for (;;) {
    const next = (events.at(-1)?.revision ?? from - 1) + 1;
    const page = await store.readStream(stream, { ...options, from: next, limit: PAGE_SIZE });
    events.push(...page);
    if (page.length < PAGE_SIZE) return events;
  }
}
