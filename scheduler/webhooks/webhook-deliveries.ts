import { fromIso, type Cancel, type Clock, type Instant } from '../../domain/clock.ts';
import { isConflict, type EventStore, type ExpectedRevision } from '../../domain/event-store.ts';
import type { DataOf } from '../../domain/events/catalogue.ts';
import { load, toNewEvents, type CommandContext } from '../../domain/handle.ts';
import { newId } from '../../domain/ids.ts';
import { streams } from '../../domain/streams.ts';
import {
  answerWebhook,
  webhookFold,
  type KnownWebhook,
  type WebhookAnswer,
} from '../../domain/webhooks/webhook.ts';
import { takeWebhookAway } from '../../domain/webhooks/webhook-commands.ts';
import type { Span, Telemetry } from '../../observability/telemetry.ts';
import { Heap } from '../heap.ts';
import { traceDelivery } from '../tracing.ts';
import { signingVersions, type WebhookAgents } from './webhook-agents.ts';
import type { WebhookSender } from './webhook-sender.ts';

/** Attempts under way at once, in all and of one agent: a slow receiver holds up its own messages alone. */
const SIDE_BY_SIDE = 32;
const OF_AN_AGENT = 4;

/** Pause before what failed here is tried again: the log is away. Milliseconds. */
const PAUSE = 1000;

/** A delivery that is to be made. */
interface Entry {
  readonly id: string;
  readonly agentId: string;
  dueAt: Instant;
  state: 'waiting' | 'due' | 'busy';
  /** Something was heard of it while it was busy. */
  again: boolean;
}

/**
 * The deliveries that are to be made, in the order of their time. What is known here is a reminder: each attempt
 * begins with the delivery's stream, and expects to be written down behind what it read there. Who dies between
 * sending and writing down sends again, with the same id.
 */
export class WebhookDeliveries {
  private readonly options: ConstructorParameters<typeof WebhookDeliveries>[0];
  private readonly entries = new Map<string, Entry>();
  private readonly timetable = new Heap<{ readonly entry: Entry; readonly at: Instant }>(
    (a, b) => a.at < b.at,
  );
  /** Those whose time has come, by agent. */
  private readonly due = new Map<string, Entry[]>();
  private readonly busy = new Map<string, number>();
  private readonly underWay = new Set<Promise<void>>();
  private cancelTimer: Cancel = () => {};
  private timerAt: Instant = Number.POSITIVE_INFINITY;
  private ended: AbortController | null = null;

  constructor(options: {
    readonly store: EventStore;
    readonly clock: Clock;
    readonly telemetry: Telemetry;
    readonly agents: WebhookAgents;
    readonly sender: WebhookSender;
    /** The secret of an agent, by its version. */
    readonly secretOf: (agentId: string, version: number) => string;
    /** Of this process, in the metadata. */
    readonly name: string;
  }) {
    this.options = options;
  }

  /** How many are to be made, as far as is known here. */
  get size(): number {
    return this.entries.size;
  }

  /** Sends what is due from now on. */
  start(): void {
    this.ended = new AbortController();
    this.look();
  }

  /** Ends what is under way, and forgets all. */
  async stop(): Promise<void> {
    this.ended?.abort();
    this.ended = null;
    this.cancelTimer();
    await Promise.all(this.underWay);
    this.entries.clear();
    this.due.clear();
    this.timetable.retain(() => false);
    this.timerAt = Number.POSITIVE_INFINITY;
  }

  /** There is a delivery to make, or its time has changed. */
  note(id: string, agentId: string, dueAt: Instant): void {
    const known = this.entries.get(id);
    if (known?.state === 'busy') {
      known.again = true;
    } else if (known === undefined || known.dueAt !== dueAt) {
      // An entry that stands in the timetable or among the due ones is void from now on.
      const entry: Entry = { id, agentId, dueAt, state: 'waiting', again: false };
      this.entries.set(id, entry);
      this.timetable.push({ entry, at: dueAt });
      this.look();
    }
  }

  /** Has been tried by somebody, and is to be tried again. */
  async noteRetry(id: string, dueAt: Instant): Promise<void> {
    const known = this.entries.get(id);
    if (known === undefined) await this.learn(id);
    else this.note(id, known.agentId, dueAt);
  }

  /** Reads whether a delivery is to be made. */
  async learn(id: string): Promise<void> {
    const { state } = await load(this.options.store, streams.webhook(id), webhookFold);
    if (state.state === 'pending') this.note(id, state.scheduled.agent_id, state.dueAt);
  }

  private look(): void {
    if (this.ended === null) return;
    const { clock } = this.options;
    const now = clock.now();
    for (let next = this.timetable.peek(); next !== undefined; next = this.timetable.peek()) {
      const { entry, at } = next;
      if (this.entries.get(entry.id) === entry) {
        if (at > now) break;
        entry.state = 'due';
        const line = this.due.get(entry.agentId) ?? [];
        line.push(entry);
        this.due.set(entry.agentId, line);
      }
      this.timetable.pop();
    }
    this.setTimer(this.timetable.peek()?.at ?? Number.POSITIVE_INFINITY);
    this.begin();
  }

  private setTimer(at: Instant): void {
    if (at === this.timerAt) return;
    this.cancelTimer();
    this.cancelTimer = () => {};
    this.timerAt = at;
    if (at === Number.POSITIVE_INFINITY) return;
    this.cancelTimer = this.options.clock.at(at, () => {
      this.timerAt = Number.POSITIVE_INFINITY;
      this.look();
    });
  }

