/**
 * The fault of the next append:
 *
 * - `unavailable-before-writing`: reports that it is not ready, and writes nothing
 * - `lost-before-writing`: the connection or the shared stream breaks, and nothing is written
 * - `unavailable-after-writing`: the same, after writing
 * - `cancelled-after-writing`: the same, with gRPC's "cancelled"
 * - `timed-out-after-writing`: the same, with the server's own timeout
 * - `silent-before-writing`, `silent-after-writing`: never responds
 * - `no-position`: writes, and omits the position in the response
 * - `wrong-revision`: writes, and returns a revision that is not the event's
 * - `empty-answer`: writes, and returns neither success nor conflict
 * - `forgets-ids`: does not recognise a repetition, as after a scavenge: returns a conflict, or
 *   writes it again if there is no expectation
 * - `not-leader`: names another node (this one again) as the leader if the client requires one;
 *   otherwise writes
 */
export type AppendFault =
  | 'unavailable-before-writing'
  | 'lost-before-writing'
  | 'unavailable-after-writing'
  | 'cancelled-after-writing'
  | 'timed-out-after-writing'
  | 'silent-before-writing'
  | 'silent-after-writing'
  | 'no-position'
  | 'wrong-revision'
  | 'empty-answer'
  | 'forgets-ids'
  | 'not-leader';

/** The fault of the next read: unavailable at once or midway, or no response. */
export type ReadFault = 'unavailable' | 'silent' | 'breaks-midway';

/**
 * The fault of the next subscription: no message ever, a refusal, or silence after the
 * confirmation.
 */
export type SubscribeFault = 'unavailable' | 'silent' | 'confirms-only';

/** Faults by kind of call, each used by one call, in order. */
export class Faults {
  readonly #appends: AppendFault[] = [];
  readonly #reads: ReadFault[] = [];
  readonly #subscribes: SubscribeFault[] = [];

  /**
   * While set, every subscription ends after so many events. `too-slow` ends it like a server from
   * 22.6 to 23.10 ends the subscription of a client that reads live events too slowly.
   */
  cutSubscriptions:
    | { readonly after: number; readonly how: 'error' | 'clean-end' | 'too-slow' }
    | undefined;

  /** Servers before 21.10 lack `BatchAppend`, and some proxies do not let it through. */
  lacksBatchAppend = false;

  /** While set, the user may not append. */
  deniesAppends = false;

  /** While set, a call of `BatchAppend` is refused at once because of its user. */
  refusesUser = false;

  /** While set, appends, reads and subscriptions get no response. */
  silentToAll = false;

  /** Servers before 22.6 return no positions with the events of a stream. */
  noPositionsInStreams = false;

  /**
   * Servers before 24.2 omit the first event at or after a subscription's position, which is a
   * different one after a scavenge.
   */
  leavesOutTheNext = true;

  /** The maximum size of a single event in bytes; from 25.0 on, and unlimited by default. */
  largestEvent = Infinity;

  onNextAppends(...faults: readonly AppendFault[]): void {
    this.#appends.push(...faults);
  }

  onNextReads(...faults: readonly ReadFault[]): void {
    this.#reads.push(...faults);
  }

  onNextSubscriptions(...faults: readonly SubscribeFault[]): void {
    this.#subscribes.push(...faults);
  }

  takeAppend(): AppendFault | 'none' {
    return this.silentToAll ? 'silent-before-writing' : (this.#appends.shift() ?? 'none');
  }

  takeRead(): ReadFault | 'none' {
    return this.silentToAll ? 'silent' : (this.#reads.shift() ?? 'none');
  }

  takeSubscribe(): SubscribeFault | 'none' {
    return this.silentToAll ? 'silent' : (this.#subscribes.shift() ?? 'none');
  }
}
