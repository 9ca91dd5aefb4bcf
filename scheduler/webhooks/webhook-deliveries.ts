import { fromIso, type Cancel, type Instant } from '../../domain/clock.ts';
import { isConflict, type ExpectedRevision } from '../../domain/event-store.ts';
import { load, toNewEvents, type CommandContext } from '../../domain/handle.ts';
import { newId } from '../../domain/ids.ts';
import type { SecretAccess } from '../../domain/secrets/secret-access.ts';
import { streams } from '../../domain/streams.ts';
import {
  recordAttempt,
  webhookFold,
  type AttemptResult,
  type KnownWebhook,
} from '../../domain/webhooks/webhook.ts';
import { removeWebhookUrl } from '../../domain/webhooks/webhook-commands.ts';
import type { Span } from '../../observability/telemetry.ts';
import { Heap } from '../heap.ts';
import type { ProcessParts } from '../process-parts.ts';
import { traceDelivery } from '../tracing.ts';
import { addressOf } from './webhook-address.ts';
import { signingVersions, type WebhookRegistry } from './webhook-registry.ts';
import type { WebhookSender } from './webhook-sender.ts';

/** The messages that report failures. */
const NOT_ATTEMPTED = 'could not attempt a webhook delivery; retrying';
const NOT_RECORDED = 'could not record a webhook attempt; retrying';

/** Concurrent attempts, in all and per agent: a slow receiver only delays its own messages. */
const MAX_ATTEMPTS = 32;
const MAX_ATTEMPTS_PER_AGENT = 4;

/** Pause after an error of this process, for example an unavailable log. Milliseconds. */
const RETRY_PAUSE = 1000;

export interface SendingParts {
  readonly sender: WebhookSender;
  /** A version of an agent's secret. */
  readonly secretOf: (agentId: string, version: number) => string;
  /** The secrets in addresses. */
  readonly secrets: Pick<SecretAccess, 'open'>;
}

/** A pending delivery. */
interface Entry {
  readonly id: string;
  readonly agentId: string;
  readonly dueAt: Instant;
  isBusy: boolean;
  /** An event of the delivery arrived while an attempt was running. */
  again: boolean;
}

/**
 * Attempts the pending deliveries when they are due. The entries in memory are reminders: each attempt begins by
 * reading the delivery's stream, and is recorded with the revision expected. After a crash between sending and
 * recording, the message is sent again with the same id.
 */
export class WebhookDeliveries {
  readonly #options: ConstructorParameters<typeof WebhookDeliveries>[0];
  readonly #entries = new Map<string, Entry>();
  readonly #timetable = new Heap<Entry>((a, b) => a.dueAt < b.dueAt);
  readonly #due = new Map<string, Entry[]>();
  /** Number of attempts by agent. */
  readonly #busy = new Map<string, number>();
  readonly #attempts = new Set<Promise<void>>();
  #cancelTimer: Cancel = () => {};
  #timerAt: Instant = Number.POSITIVE_INFINITY;
  #ended: AbortController | null = null;

  constructor(
    options: Pick<ProcessParts, 'store' | 'clock' | 'telemetry' | 'name'> &
      SendingParts & { readonly agents: WebhookRegistry },
  ) {
    this.#options = options;
  }

  /** Number of pending deliveries, as far as is known here. */
  get size(): number {
    return this.#entries.size;
  }

  /** Starts making deliveries. */
  start(): void {
    this.#ended = new AbortController();
    this.#startDue();
  }

