import type { EventStore, Position, RecordedEvent } from '../../domain/event-store.ts';
import type { EventOf } from '../../domain/events/catalogue.ts';
import { isTopic } from '../../domain/schedule/topic-pattern.ts';
import { namespaceOf } from '../../domain/namespaces/namespace.ts';
import { streams } from '../../domain/streams.ts';
import type { EventWait } from './open-event-waits.ts';

const PAGE = 100;

/** The positions in the log at which a wait and its run start. */
export interface WaitStart {
  readonly suspended: Position;
  readonly requested: Position;
}

/** Reads the position at which a wait starts; null for a run that is no longer in the log. @throws EventStoreError */
export async function startOfWait(
  store: EventStore,
  runId: string,
  waitId: string,
): Promise<WaitStart | null> {
  const stream = streams.run(runId);
  const [first] = await store.readStream(stream, { limit: 1, faulty: true });
  if (first === undefined) return null;
  for (let from: number | null = null; ;) {
    const part = { direction: 'backwards', limit: PAGE, faulty: true } as const;
    const page = await store.readStream(stream, from === null ? part : { ...part, from });
    for (const event of page) {
      if (event.type !== 'RunStepSuspended' || event.data.wait_id !== waitId) continue;
      return { suspended: event.position, requested: first.position };
    }
    const last = page.at(-1);
    if (last === undefined || last.revision <= first.revision) return null;
    from = last.revision - 1;
  }
}

/** A readable published event. */
export type Published = RecordedEvent & EventOf<'EventPublished'>;

export function isPublished(event: RecordedEvent): event is Published {
  return event.fault === undefined && event.type === 'EventPublished';
}

/**
 * The published events of a topic of a namespace, or of topics of a pattern, after one position and up to another, in
 * log order. For a pattern, events of other topics are included. Trimmed events are missing.
 */
export async function* publishedBetween(
  store: EventStore,
  { namespace, topic: pattern }: Pick<EventWait, 'namespace' | 'topic'>,
  { after, upTo }: { readonly after: Position; readonly upTo: Position },
  signal: AbortSignal,
): AsyncGenerator<Published> {
  if (after >= upTo) return;
  if (isTopic(pattern)) {
    const stream = streams.topic(namespace, pattern);
    for (const event of (await latestOf(store, stream, after)).reverse()) {
      if (event.position <= upTo) yield event;
    }
    return;
  }
  const parts = { after, prefixes: ['topic-'], once: true, signal };
  for await (const message of store.subscribe(parts)) {
    if (message.kind === 'caught-up') continue;
    for (const event of message.events) {
      if (event.position > upTo) return;
      if (isPublished(event) && namespaceOf(event.data) === namespace) yield event;
    }
  }
}

/** The events of a topic's stream after a position, the latest first. */
async function latestOf(store: EventStore, stream: string, after: Position): Promise<Published[]> {
  const found: Published[] = [];
  for (let from: number | null = null; ;) {
    const part = { direction: 'backwards', limit: PAGE, faulty: true } as const;
    const where = from === null ? part : { ...part, from };
    const page = await store.readStream(stream, where);
    for (const event of page) {
      if (event.position <= after) return found;
      if (isPublished(event)) found.push(event);
    }
    const last = page.at(-1);
    if (last === undefined || last.revision === 0) return found;
    from = last.revision - 1;
  }
}
