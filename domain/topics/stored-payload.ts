import type { EventStore, RecordedEvent } from '../event-store.ts';
import type { DataOf, PayloadEvent, RequestedEvent, TriggeringEvent } from '../events/catalogue.ts';
import { toNewEvents, type CommandContext } from '../handle.ts';
import { triggeredRunId } from '../ids.ts';
import type { JsonObject } from '../json.ts';
import { mapInBatches } from '../map-in-batches.ts';
import { DEFAULT_NAMESPACE, namespaceField, namespaceOf } from '../namespaces/namespace.ts';
import { jsonBytes } from '../pipeline/json-size.ts';
import { streams } from '../streams.ts';
import { tryAppend } from '../try-append.ts';

/** A payload larger than this, in bytes of JSON, is stored once for all runs of its event. */
export const MAX_COPIED_BYTES = 1024;

/** How many run streams are read together. */
const BATCH = 25;

type Published = DataOf<'EventPublished'>;

/** A published event in the form that its triggered runs see. */
export function triggeringEventOf(published: Published): TriggeringEvent {
  const { event_id: id, topic, payload, source_agent_id, published_at } = published;
  return { id, topic, payload, source_agent_id, published_at };
}

/** The event of a run with its payload, whose fields keep their order. */
export function withPayload(event: RequestedEvent, payload: JsonObject): TriggeringEvent {
  const { id, topic, source_agent_id, published_at } = event;
  return { id, topic, payload, source_agent_id, published_at };
}

/**
 * The event for the requests of the runs that it triggers. A payload over {@link MAX_COPIED_BYTES} that several runs
 * need is first stored in a separate stream, and is left out of the requests. Repeating this stores nothing new, even
 * if retention has removed the payload with all its runs, because a truncated stream does not count as new.
 * @param context a context that is the same in every process that requests these runs
 * @throws EventStoreError
 */
export async function eventForRuns(
  store: EventStore,
  published: Published,
  context: CommandContext,
): Promise<RequestedEvent> {
  const whole = triggeringEventOf(published);
  const { event_id, payload, triggered_tasks } = published;
  if (triggered_tasks.length < 2 || jsonBytes(payload) <= MAX_COPIED_BYTES) return whole;
  const namespace = namespaceOf(published);
  const data = { event_id, payload, triggered_tasks, ...namespaceField(namespace) };
  const stream = streams.payload(event_id);
  const stored: PayloadEvent = { type: 'PayloadStored', data };
  const events = toNewEvents(stream, [stored], { ...context, namespace });
  await tryAppend(store, stream, events, 'none');
  const { payload: _payload, ...reference } = whole;
  return reference;
}

/**
 * Records that another run needs the payload of its event, if it is stored. Call it before the run is requested.
 * Repeating the command records nothing new.
 * @throws EventStoreError
 */
export async function referToPayload(
  store: EventStore,
  event: RequestedEvent | null,
  run: { readonly id: string; readonly namespace: string },
  context: CommandContext,
): Promise<void> {
  if (event === null || event.payload !== undefined) return;
  const { namespace } = run;
  const stream = streams.payload(event.id);
  const data = { run_id: run.id, ...namespaceField(namespace) };
  // The audit leaves this event out, because it shows the retry.
  const own = { ...context, actor: 'service', namespace };
  const referenced: PayloadEvent = { type: 'PayloadReferenced', data };
  await store.append(stream, toNewEvents(stream, [referenced], own), 'any');
}

/**
 * The stored payload of an event, and its namespace; null if the log has none.
 * @throws EventStoreError also for one that does not match its schema
 */
export async function storedPayload(
  store: Pick<EventStore, 'readStream'>,
  eventId: string,
): Promise<{ readonly payload: JsonObject; readonly namespace: string } | null> {
  const [stored] = await store.readStream(streams.payload(eventId), { limit: 1 });
  if (stored?.type !== 'PayloadStored') return null;
  const { payload, namespace = DEFAULT_NAMESPACE } = stored.data;
  return { payload: payload as JsonObject, namespace };
}

/**
 * Whether retention has removed every run that needs a stored payload. A triggered run that is not in the log yet is
 * about to be requested. A retry that is not in the log was lost in a crash, unless its reference is recent.
 * @param events of the payload's stream, which ended long ago
 * @throws EventStoreError
 */
export async function isUnneeded(
  store: Pick<EventStore, 'readStream'>,
  events: readonly RecordedEvent[],
): Promise<boolean> {
  const runs: { readonly id: string; readonly mayBeLost: boolean }[] = [];
  for (const { type, data } of events) {
    if (type === 'PayloadReferenced') runs.push({ id: data.run_id, mayBeLost: true });
    if (type !== 'PayloadStored') continue;
    for (const task of data.triggered_tasks) {
      runs.push({ id: triggeredRunId(task, data.event_id), mayBeLost: false });
    }
  }
  for (let from = 0; from < runs.length; from += BATCH) {
    const some = runs.slice(from, from + BATCH);
    const gone = await mapInBatches(some, BATCH, ({ id, mayBeLost }) =>
      isRemoved(store, id, mayBeLost),
    );
    if (gone.includes(false)) return false;
  }
  return true;
}

async function isRemoved(
  store: Pick<EventStore, 'readStream'>,
  runId: string,
  ifMissing: boolean,
): Promise<boolean> {
  const options = { direction: 'backwards', limit: 1, faulty: true } as const;
  const [last] = await store.readStream(streams.run(runId), options);
  return last === undefined ? ifMissing : last.type === 'RunRemoved';
}