  private begin(): void {
    for (const [agentId, line] of [...this.due]) {
      while (this.underWay.size < SIDE_BY_SIDE && (this.busy.get(agentId) ?? 0) < OF_AN_AGENT) {
        const entry = line.shift();
        if (entry === undefined) break;
        if (this.entries.get(entry.id) === entry) this.take(entry);
      }
      this.due.delete(agentId);
      // Behind the others: each agent has its turn.
      if (line.length > 0) this.due.set(agentId, line);
    }
  }

  private take(entry: Entry): void {
    const { ended } = this;
    if (ended === null) return;
    entry.state = 'busy';
    this.busy.set(entry.agentId, (this.busy.get(entry.agentId) ?? 0) + 1);
    const work = this.attempt(entry, ended.signal).finally(() => {
      this.underWay.delete(work);
      const left = (this.busy.get(entry.agentId) ?? 1) - 1;
      if (left === 0) this.busy.delete(entry.agentId);
      else this.busy.set(entry.agentId, left);
      if (!ended.signal.aborted) this.look();
    });
    this.underWay.add(work);
  }

  /** Never rejects: what fails here is tried again after a pause. */
  private async attempt(entry: Entry, signal: AbortSignal): Promise<void> {
    const { clock, telemetry } = this.options;
    const { id, agentId } = entry;
    let next: Instant | null;
    try {
      next = await this.once(id, signal);
    } catch (error) {
      if (signal.aborted) return;
      telemetry.log.warn('a webhook could not be served; trying again', { delivery: id, error });
      next = clock.now() + PAUSE;
    }
    if (signal.aborted) return;
    this.entries.delete(id);
    if (next !== null) this.note(id, agentId, next);
    // It has perhaps been repeated since.
    else if (entry.again) this.note(id, agentId, clock.now());
  }

  /** Makes one attempt, where it is time. @returns when the next one is to be made; null for never */
  private async once(id: string, signal: AbortSignal): Promise<Instant | null> {
    const { store, clock, telemetry } = this.options;
    const { state, revision } = await load(store, streams.webhook(id), webhookFold);
    if (state.state !== 'pending') return null;
    if (state.dueAt > clock.now()) return state.dueAt;
    const { traces } = telemetry;
    if (traces === undefined) return this.deliver(id, state, revision, signal);
    const about = { id, agentId: state.scheduled.agent_id, attempt: state.attempts + 1 };
    return traceDelivery(traces, store, about, (span) =>
      this.deliver(id, state, revision, signal, span),
    );
  }

  /** @returns when the next attempt is to be made; null for never */
  private async deliver(
    id: string,
    state: KnownWebhook,
    revision: ExpectedRevision,
    signal: AbortSignal,
    span?: Span,
  ): Promise<Instant | null> {
    const { store, clock, telemetry } = this.options;
    const answer = await this.send(id, state, signal, span);
    const now = clock.now();
    telemetry.observe('webhook_delivery_seconds', answer.took / 1000);
    const events = answerWebhook(id, state, answer, now);
    const context = this.context(id, now, span);
    const stream = streams.webhook(id);
    const appended = toNewEvents(stream, events, context);
    for (;;) {
      try {
        await store.append(stream, appended, revision);
        break;
      } catch (error) {
        // Somebody else was first: what is written there counts.
        if (isConflict(error)) return now;
        telemetry.log.warn('the answer of a webhook could not be written down; trying again', {
          delivery: id,
          error,
        });
        await clock.sleep(PAUSE, signal);
      }
    }
    const [event] = events;
    const failed = event?.type === 'WebhookFailed' ? event.data : null;
    telemetry.count('webhook_deliveries_total', { outcome: outcomeOf(failed) });
    if (failed !== null) span?.fail('not_delivered', failed.error);
    if (failed?.end === 'gone' && failed.url !== null) {
      const reason = 'its webhook answered 410 Gone';
      const { agent_id } = state.scheduled;
      await takeWebhookAway(store, agent_id, failed.url, { ...context, reason });
    }
    return failed === null || failed.retry_at === null ? null : fromIso(failed.retry_at);
  }

  private async send(
    id: string,
    { scheduled }: KnownWebhook,
    signal: AbortSignal,
    span: Span | undefined,
  ): Promise<WebhookAnswer> {
    const { agents, sender, clock, secretOf } = this.options;
    const { agent_id, payload } = scheduled;
    const webhook = await agents.find(agent_id);
    const nothing = { status: null, answer: null, retryAfter: undefined, took: 0 };
    if (webhook === undefined) {
      const error = 'the agent has no webhook_url any more';
      return { ...nothing, url: null, secretVersion: 0, error, end: 'no_url' };
    }
    const begun = clock.steady();
    const { url, secretVersion } = webhook;
    const secrets = signingVersions(webhook, clock.now()).map((version) =>
      secretOf(agent_id, version),
    );
    const post = { id, url, body: JSON.stringify(payload), secrets, span };
    const { refused, ...reply } = await sender.send(post, signal);
    const took = Math.round(clock.steady() - begun);
    return { ...reply, url, secretVersion, took, end: refused ? 'refused' : null };
  }

  private context(id: string, now: Instant, span: Span | undefined): CommandContext {
    const { name: source } = this.options;
    const { traceparent } = span ?? {};
    return { commandId: newId(now), actor: 'service', source, correlationId: id, traceparent, now };
  }
}

/** A closed set of labels. */
function outcomeOf(failed: DataOf<'WebhookFailed'> | null): string {
  if (failed === null) return 'delivered';
  return failed.end === null ? 'retried' : 'failed';
}
