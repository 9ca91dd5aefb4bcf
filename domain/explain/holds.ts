import { fromIso, type Instant } from '../clock.ts';
import type { EventStore, RecordedEvent } from '../event-store.ts';
import { streams } from '../streams.ts';
import type { MisfirePolicy } from '../vocabulary.ts';
import type { ExplainContext } from './explain-context.ts';
import type { Note, RecordOf } from './explanation.ts';
import type { Words } from './words.ts';

/** How many orders are read, starting with the newest. There are few, because operators rarely hold a service. */
const MAX_ORDERS = 1000;

/** A hold on the whole service, during which nothing fires and no run starts. */
interface Hold {
  readonly held: RecordOf<'OperationsHeld'>;
  /** null while it lasts. */
  readonly released: RecordOf<'OperationsReleased'> | null;
}

/** Orders for the whole service, the newest first. */
export function readOrders(store: EventStore): Promise<readonly RecordedEvent[]> {
  return store.readStream(streams.operations(), { direction: 'backwards', limit: MAX_ORDERS });
}

/** The events that disabled and enabled the task's agent, newest first. */
export async function readDisablings(
  store: EventStore,
  agentId: string,
): Promise<readonly RecordedEvent[]> {
  const newest = { direction: 'backwards', limit: MAX_ORDERS } as const;
  const events = await store.readStream(streams.agent(agentId), newest);
  return events.filter(({ type }) => type === 'AgentDisabled' || type === 'AgentEnabled');
}

/** The reason, other than a pause, why fires did not run in time: a hold on the whole service, or a disabled agent. */
export interface Stop {
  /** A clause: `the service was on hold`. */
  readonly why: string;
  /** The policy for missed fires that its end set; null: each task's own policy applies. */
  readonly missed: MisfirePolicy | null;
  /** The action that set that policy: `the release of the hold`. */
  readonly end: string;
  /** The event that ends it: `the service is released`. */
  readonly until: string;
  /** Names the agent that started it, and the agent that ended it. */
  readonly note: Note;
}

type Stops = Pick<ExplainContext, 'orders' | 'disablings' | 'words'>;

/**
 * The last hold in force at any time of a span (inclusive). Without one, the last disabling of the agent in force then.
 */
export function stopWithin(context: Stops, start: Instant, end: Instant): Stop | null {
  const hold = holdWithin(context.orders, start, end);
  return hold === null ? disablingWithin(context, start, end) : stopOfHold(hold, context.words);
}

function stopOfHold({ held, released }: Hold, words: Words): Stop {
  const sentences = [words.act(held, 'put the service on hold')];
  if (released !== null) sentences.push(words.act(released, 'released it'));
  return {
    why: 'the service was on hold',
    missed: released?.data.missed ?? null,
    end: 'the release of the hold',
    until: 'the service is released',
    note: { sentences, evidence: [held, released] },
  };
}

function disablingWithin({ disablings, words }: Stops, start: Instant, end: Instant): Stop | null {
  let enabled: RecordOf<'AgentEnabled'> | null = null;
  for (const event of disablings) {
    const at = fromIso(event.metadata.occurredAt);
    if (event.type === 'AgentEnabled') {
      if (at < start) return null;
      enabled = event;
    } else if (event.type === 'AgentDisabled') {
      if (at <= end) return stopOfDisabling(event, enabled, words);
      enabled = null;
    }
  }
  return null;
}

function stopOfDisabling(
  disabled: RecordOf<'AgentDisabled'>,
  enabled: RecordOf<'AgentEnabled'> | null,
  words: Words,
): Stop {
  const sentences = [words.act(disabled, "disabled the task's agent")];
  if (enabled !== null) sentences.push(words.act(enabled, 'enabled it'));
  return {
    why: 'its agent was disabled',
    missed: enabled?.data.missed ?? null,
    end: 'the enabling of the agent',
    until: 'the agent is enabled',
    note: { sentences, evidence: [disabled, enabled] },
  };
}

/** The last hold in force at any time of a span (inclusive). @param orders the newest first */
function holdWithin(orders: readonly RecordedEvent[], start: Instant, end: Instant): Hold | null {
  let released: Hold['released'] = null;
  for (const order of orders) {
    const at = fromIso(order.metadata.occurredAt);
    if (order.type === 'OperationsReleased') {
      if (at < start) return null;
      released = order;
    } else if (order.type === 'OperationsHeld') {
      if (at <= end) return { held: order, released };
      released = null;
    }
  }
  return null;
}
