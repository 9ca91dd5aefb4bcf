import { fromIso, type Clock } from '../../domain/clock.ts';
import {
  BEGINNING,
  type EventStore,
  type Position,
  type RecordedEvent,
} from '../../domain/event-store.ts';
import { Refusal } from '../../domain/errors.ts';
import type { CommandContext } from '../../domain/handle.ts';
import { idOf } from '../../domain/streams.ts';
import { scheduleWebhookCommand } from '../../domain/webhooks/webhook-commands.ts';
import { isTold, messageOf } from '../../domain/webhooks/webhook-messages.ts';
import { WEBHOOK_LIFE, webhookDeliveryId } from '../../domain/webhooks/webhook.ts';
import type { Telemetry } from '../../observability/telemetry.ts';
import { loadView } from '../../projections/reading/load-view.ts';
import type { ReadModel } from '../../projections/read-model.ts';
import {
  pendingWebhooks,
  webhookDueAt,
  webhooksProjection,
} from '../../projections/views/webhooks.ts';
import type { Coordination } from '../coordination.ts';
import type { Leadership } from '../processes/leadership.ts';
import type { PinnedTasks } from '../pinned-tasks.ts';
import { RememberedPosition } from '../processes/remembered-position.ts';
import { WebhookAgents } from './webhook-agents.ts';
import { WebhookDeliveries } from './webhook-deliveries.ts';
import type { WebhookSender } from './webhook-sender.ts';

/** Name under which it remembers up to where every delivery is scheduled. */
const CHECKPOINT = 'webhooks-scheduled';

/** How often that is written. Milliseconds. */
const SAVE_EVERY = 1000;

/** Deliveries that are scheduled side by side. */
const SIDE_BY_SIDE = 64;

/** Owners of tasks that are kept in memory. */
const MOST_OWNERS = 100_000;

const always = ['agent-', 'webhook-'] as const;
const told = ['run-', 'task-'] as const;

/**
 * Tells agents' webhooks what happens to their tasks. The process that leads follows the log from a remembered place
 * and appends a delivery for each event that is to be told; what is to be sent is then read from the deliveries
 * themselves. Losing the place costs reading again: a delivery's id comes from the event and the agent, so the same one
 * is scheduled again, which changes nothing. What is older than a day is told no more.
 *
 * While no agent has a webhook it hears nothing of runs and tasks.
 */
export class Webhooks {
  readonly deliveries: WebhookDeliveries;
  private readonly options: ConstructorParameters<typeof Webhooks>[0];
  private readonly agents: WebhookAgents;
  /** Of tasks; null where there is none. */
  private readonly owners = new Map<string, string | null>();
  private done: Position = BEGINNING;
  private saved: Position = BEGINNING;
  private readonly place: RememberedPosition;

  constructor(options: {
    readonly store: EventStore;
    readonly readModel: ReadModel;
    readonly coordination: Coordination;
    readonly clock: Clock;
    readonly leadership: Leadership;
    readonly telemetry: Telemetry;
    readonly tasks: PinnedTasks;
    readonly sender: WebhookSender;
    /** The secret of an agent, by its version. */
    readonly secretOf: (agentId: string, version: number) => string;
    /** Of this process, in the metadata. */
    readonly name: string;
  }) {
    this.options = options;
    this.place = new RememberedPosition(options.coordination, options.store, CHECKPOINT);
    this.agents = new WebhookAgents(options.store, options.readModel);
    this.deliveries = new WebhookDeliveries({ ...options, agents: this.agents });
  }

  /** Leads whenever this process does, until the signal is aborted. */
  async follow(signal: AbortSignal): Promise<void> {
    const { leadership } = this.options;
    while (!signal.aborted) {
      await leadership.untilLeading(signal);
      if (!signal.aborted) {
        await leadership.whileLeading(signal, (ending) => this.lead(ending.signal));
      }
    }
  }

  private async lead(signal: AbortSignal): Promise<void> {
    const { store, readModel } = this.options;
    this.owners.clear();
    const ended = new AbortController();
    const until = AbortSignal.any([signal, ended.signal]);
    this.deliveries.start();
    let saving: Promise<void> = Promise.resolve();
    try {
      const agentsAt = await this.agents.load();
      const deliveriesAt = await loadView(
        { store, readModel },
        webhooksProjection,
        pendingWebhooks,
        (document) => this.deliveries.note(document.id, document.agent_id, webhookDueAt(document)),
      );
      const from = await this.place.recall();
      await this.catchUp(agentsAt < deliveriesAt ? agentsAt : deliveriesAt, from, until);
      this.done = this.saved = from;
      saving = this.keepSaving(until);
      await this.listen(signal);
    } finally {
      ended.abort();
      await saving;
      await this.deliveries.stop();
    }
  }

  /** What the views lack of agents and deliveries before the place from which on all is heard. */
  private async catchUp(after: Position, to: Position, signal: AbortSignal): Promise<void> {
    if (after >= to) return;
    const { store } = this.options;
    for await (const message of store.subscribe({ after, prefixes: always, signal })) {
      if (message.kind === 'caught-up') return;
      for (const event of message.events) await this.takeOwn(event);
    }
  }

  private async listen(signal: AbortSignal): Promise<void> {
    const { store } = this.options;
    while (!signal.aborted) {
      const { hears } = this;
      const prefixes = hears ? [...always, ...told] : always;
      for await (const message of store.subscribe({ after: this.done, prefixes, signal })) {
        // What was not asked for does not come: the place stays where it is.
        if (this.hears !== hears) break;
        if (message.kind === 'events') await this.takeAll(message.events, hears);
        else this.done = message.position;
        if (this.hears !== hears) break;
      }
      // It never ends by itself: what is not an end that was asked for is one.
      if (this.hears === hears && !signal.aborted) {
        throw new Error('the log could not be followed any further');
      }
    }
  }

