import { fromIso } from '../../domain/clock.ts';
import { BEGINNING, type Position, type RecordedEvent } from '../../domain/event-store.ts';
import { RefusalError } from '../../domain/errors.ts';
import type { CommandContext } from '../../domain/handle.ts';
import { idOf } from '../../domain/streams.ts';
import { scheduleWebhookCommand } from '../../domain/webhooks/webhook-commands.ts';
import { isNotifiable, webhookMessageOf } from '../../domain/webhooks/webhook-messages.ts';
import { DELIVERY_LIFETIME, webhookDeliveryId } from '../../domain/webhooks/webhook.ts';
import { loadView } from '../../projections/reading/load-view.ts';
import {
  pendingWebhooks,
  webhookDueAt,
  webhooksProjection,
} from '../../projections/views/webhooks.ts';
import type { ProcessParts } from '../process-parts.ts';
import { LogCheckpoint } from '../processes/log-checkpoint.ts';
import { WebhookDeliveries, type SendingParts } from './webhook-deliveries.ts';
import { WebhookRegistry } from './webhook-registry.ts';

/** The message that reports a failure. */
const NOT_SAVED = 'could not save the checkpoint of webhooks';

/**
 * The name of the checkpoint up to which every delivery is scheduled, and the interval at which it is written.
 * Milliseconds.
 */
const CHECKPOINT = 'webhooks-scheduled';
const SAVE_INTERVAL = 1000;

const CONCURRENCY = 64;

const MAX_CACHED_OWNERS = 100_000;

const idlePrefixes = ['agent-', 'webhook-'] as const;
const allPrefixes = [...idlePrefixes, 'run-', 'task-'] as const;

/**
 * Notifies agents' webhooks of events of their tasks. The leader follows the log from a checkpoint and schedules a
 * delivery for each such event. The delivery's stream then holds the message. A lost checkpoint only costs reading
 * again, because a delivery's id comes from the event and the agent. Events older than a day are not sent.
 *
 * While no agent has a webhook, it does not follow runs and tasks.
 */
export class Webhooks {
  readonly deliveries: WebhookDeliveries;
  readonly #options: ProcessParts & SendingParts;
  readonly #agents: WebhookRegistry;
  /** By task; null if the task does not exist. */
  readonly #owners = new Map<string, string | null>();
  readonly #checkpoint: LogCheckpoint;
  #done: Position = BEGINNING;
  #saved: Position = BEGINNING;

  constructor(options: ProcessParts & SendingParts) {
    this.#options = options;
    this.#checkpoint = new LogCheckpoint(options.coordination, options.store, CHECKPOINT);
    this.#agents = new WebhookRegistry(options.store, options.readModel);
    this.deliveries = new WebhookDeliveries({ ...options, agents: this.#agents });
  }

  /** Works whenever this process is the leader, until the signal is aborted. */
  async follow(signal: AbortSignal): Promise<void> {
    const { leadership } = this.#options;
    while (!signal.aborted) {
      await leadership.untilLeading(signal);
      if (!signal.aborted) {
        await leadership.whileLeading(signal, (ending) => this.#lead(ending.signal));
      }
    }
  }

  async #lead(signal: AbortSignal): Promise<void> {
    const { store, readModel } = this.#options;
    this.#owners.clear();
    const ended = new AbortController();
    const until = AbortSignal.any([signal, ended.signal]);
    this.deliveries.start();
    let saving: Promise<void> = Promise.resolve();
    try {
      const agentsAt = await this.#agents.load();
      const deliveriesAt = await loadView(
        { store, readModel },
        webhooksProjection,
        pendingWebhooks,
        (document) => this.deliveries.note(document.id, document.agent_id, webhookDueAt(document)),
      );
      const from = await this.#checkpoint.load();
      await this.#catchUp(agentsAt < deliveriesAt ? agentsAt : deliveriesAt, from, until);
      this.#done = this.#saved = from;
      saving = this.#saveRegularly(until);
      await this.#listen(signal);
    } finally {
      ended.abort();
      await saving;
      await this.deliveries.stop();
    }
  }

  /** Takes the events of agents and deliveries that the views lack, up to the checkpoint. */
  async #catchUp(after: Position, to: Position, signal: AbortSignal): Promise<void> {
    if (after >= to) return;
    const from = { after, prefixes: idlePrefixes, signal };
    for await (const message of this.#options.store.subscribe(from)) {
      if (message.kind === 'caught-up') return;
      for (const event of message.events) await this.#takeOwn(event);
    }
  }

  async #listen(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      const isActive = this.#isActive;
      const prefixes = isActive ? allPrefixes : idlePrefixes;
      const from = { after: this.#done, prefixes, signal };
      for await (const message of this.#options.store.subscribe(from)) {
        // Events of other prefixes are missing in this message, so the position does not change.
        if (this.#isActive !== isActive) break;
        if (message.kind === 'events') await this.#takeAll(message.events, isActive);
        else this.#done = message.position;
        if (this.#isActive !== isActive) break;
      }
      // A subscription does not end by itself.
      if (this.#isActive === isActive && !signal.aborted) {
        throw new Error('the subscription to the event log has ended');
      }
    }
  }

  get #isActive(): boolean {
    return this.#agents.size > 0;
  }

  /** Takes events up to one that changes which prefixes are followed; later ones are read again. */
  async #takeAll(events: readonly RecordedEvent[], isActive: boolean): Promise<void> {
    let pending: Promise<void>[] = [];
    let reached = this.#done;
    this.#checkpoint.observe(events);
    for (const event of events) {
      if (this.#isActive !== isActive) break;
      if (event.fault !== undefined) this.#reportFault(event);
      else if (isNotifiable(event)) {
        const notified = this.#notify(event);
        if (notified !== null) {
          // Awaited below, unless an earlier error comes first.
          notified.catch(() => {});
          pending.push(notified);
        }
      } else if (event.stream.startsWith('task-')) this.#noteOwner(event);
      else if (!event.stream.startsWith('run-')) await this.#takeOwn(event);
      reached = event.position;
      if (pending.length >= CONCURRENCY) {
        await Promise.all(pending);
        pending = [];
      }
    }
    await Promise.all(pending);
    this.#done = reached;
  }

  #reportFault({ stream, revision, fault }: RecordedEvent): void {
    const fields = { stream, revision, fault };
    this.#options.telemetry.log.error('an event for webhooks does not match its schema', fields);
  }

