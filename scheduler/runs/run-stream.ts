import type { Clock, Instant } from '../../domain/clock.ts';
import {
  EventStoreError,
  isConflict,
  type EventStore,
  type NewEvent,
  type StreamAppend,
} from '../../domain/event-store.ts';
import type { RunEvent } from '../../domain/events/catalogue.ts';
import { load, occurAt, toNewEvents } from '../../domain/handle.ts';
import { newId } from '../../domain/ids.ts';
import { runFold, type KnownRun } from '../../domain/runs/run.ts';
import { streams } from '../../domain/streams.ts';
import type { Membership } from '../processes/membership.ts';
import { isPassing } from './run-outcome.ts';
import type { QueuedRun, RunQueue } from './run-queue.ts';
import type { HandOver } from './run-work.ts';

/** Pauses between attempts to write what a run has to say while the log is away. Milliseconds. */
const WRITE_PAUSES = [50, 100, 200, 500, 1000] as const;

/** What is to be appended. */
export interface RunWriting {
  readonly events: readonly RunEvent[];
  /** When they occur. */
  readonly now: Instant;
  /** When the first one occurred, where that was before. */
  readonly begun?: Instant | undefined;
  /** What goes along behind them; it is tried once. */
  readonly handOver?: HandOver | null | undefined;
  /** What is to be written where they would have the run wait for an attempt that is not wanted any more. */
  readonly ifCanceled?: (() => readonly RunEvent[]) | undefined;
}

export interface RunStreamOptions {
  readonly store: EventStore;
  readonly queue: RunQueue;
  readonly membership: Membership;
  readonly clock: Clock;
}

/** The execution whose stream it is. */
export interface StreamOwner {
  /** The process is about to end. */
  readonly draining: boolean;
  readonly traceparent: string | undefined;
  /** It is to end, as its run is to be canceled. */
  cancel(): void;
}

/** The stream of a run that is executed here, as far as its execution knows it. */
export class RunStream {
  private readonly options: RunStreamOptions;
  private readonly owner: StreamOwner;
  private readonly run: QueuedRun;
  private readonly name: string;
  /**
   * Of the last event that this execution knows of. Not the queue's, which also follows what others do: by that,
   * a worker whose run was taken from it could still append.
   */
  revision: number;

  constructor(options: RunStreamOptions, owner: StreamOwner, run: QueuedRun, revision: number) {
    this.options = options;
    this.owner = owner;
    this.run = run;
    this.name = streams.run(run.id);
    this.revision = revision;
  }

  async load(): Promise<KnownRun | null> {
    const { state } = await load(this.options.store, this.name, runFold);
    return 'request' in state ? state : null;
  }

  lostRace(): EventStoreError {
    const text = 'the run is no longer worked on here';
    return new EventStoreError('CONFLICT', text, { stream: this.name });
  }

  /**
   * Appends with the revision that is known here. While the log is away it tries again for as long as this
   * worker counts as alive. A conflict with nothing but a request to cancel is no loss: the run is still ours.
   *
   * @returns what was written
   */
  async append({
    events: wanted,
    now,
    begun,
    handOver,
    ifCanceled,
  }: RunWriting): Promise<readonly RunEvent[]> {
    const { store, queue, membership, clock } = this.options;
    const run = this.run;
    const stream = this.name;
    let events = wanted;
    let newEvents = this.made(events, now, begun);
    let along = handOver ?? null;
    for (let attempt = 0; ; attempt += 1) {
      try {
        const own: StreamAppend = { stream, events: newEvents, expected: this.revision };
        const [result, behind] =
          along === null
            ? [await store.append(stream, newEvents, this.revision)]
            : await store.appendInOrder([own, along.append]);
        if (result === undefined) throw this.lostRace();
        this.revision = result.revision;
        let revision = result.revision - events.length;
        for (const event of events) queue.applied(run, event, (revision += 1));
        if (behind === undefined) along?.failed();
        else along?.done(behind);
        return events;
      } catch (error) {
        const wasAlone = along === null;
        along?.failed();
        along = null;
        const isOurs = isPassing(error) || (isConflict(error) && error.stream === stream);
        // The one behind was refused, and these may stand in the log: alone, they say so.
        if (!wasAlone && !isOurs) continue;
        if (isConflict(error)) {
          this.revision = await this.stillOurs(error);
          if (!ifCanceled || events.at(-1)?.type !== 'RunAttemptFailed') continue;
          events = ifCanceled();
          newEvents = this.made(events, now, begun);
        } else if (!isPassing(error) || !membership.alive) throw error;
        // Who comes after this process finds out.
        else if (this.owner.draining && attempt >= WRITE_PAUSES.length) throw error;
        else await clock.sleep(WRITE_PAUSES[Math.min(attempt, WRITE_PAUSES.length - 1)] ?? 1000);
      }
    }
  }

  private made(
    events: readonly RunEvent[],
    now: Instant,
    begun: Instant | undefined,
  ): readonly NewEvent[] {
    const made = toNewEvents(this.name, events, {
      commandId: newId(now),
      actor: 'service',
      source: this.options.membership.id,
      correlationId: this.run.id,
      traceparent: this.owner.traceparent,
      now,
    });
    if (begun !== undefined && begun !== now) occurAt(made.slice(0, 1), begun);
    return made;
  }

  /** @returns the revision to expect now; throws the conflict when the run is somebody else's */
  private async stillOurs(conflict: Error): Promise<number> {
    const known = await this.load();
    const ours =
      known?.state === 'running' &&
      known.lease_owner === this.options.membership.id &&
      known.attempt === this.run.attempt &&
      known.cancel_requested;
    if (!ours) throw conflict;
    this.owner.cancel();
    return known.revision;
  }
}
