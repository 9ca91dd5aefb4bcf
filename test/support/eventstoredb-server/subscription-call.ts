import type streams from '@eventstore/db-client/generated/streams_pb.js';
import type { Faults } from './faults.ts';
import type { Log, StoredEvent } from './log.ts';
import { confirmationMessage, consumerTooSlow, eventMessage, unavailable } from './messages.ts';
import { fail, placeOf, send, type ReadCall } from './read-call.ts';

/** A subscription to `$all` that a client has open. */
export class OpenSubscription {
  /**
   * How many events were passed to the connection; constant while the client applies backpressure.
   */
  sent = 0;
  readonly #call: ReadCall;
  readonly #log: Log;
  readonly #faults: Faults;
  readonly #matches: (event: StoredEvent) => boolean;
  #silent = false;
  #over = false;
  #wake: () => void = () => undefined;

  constructor(call: ReadCall, log: Log, faults: Faults) {
    this.#call = call;
    this.#log = log;
    this.#faults = faults;
    const filter = call.request.getOptions()?.getFilter();
    this.#matches = matcherOf(filter);
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

  /** Sends no positions, as the adapter does not use them. */
  async #follow(): Promise<void> {
    for (let next = this.#firstIndex(); !this.#over;) {
      const event = this.#silent ? undefined : this.#log.all[next];
      if (event === undefined) {
        await this.#untilWoken(next);
        continue;
      }
      next += 1;
      if (this.#matches(event)) await this.#sendEvent(event);
    }
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
