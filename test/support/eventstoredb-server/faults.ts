/**
 * What the stand-in does wrong with the next append:
 *
 * - `unavailable-before-writing`: says unavailable, and has written nothing
 * - `unavailable-after-writing`: says unavailable, and has written
 * - `cancelled-after-writing`: the same, with gRPC's "cancelled"
 * - `timed-out-after-writing`: the same, with the server's own time-out
 * - `silent-before-writing`, `silent-after-writing`: gives no answer at all
 * - `no-position`: writes, and leaves the position out of the answer
 * - `wrong-revision`: writes, and answers a revision that is not the event's
 * - `empty-answer`: writes, and answers neither success nor conflict
 * - `forgets-ids`: does not recognise a repetition, as after a scavenge: answers with a conflict; where nothing is
 *   expected, writes it again
 * - `not-leader`: says that another node (this one again) leads, where the client asks to be told; else passes it on
 */
export type AppendFault =
  | 'unavailable-before-writing'
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

/** What it does wrong with the next read: says unavailable at once or midway, or gives no answer. */
export type ReadFault = 'unavailable' | 'silent' | 'breaks-midway';

/** What it does wrong with the next subscription: no word ever, refuses, or confirms and then is silent. */
export type SubscribeFault = 'unavailable' | 'silent' | 'confirms-only';

/** Faults by kind of call, each used up by one call, in order. */
export class Faults {
  readonly #appends: AppendFault[] = [];
  readonly #reads: ReadFault[] = [];
  readonly #subscribes: SubscribeFault[] = [];

  /**
   * While set, every subscription is cut after so many events: with an error, as if all were well, or as servers from
   * 22.6 to 23.10 do where a client takes live events more slowly than they come.
   */
  cutSubscriptions:
    { readonly after: number; readonly how: 'error' | 'clean-end' | 'too-slow' } | undefined;

  /** While set, appends, reads and subscriptions alike get no answer. */
  silentToAll = false;

  /** Older servers than 22.6 give no positions with the events of a stream. */
  noPositionsInStreams = false;

  /**
   * Servers before 24.2 begin a subscription by leaving out the first event at its position or after it, which is
   * another one where that has been scavenged.
   */
  leavesOutTheNext = true;

  /** The largest single event a server takes, in bytes; from 25.0 on, and without a limit unless one is set. */
  largestEvent = Infinity;

  /** Servers before 23.10 don't say when a subscription has caught up. */
  saysCaughtUp = false;

  /**
   * Servers before 23.10 (but for 22.10.4 and later) may tell a subscription that goes live of the place of an event that
   * came meanwhile, and send the event after that. Set: they do so with the first one, and this happens in between.
   */
  betweenPlaceAndEvent: (() => Promise<void>) | undefined;

  /** Whether filtered subscriptions are told how far the server has come. */
  sendsCheckpoints = true;

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
