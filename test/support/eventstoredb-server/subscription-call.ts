import type streams from '@eventstore/db-client/generated/streams_pb.js';
import type { Faults } from './faults.ts';
import type { Log, Place, StoredEvent } from './log.ts';
import {
  caughtUpMessage,
  checkpointMessage,
  confirmationMessage,
  consumerTooSlow,
  eventMessage,
  fellBehindMessage,
  unavailable,
} from './messages.ts';
import { fail, placeOf, send, type ReadCall } from './read-call.ts';

/** After how many filtered-out events a server sends a checkpoint, times the client's factor. */
const CHECKPOINT_WINDOW = 32;

/** The page size of a server's reads while a subscription catches up. */
const PAGE = 32;

/** A subscription to `$all` that a client has open. */
export class OpenSubscription {
  /**
   * How many events were passed to the connection; constant while the client applies backpressure.
   */
  sent = 0;
  /** How many checkpoints the client received. */
  checkpoints = 0;
  readonly #call: ReadCall;
  readonly #log: Log;
  readonly #faults: Faults;
  readonly #matches: (event: StoredEvent) => boolean;
  readonly #checkpointAfter: number;
  #silent = false;
  #over = false;
  #wake: () => void = () => undefined;

  constructor(call: ReadCall, log: Log, faults: Faults) {
    this.#call = call;
    this.#log = log;
    this.#faults = faults;
    const filter = call.request.getOptions()?.getFilter();
    this.#matches = matcherOf(filter);
    this.#checkpointAfter = (filter?.getCheckpointintervalmultiplier() ?? 1) * CHECKPOINT_WINDOW;
    call.on('cancelled', () => this.#finish());
    call.on('close', () => this.#finish());
  }

  /** Breaks it with an error. */
  drop(error: Error = unavailable()): void {
    fail(this.#call, error);
    this.#finish();
  }

  /** Ends it as if no more events could follow. */
  endCleanly(): void {
    this.#call.end();
    this.#finish();
  }

  /** Keeps it open and sends nothing from now on. */
  fallSilent(): void {
    this.#silent = true;
  }

  /**
   * Falls behind its client and catches up again (`GoLive` and `CatchUp` of the server's
   * Enumerator.AllSubscriptionFiltered). Servers from 24.2 on do so if live events arrive faster
   * than they are read.
   * @param place the announced end
   */
  async fallBehind(place: Place): Promise<void> {
    await send(this.#call, fellBehindMessage());
    await send(this.#call, checkpointMessage(place));
    await send(this.#call, caughtUpMessage());
  }

  /** Serves it until it ends. */
  async run(): Promise<void> {
    const fault = this.#faults.takeSubscribe();
    if (fault === 'unavailable') return this.drop();
    if (fault === 'silent') return this.#untilOver();
    await send(this.#call, confirmationMessage(crypto.randomUUID()));
    if (fault === 'confirms-only') return this.#untilOver();
    const stopListening = this.#log.onWrite(() => this.#wake());
    try {
      await this.#follow();
    } finally {
      stopListening();
    }
  }

  async #follow(): Promise<void> {
    let next = this.#firstIndex();
    let filteredOut = 0;
    let caughtUp = false;
    let page = next;
    while (!this.#over) {
      const event = this.#silent ? undefined : this.#log.all[next];
      if (event === undefined) {
        if (!caughtUp && this.#faults.saysCaughtUp) await send(this.#call, caughtUpMessage());
        caughtUp = true;
        await this.#untilWoken(next);
        continue;
      }
      if (next - page === PAGE) page = next;
      next += 1;
      if (this.#matches(event)) {
        if (caughtUp) await this.#sendPlaceAhead(event);
        await this.#sendEvent(event);
        page = next;
        continue;
      }
      filteredOut += 1;
      if (filteredOut % this.#checkpointAfter === 0 && this.#faults.sendsCheckpoints) {
        this.checkpoints += 1;
        await send(this.#call, checkpointMessage(this.#checkpointAt(event, page, caughtUp)));
      }
    }
  }

  /**
   * When live, the last omitted event. During catch-up, a server names the start of the page it has
   * read, a position without a guaranteed event.
   */
  #checkpointAt(event: StoredEvent, page: number, live: boolean): Place {
    const first = live ? undefined : this.#log.all[page];
    if (first === undefined)
      return { commit: BigInt(event.commit), prepare: BigInt(event.prepare) };
    const alone = first.commit === first.prepare;
    return { commit: BigInt(first.commit), prepare: alone ? 0n : BigInt(first.prepare) - 1n };
  }

  /** See {@link Faults.betweenPlaceAndEvent}. */
  async #sendPlaceAhead(event: StoredEvent): Promise<void> {
    const { betweenPlaceAndEvent } = this.#faults;
    if (betweenPlaceAndEvent === undefined) return;
    this.#faults.betweenPlaceAndEvent = undefined;
    await send(this.#call, checkpointMessage(this.#checkpointAt(event, 0, true)));
    await betweenPlaceAndEvent();
  }

  async #sendEvent(event: StoredEvent): Promise<void> {
    const cut = this.#faults.cutSubscriptions;
    if (cut !== undefined && this.sent >= cut.after) {
      if (cut.how === 'clean-end') this.endCleanly();
      else this.drop(cut.how === 'too-slow' ? consumerTooSlow() : unavailable());
      return;
    }
    this.sent += 1;
    await send(this.#call, eventMessage(event, true));
  }

  /** A subscription starts after its position, unlike a read. */
  #firstIndex(): number {
    const all = this.#call.request.getOptions()?.getAll();
    const place = all === undefined ? undefined : placeOf(all);
    if (place === undefined) return all?.hasEnd() === true ? this.#log.all.length : 0;
    const index = this.#log.indexOf(place);
    const event = this.#log.all[index];
    if (event === undefined) return index;
    const exact = BigInt(event.commit) === place.commit && BigInt(event.prepare) === place.prepare;
    return exact || this.#faults.leavesOutTheNext ? index + 1 : index;
  }

  async #untilWoken(next: number): Promise<void> {
    if (this.#over || (!this.#silent && next < this.#log.all.length)) return;
    await new Promise<void>((resolve) => {
      this.#wake = resolve;
    });
  }

  async #untilOver(): Promise<void> {
    while (!this.#over) await this.#untilWoken(Infinity);
  }

  #finish(): void {
    this.#over = true;
    this.#wake();
  }
}

function matcherOf(
  filter: streams.ReadReq.Options.FilterOptions | undefined,
): (event: StoredEvent) => boolean {
  if (filter === undefined) return () => true;
  const byName = filter.getStreamIdentifier();
  const expression = byName ?? filter.getEventType();
  const textOf = (event: StoredEvent): string => (byName ? event.stream : event.type);
  const prefixes = expression?.getPrefixList() ?? [];
  if (prefixes.length > 0) {
    return (event) => prefixes.some((prefix) => beginsInCulture(textOf(event), prefix));
  }
  const regex = new RegExp(expression?.getRegex() ?? '');
  return (event) => regex.test(textOf(event));
}

/**
 * A server compares a prefix linguistically (`StartsWith` without an ordinal comparison, in the
 * `StreamIdPrefixStrategy` of its EventFilter). It ignores characters without width, and a
 * combining mark changes the character before it. Of .NET's rules, these two are implemented.
 */
function beginsInCulture(text: string, prefix: string): boolean {
  const seen = text.replace(/[\u00ad\u200b-\u200d\ufeff]/g, '');
  return seen.startsWith(prefix) && !/^\p{M}/u.test(seen.slice(prefix.length));
}