  /** Whether there is anybody to tell. */
  private get hears(): boolean {
    return this.agents.size > 0;
  }

  /** Takes events up to one that changes what is to be heard: what stands behind it is heard anew. */
  private async takeAll(events: readonly RecordedEvent[], hears: boolean): Promise<void> {
    let telling: Promise<void>[] = [];
    let reached = this.done;
    this.place.came(events);
    for (const event of events) {
      if (this.hears !== hears) break;
      if (event.fault !== undefined) this.reportFault(event);
      else if (isTold(event)) {
        const asked = this.tell(event);
        if (asked !== null) {
          // Waited for below, unless another fault comes first: then nobody hears of this one.
          asked.catch(() => {});
          telling.push(asked);
        }
      } else if (event.stream.startsWith('task-')) this.noteOwner(event);
      else if (!event.stream.startsWith('run-')) await this.takeOwn(event);
      reached = event.position;
      if (telling.length >= SIDE_BY_SIDE) {
        await Promise.all(telling);
        telling = [];
      }
    }
    await Promise.all(telling);
    this.done = reached;
  }

  private reportFault({ stream, revision, fault }: RecordedEvent): void {
    const fields = { stream, revision, fault };
    this.options.telemetry.log.error('an event that webhooks may tell of is broken', fields);
  }

  /** Takes an event of an agent or a delivery. */
  private async takeOwn(event: RecordedEvent): Promise<void> {
    const { deliveries } = this;
    if (event.fault !== undefined) return this.reportFault(event);
    if (event.stream.startsWith('agent-')) return this.agents.take(event);
    const id = idOf(event.stream);
    switch (event.type) {
      case 'WebhookScheduled':
        return deliveries.note(id, event.data.agent_id, fromIso(event.metadata.occurredAt));
      case 'WebhookRepeated':
        return deliveries.noteRetry(id, fromIso(event.metadata.occurredAt));
      case 'WebhookFailed':
        if (event.data.retry_at === null) return;
        return deliveries.noteRetry(id, fromIso(event.data.retry_at));
      default:
        return;
    }
  }

  private noteOwner(event: RecordedEvent): void {
    const owner =
      event.type === 'TaskCreated'
        ? event.data.definition.created_by
        : event.type === 'TaskUpdated'
          ? event.data.changes.created_by
          : undefined;
    if (owner !== undefined) this.keepOwner(idOf(event.stream), owner);
  }

  private keepOwner(taskId: string, owner: string | null): void {
    this.owners.set(taskId, owner);
    if (this.owners.size <= MOST_OWNERS) return;
    const [oldest] = this.owners.keys();
    if (oldest !== undefined) this.owners.delete(oldest);
  }

  /** Schedules what has to be told of an event; null where that is nothing, and nothing had to be waited for. */
  private tell(event: RecordedEvent): Promise<void> | null {
    const taskId = taskOf(event);
    if (taskId === null) return null;
    const owner = this.owners.get(taskId);
    if (owner === undefined) return this.tellUnknown(event, taskId);
    if (owner === null || this.agents.get(owner) === undefined) return null;
    return this.schedule(event, owner);
  }

  private async tellUnknown(event: RecordedEvent, taskId: string): Promise<void> {
    const owner = await this.ownerOf(taskId);
    this.keepOwner(taskId, owner);
    if (owner !== null) await this.schedule(event, owner);
  }

  private async ownerOf(taskId: string): Promise<string | null> {
    try {
      return (await this.options.tasks.latest(taskId)).definition.created_by;
    } catch (error) {
      if (error instanceof Refusal && error.code === 'NOT_FOUND') return null;
      throw error;
    }
  }

  private async schedule(event: RecordedEvent, agentId: string): Promise<void> {
    const { store, clock, name: source } = this.options;
    const webhook = this.agents.get(agentId);
    if (webhook === undefined || event.position <= webhook.since) return;
    const now = clock.now();
    if (fromIso(event.metadata.occurredAt) < now - WEBHOOK_LIFE) return;
    const message = messageOf(event);
    if (message === null) return;
    const id = webhookDeliveryId(event.id, agentId);
    const { $correlationId: correlationId, traceparent } = event.metadata;
    const cause = { correlationId, causationId: event.id, traceparent };
    const context: CommandContext = { commandId: id, actor: 'service', source, ...cause, now };
    await scheduleWebhookCommand(store, id, agentId, message, context);
  }

  private async keepSaving(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await this.options.clock.sleep(SAVE_EVERY, signal).catch(() => {});
      await this.save();
    }
  }

  private async save(): Promise<void> {
    const { leadership, telemetry } = this.options;
    const reached = this.done;
    if (reached <= this.saved) return;
    try {
      await this.place.remember(reached, leadership.fence);
      this.saved = reached;
    } catch (error) {
      telemetry.log.warn('could not remember up to where webhooks are told', { error });
    }
  }
}

/** Of an event that is told: which task it is about. */
function taskOf(event: RecordedEvent): string | null {
  if (event.type === 'RunSucceeded' || event.type === 'RunFailed') return event.data.task_id;
  return event.type === 'TaskPaused' && event.data.by_failures ? idOf(event.stream) : null;
}