  async #takeOwn(event: RecordedEvent): Promise<void> {
    if (event.fault !== undefined) return this.#reportFault(event);
    if (event.stream.startsWith('agent-')) return this.#agents.take(event);
    const id = idOf(event.stream);
    const at = fromIso(event.metadata.occurredAt);
    if (event.type === 'WebhookScheduled') this.deliveries.note(id, event.data.agent_id, at);
    if (event.type === 'WebhookRepeated') await this.deliveries.noteRetry(id, at);
    if (event.type === 'WebhookFailed' && event.data.retry_at !== null) {
      await this.deliveries.noteRetry(id, fromIso(event.data.retry_at));
    }
  }

  #noteOwner(event: RecordedEvent): void {
    const id = idOf(event.stream);
    if (event.type === 'TaskCreated') this.#cacheOwner(id, event.data.definition.created_by);
    const owner = event.type === 'TaskUpdated' ? event.data.changes.created_by : undefined;
    if (owner !== undefined) this.#cacheOwner(id, owner);
  }

  #cacheOwner(taskId: string, owner: string | null): void {
    this.#owners.set(taskId, owner);
    if (this.#owners.size <= MAX_CACHED_OWNERS) return;
    const [oldest] = this.#owners.keys();
    if (oldest !== undefined) this.#owners.delete(oldest);
  }

  /** Schedules the delivery of an event; null if there is nothing to wait for. */
  #notify(event: RecordedEvent): Promise<void> | null {
    const taskId = taskOf(event);
    if (taskId === null) return null;
    const owner = this.#owners.get(taskId);
    if (owner === undefined) return this.#notifyUnknown(event, taskId);
    if (owner === null || this.#agents.get(owner) === undefined) return null;
    return this.#schedule(event, owner);
  }

  async #notifyUnknown(event: RecordedEvent, taskId: string): Promise<void> {
    const owner = await this.#readOwner(taskId);
    this.#cacheOwner(taskId, owner);
    if (owner !== null) await this.#schedule(event, owner);
  }

  async #readOwner(taskId: string): Promise<string | null> {
    try {
      return (await this.#options.tasks.latest(taskId)).definition.created_by;
    } catch (error) {
      if (error instanceof RefusalError && error.code === 'NOT_FOUND') return null;
      throw error;
    }
  }

  async #schedule(event: RecordedEvent, agentId: string): Promise<void> {
    const { store, clock, name: source } = this.#options;
    const webhook = this.#agents.get(agentId);
    if (webhook === undefined || event.position <= webhook.since) return;
    const now = clock.now();
    if (fromIso(event.metadata.occurredAt) < now - DELIVERY_LIFETIME) return;
    const message = webhookMessageOf(event);
    if (message === null) return;
    const id = webhookDeliveryId(event.id, agentId);
    const { $correlationId: correlationId, traceparent } = event.metadata;
    const cause = { correlationId, causationId: event.id, traceparent };
    const context: CommandContext = { commandId: id, actor: 'service', source, ...cause, now };
    await scheduleWebhookCommand(store, id, agentId, message, context);
  }

  async #saveRegularly(signal: AbortSignal): Promise<void> {
    const { clock, leadership, telemetry } = this.#options;
    while (!signal.aborted) {
      await clock.sleep(SAVE_INTERVAL, signal).catch(() => {});
      const reached = this.#done;
      if (reached <= this.#saved) continue;
      try {
        await this.#checkpoint.save(reached, leadership.fence);
        this.#saved = reached;
        telemetry.failures.worked(NOT_SAVED);
      } catch (error) {
        telemetry.failures.failed(NOT_SAVED, error);
      }
    }
  }
}

/** The task of a notifiable event. */
function taskOf(event: RecordedEvent): string | null {
  if (event.type === 'RunSucceeded' || event.type === 'RunFailed') return event.data.task_id;
  return event.type === 'TaskPaused' && event.data.by_failures ? idOf(event.stream) : null;
}
