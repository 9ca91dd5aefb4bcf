import { toIso } from '../clock.ts';
import { RefusalError } from '../errors.ts';
import type { EventStore, Position } from '../event-store.ts';
import type { TriggeringEvent } from '../events/catalogue.ts';
import { toNewEvents, type CommandContext } from '../handle.ts';
import { nameBasedId } from '../ids.ts';
import { DEFAULT_NAMESPACE, namespaceField } from '../namespaces/namespace.ts';
import { streams } from '../streams.ts';
import { MAX_TRIGGERED, streamIdOf } from './topic.ts';

/** The result that the publisher of an event receives. */
export interface Published {
  readonly event_id: string;
  readonly stream_id: string;
  readonly topic: string;
  readonly triggered_tasks: readonly string[];
  readonly published_at: string;
  readonly position: Position;
}

/**
 * Publishes an event with one append to its topic's stream, which names the tasks that it triggers. Their runs are
 * requested from there. Repeating the command publishes nothing new.
 * @throws RefusalError `STATE_CONFLICT` when it would trigger more than {@link MAX_TRIGGERED} tasks
 */
export async function publishEvent(
  store: EventStore,
  event: Pick<TriggeringEvent, 'topic' | 'payload' | 'source_agent_id'>,
  triggeredTasks: readonly string[],
  context: CommandContext,
  namespace = DEFAULT_NAMESPACE,
): Promise<Published> {
  const triggered = triggeredTasks.length;
  if (triggered > MAX_TRIGGERED) {
    const message = `the event would trigger ${triggered} tasks; the limit is ${MAX_TRIGGERED}`;
    throw new RefusalError('STATE_CONFLICT', message, { triggered, limit: MAX_TRIGGERED });
  }
  const event_id = nameBasedId('published', context.commandId);
  const published_at = toIso(context.now);
  const { topic } = event;
  const place = { event_id, published_at, ...namespaceField(namespace) };
  const data = { ...event, ...place, triggered_tasks: [...triggeredTasks] };
  const stream = streams.topic(namespace, topic);
  const events = toNewEvents(stream, [{ type: 'EventPublished', data }], context);
  const { revision, position, duplicate } = await store.append(stream, events, 'any');
  // For a repeated command, the event of the first publication counts, with its time and tasks.
  const [known] = duplicate ? await store.readStream(stream, { from: revision, limit: 1 }) : [];
  const published = known?.type === 'EventPublished' ? known.data : data;
  return {
    event_id,
    stream_id: streamIdOf(published.published_at, revision),
    topic,
    triggered_tasks: published.triggered_tasks,
    published_at: published.published_at,
    position,
  };
}