  /** Stops, and forgets all entries. */
  async stop(): Promise<void> {
    this.#ended?.abort();
    this.#ended = null;
    this.#setTimer(Number.POSITIVE_INFINITY);
    await Promise.all(this.#attempts);
    this.#entries.clear();
    this.#due.clear();
    this.#timetable.retain(() => false);
  }

  /** A delivery is pending, or its time has changed. */
  note(id: string, agentId: string, dueAt: Instant): void {
    const known = this.#entries.get(id);
    if (known?.isBusy === true) {
      known.again = true;
    } else if (known?.dueAt !== dueAt) {
      // An older entry, in the timetable or among the due entries, becomes void.
      const entry: Entry = { id, agentId, dueAt, isBusy: false, again: false };
      this.#entries.set(id, entry);
      this.#timetable.push(entry);
      this.#startDue();
    }
  }

  /** A delivery has to be tried again. */
  async noteRetry(id: string, dueAt: Instant): Promise<void> {
    const known = this.#entries.get(id);
    if (known !== undefined) return this.note(id, known.agentId, dueAt);
    const { state } = await load(this.#options.store, streams.webhook(id), webhookFold);
    if (state.state === 'pending') this.note(id, state.scheduled.agent_id, state.dueAt);
  }

  #startDue(): void {
    if (this.#ended === null) return;
    const now = this.#options.clock.now();
    for (let next = this.#timetable.peek(); next !== undefined; next = this.#timetable.peek()) {
      if (this.#entries.get(next.id) === next) {
        if (next.dueAt > now) break;
        const due = this.#due.get(next.agentId) ?? [];
        due.push(next);
        this.#due.set(next.agentId, due);
      }
      this.#timetable.pop();
    }
    this.#setTimer(this.#timetable.peek()?.dueAt ?? Number.POSITIVE_INFINITY);
    for (const [agentId, due] of [...this.#due]) {
      while (this.#hasRoomFor(agentId)) {
        const entry = due.shift();
        if (entry === undefined) break;
        if (this.#entries.get(entry.id) === entry) this.#attempt(entry, this.#ended);
      }
      this.#due.delete(agentId);
      // The agent goes to the end, so that each agent has its turn.
      if (due.length > 0) this.#due.set(agentId, due);
    }
  }

  #hasRoomFor(agentId: string): boolean {
    const attempts = this.#busy.get(agentId) ?? 0;
    return this.#attempts.size < MAX_ATTEMPTS && attempts < MAX_ATTEMPTS_PER_AGENT;
  }

  #setTimer(at: Instant): void {
    if (at === this.#timerAt) return;
    this.#cancelTimer();
    this.#cancelTimer = () => {};
    this.#timerAt = at;
    if (at === Number.POSITIVE_INFINITY) return;
    this.#cancelTimer = this.#options.clock.at(at, () => {
      this.#timerAt = Number.POSITIVE_INFINITY;
      this.#startDue();
    });
  }

  #attempt(entry: Entry, { signal }: AbortController): void {
    const { agentId } = entry;
    entry.isBusy = true;
    this.#busy.set(agentId, (this.#busy.get(agentId) ?? 0) + 1);
    const attempt = this.#tryDeliver(entry, signal).finally(() => {
      this.#attempts.delete(attempt);
      const left = (this.#busy.get(agentId) ?? 1) - 1;
      if (left === 0) this.#busy.delete(agentId);
      else this.#busy.set(agentId, left);
      if (!signal.aborted) this.#startDue();
    });
    this.#attempts.add(attempt);
  }

  /** Never rejects: after an error of this process it tries again, after a pause. */
  async #tryDeliver(entry: Entry, signal: AbortSignal): Promise<void> {
    const { clock, telemetry } = this.#options;
    const { id, agentId } = entry;
    let next: Instant | null;
    try {
      next = await this.#deliverIfDue(id, signal);
      telemetry.failures.worked(NOT_ATTEMPTED);
    } catch (error) {
      if (signal.aborted) return;
      telemetry.failures.failed(NOT_ATTEMPTED, error, { delivery: id });
      next = clock.now() + RETRY_PAUSE;
    }
    if (signal.aborted) return;
    this.#entries.delete(id);
    if (next !== null) this.note(id, agentId, next);
    // The delivery may have been repeated in the meantime.
    else if (entry.again) this.note(id, agentId, clock.now());
  }

  /** Makes one attempt, if it is due. @returns when the next attempt is due; null for none */
  async #deliverIfDue(id: string, signal: AbortSignal): Promise<Instant | null> {
    const { store, clock, telemetry } = this.#options;
    const { state, revision } = await load(store, streams.webhook(id), webhookFold);
    if (state.state !== 'pending') return null;
    if (state.dueAt > clock.now()) return state.dueAt;
    const { traces } = telemetry;
    if (traces === undefined) return this.#deliver(id, state, revision, signal);
    const about = { id, agentId: state.scheduled.agent_id, attempt: state.attempts + 1 };
    return traceDelivery(traces, store, about, (span) =>
      this.#deliver(id, state, revision, signal, span),
    );
  }

  /** @returns when the next attempt is due; null for none */
  async #deliver(
    id: string,
    state: KnownWebhook,
    revision: ExpectedRevision,
    signal: AbortSignal,
    span?: Span,
  ): Promise<Instant | null> {
    const { store, clock, telemetry, name: source } = this.#options;
    const result = await this.#send(id, state, signal, span);
    const now = clock.now();
    telemetry.observe('webhook_delivery_seconds', result.took / 1000);
    const events = recordAttempt(id, state, result, now);
    const ids = { commandId: newId(now), correlationId: id, traceparent: span?.traceparent };
    const context: CommandContext = { ...ids, actor: 'service', source, now };
    const stream = streams.webhook(id);
    const appended = toNewEvents(stream, events, context);
    for (;;) {
      try {
        await store.append(stream, appended, revision);
        telemetry.failures.worked(NOT_RECORDED);
        break;
      } catch (error) {
        // Another process has recorded an attempt, which counts.
        if (isConflict(error)) return now;
        telemetry.failures.failed(NOT_RECORDED, error, { delivery: id });
        await clock.sleep(RETRY_PAUSE, signal);
      }
    }
    const [event] = events;
    const failed = event?.type === 'WebhookFailed' ? event.data : null;
    const outcome = failed === null ? 'delivered' : failed.end === null ? 'retried' : 'failed';
    telemetry.count('webhook_deliveries_total', { outcome });
    if (failed === null) return null;
    span?.fail('not_delivered', failed.error);
    if (failed.end === 'gone' && failed.url !== null) {
      const reason = 'its webhook answered 410 Gone';
      const { agent_id } = state.scheduled;
      await removeWebhookUrl(store, agent_id, failed.url, { ...context, reason });
    }
    return failed.retry_at === null ? null : fromIso(failed.retry_at);
  }

  async #send(
    id: string,
    { scheduled }: KnownWebhook,
    signal: AbortSignal,
    span: Span | undefined,
  ): Promise<AttemptResult> {
    const { agents, sender, clock, secretOf } = this.#options;
    const { agent_id: agentId, payload, task_id: taskId, run_id: runId } = scheduled;
    const webhook = await agents.find(agentId);
    if (webhook === undefined) {
      const nothing = { url: null, secretVersion: 0, status: null, answer: null, took: 0 };
      const error = 'the agent no longer has a webhook_url';
      return { ...nothing, retryAfter: undefined, error, end: 'no_url' };
    }
    const begun = clock.steady();
    const { url, namespace, secretVersion } = webhook;
    const user = { namespace, agentId, taskId, runId, step: null };
    const address = await addressOf(url, this.#options.secrets, user);
    const tookUntilNow = (): number => Math.round(clock.steady() - begun);
    if ('error' in address) {
      const nothing = { status: null, answer: null, retryAfter: undefined, end: null };
      return { ...nothing, ...address, url, secretVersion, took: tookUntilNow() };
    }
    const secrets = signingVersions(webhook, clock.now()).map((version) =>
      secretOf(agentId, version),
    );
    const request = { id, url: address.url, body: JSON.stringify(payload), secrets, span };
    const { refused, ...reply } = await sender.send(request, signal);
    const masked = (text: string | null): string | null =>
      text === null ? null : address.mask(text);
    const said = { ...reply, answer: masked(reply.answer), error: masked(reply.error) };
    return { ...said, url, secretVersion, took: tookUntilNow(), end: refused ? 'refused' : null };
  }
}
