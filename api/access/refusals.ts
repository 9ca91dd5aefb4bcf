import { toIso, type Cancel, type Clock } from '../../domain/clock.ts';
import { EventStoreError, type EventStore, type NewEvent } from '../../domain/event-store.ts';
import type { DataOf } from '../../domain/events/catalogue.ts';
import { toNewEvents, type CommandContext } from '../../domain/handle.ts';
import { newId } from '../../domain/ids.ts';
import { streams } from '../../domain/streams.ts';
import type { Telemetry } from '../../observability/telemetry.ts';

/** Refusals of an agent that are told one by one in a minute; those beyond are summed. */
const TOLD_IN_A_MINUTE = 30;
const MINUTE = 60_000;

/** Milliseconds from the first refusal that is not written until it is. */
const DELAY = 1000;

/** Refusals that wait while the log is away; those beyond are summed too. */
const MOST_WAITING = 10_000;

/** Events of one append. */
const TOGETHER = 100;

/** A request that was refused. */
export interface Refused {
  /** Who was refused, or whose name was used. */
  readonly agentId: string;
  /** Method and path as the interface's description writes it. */
  readonly action: string;
  /** The path as it was asked for. */
  readonly path: string;
  readonly status: number;
  readonly code: string;
  readonly context: CommandContext;
}

interface Waiting {
  readonly stream: string;
  readonly event: NewEvent;
}

/** One append. */
interface Batch {
  readonly stream: string;
  readonly events: readonly NewEvent[];
}

/** What an agent was refused in one minute. */
interface Minute {
  readonly began: number;
  told: number;
  readonly sums: Map<string, { readonly last: Refused; count: number; readonly first_at: string }>;
}

/**
 * The record of what was not allowed, off the path of the requests: kept for up to a second, then appended. However
 * often somebody tries, an agent has so many events in a minute and one more for each thing that was tried.
 */
export class Refusals {
  readonly #store: EventStore;
  readonly #clock: Clock;
  readonly #telemetry: Telemetry;
  readonly #minutes = new Map<string, Minute>();
  #waiting: Waiting[] = [];
  /** What was tried, and is to be tried again. */
  #batches: Batch[] = [];
  #forget: Cancel | null = null;
  #flushing: Promise<void> = Promise.resolve();
  #failing = false;

  constructor(options: {
    readonly store: EventStore;
    readonly clock: Clock;
    readonly telemetry: Telemetry;
  }) {
    this.#store = options.store;
    this.#clock = options.clock;
    this.#telemetry = options.telemetry;
  }

  /** Takes note of a refusal. Never fails, and waits for nothing. */
  note(refused: Refused): void {
    const minute = this.#minuteOf(refused);
    if (minute.told < TOLD_IN_A_MINUTE && this.#undone < MOST_WAITING) {
      minute.told += 1;
      const at = toIso(refused.context.now);
      this.#wait(refused, { path: refused.path, count: 1, first_at: at });
    } else {
      const { action, status, code, context } = refused;
      const key = `${status} ${code} ${action}`;
      const sum = minute.sums.get(key);
      const first_at = sum?.first_at ?? toIso(context.now);
      minute.sums.set(key, { last: refused, count: (sum?.count ?? 0) + 1, first_at });
    }
    this.#arm();
  }

  /** Appends what waits, as far as the log takes it; sums only of minutes that are over. */
  flush(): Promise<void> {
    this.#flushing = this.#flushing.then(() => this.#append(false));
    return this.#flushing;
  }

  /** Appends everything, sums included; called when no more requests come. */
  async close(): Promise<void> {
    this.#forget?.();
    this.#forget = null;
    this.#flushing = this.#flushing.then(() => this.#append(true));
    await this.#flushing;
  }

  /** How many wait, about: of those that are tried again each batch counts whole. */
  get #undone(): number {
    return this.#waiting.length + this.#batches.length * TOGETHER;
  }

  #minuteOf({ agentId, context: { now } }: Refused): Minute {
    const began = Math.floor(now / MINUTE);
    const known = this.#minutes.get(agentId);
    if (known?.began === began) return known;
    if (known !== undefined) this.#endMinute(known);
    const minute: Minute = { began, told: 0, sums: new Map() };
    this.#minutes.set(agentId, minute);
    return minute;
  }

  #endMinute({ sums }: Minute): void {
    for (const { last, count, first_at } of sums.values()) {
      this.#wait(last, { path: null, count, first_at });
    }
    sums.clear();
  }

  #wait(
    { agentId, action, status, code, context }: Refused,
    told: Pick<DataOf<'CommandRefused'>, 'path' | 'count' | 'first_at'>,
  ): void {
    const last_at = toIso(context.now);
    const stream = streams.refusals(agentId, last_at.slice(0, 10));
    const data = { agent_id: agentId, action, status, code, ...told, last_at };
    const own = { ...context, actor: agentId, commandId: newId(context.now) };
    const [event] = toNewEvents(stream, [{ type: 'CommandRefused', data }], own);
    if (event !== undefined) this.#waiting.push({ stream, event });
  }

  #arm(): void {
    if (this.#forget !== null) return;
    const flush = (): void => {
      this.#forget = null;
      void this.flush().then(() => {
        if (this.#undone > 0 || this.#minutes.size > 0) this.#arm();
      });
    };
    this.#forget = this.#clock.after(DELAY, flush, { background: true });
  }

  async #append(everything: boolean): Promise<void> {
    const minute = Math.floor(this.#clock.now() / MINUTE);
    for (const [agentId, each] of this.#minutes) {
      if (!everything && each.began === minute) continue;
      this.#endMinute(each);
      this.#minutes.delete(agentId);
    }
    this.#batches.push(...batchesOf(this.#waiting));
    this.#waiting = [];
    const batches = this.#batches;
    this.#batches = [];
    for (const batch of batches) {
      try {
        await this.#store.append(batch.stream, batch.events, 'any');
        this.#failing = false;
      } catch (error) {
        this.#failed(error, batch);
      }
    }
  }

  /** A batch stays as it is: what was written although the answer was lost is then not written twice. */
  #failed(error: unknown, batch: Batch): void {
    const { log } = this.#telemetry;
    const { stream, events } = batch;
    const passes =
      error instanceof EventStoreError &&
      (error.code === 'UNAVAILABLE' || error.code === 'OUTCOME_UNKNOWN');
    if (!passes) {
      log.error('refused commands can not be recorded', { stream, count: events.length, error });
      return;
    }
    this.#batches.push(batch);
    if (!this.#failing) log.warn('refused commands could not be recorded; trying again', { error });
    this.#failing = true;
  }
}

/** What waits, by stream, in appends of a bounded size. */
function batchesOf(waiting: readonly Waiting[]): readonly Batch[] {
  const batches: Batch[] = [];
  const open = new Map<string, NewEvent[]>();
  for (const { stream, event } of waiting) {
    const events = open.get(stream);
    if (events !== undefined && events.length < TOGETHER) {
      events.push(event);
      continue;
    }
    const begun = [event];
    open.set(stream, begun);
    batches.push({ stream, events: begun });
  }
  return batches;
}
