import type { Instant } from '../../domain/clock.ts';
import {
  EventStoreError,
  isConflict,
  type NewEvent,
  type StreamAppend,
} from '../../domain/event-store.ts';
import type { EventOf, RunEvent } from '../../domain/events/catalogue.ts';
import { load, occurAt, toNewEvents } from '../../domain/handle.ts';
import { newId } from '../../domain/ids.ts';
import { runFold, type KnownRun } from '../../domain/runs/run.ts';
import { streams } from '../../domain/streams.ts';
import { isTemporary } from './run-ending.ts';
import type { QueuedRun } from './queued-run.ts';
import type { HandOver, RunParts } from './run-work.ts';

/** Pauses between retries while the event log is unavailable. Milliseconds; the last one repeats. */
const RETRY_PAUSES = [50, 100, 200, 500, 1000] as const;

/** An append to a run's stream. */
export interface RunWriting {
  readonly events: readonly RunEvent[];
  /** When they occur. */
  readonly now: Instant;
  /** When the first event occurred, if earlier. */
  readonly started?: Instant | undefined;
  /** An append to another stream in the same call. Tried once. */
  readonly handOver?: HandOver | null | undefined;
  /** Builds the events again after the run was canceled or one of its waits has ended. Default: the same events. */
  readonly again?: (() => readonly RunEvent[]) | undefined;
}

type RunStreamOptions = Pick<RunParts, 'store' | 'queue' | 'membership' | 'clock'>;

/** The execution that writes the stream. */
export interface StreamOwner {
  /** The process is stopping. */
  readonly draining: boolean;
  readonly traceparent: string | undefined;
  /** The run was canceled. */
  cancel(): void;
  /** Called when a wait of the run has ended. */
  resumed(event: EventOf<'RunStepResumed'>): void;
}

/** The stream of a run, as its execution knows it. */
export class RunStream {
  readonly #options: RunStreamOptions;
  readonly #owner: StreamOwner;
  readonly #run: QueuedRun;
  readonly #name: string;
  /**
   * The last event that this execution knows. The queue's revision is not used, because it also follows other
   * processes, and with it a worker that has lost its run could still append.
   */
  revision: number;

  constructor(options: RunStreamOptions, owner: StreamOwner, run: QueuedRun) {
    this.#options = options;
    this.#owner = owner;
    this.#run = run;
    this.#name = streams.run(run.id);
    this.revision = run.revision;
  }

  async load(): Promise<KnownRun | null> {
    const { state } = await load(this.#options.store, this.#name, runFold);
    return 'request' in state ? state : null;
  }

  lostRace(): EventStoreError {
    const message = 'this process no longer executes the run';
    return new EventStoreError('CONFLICT', message, { stream: this.#name });
  }

  /**
   * Appends at the known revision. Retries while the event log is unavailable and this worker counts as alive. After a
   * conflict with a cancel request or the end of a wait, this worker still has the run, so it repeats the append.
   *
   * @returns the written events
   */
  async append(writing: RunWriting): Promise<readonly RunEvent[]> {
    const { now, started, again } = writing;
    const { store, queue, membership, clock } = this.#options;
    const stream = this.#name;
    let { events } = writing;
    let newEvents = this.#newEvents(events, now, started);
    let along = writing.handOver ?? null;
    for (let attempt = 0; ; attempt += 1) {
      const expected = this.revision;
      try {
        const own: StreamAppend = { stream, events: newEvents, expected };
        const [result, behind] =
          along === null
            ? [await store.append(stream, newEvents, expected)]
            : await store.appendInOrder([own, along.append]);
        if (result === undefined) throw this.lostRace();
        this.revision = result.revision;
        let revision = result.revision - events.length;
        const { traceparent } = this.#owner;
        for (const event of events) queue.applied(this.#run, event, (revision += 1), traceparent);
        if (behind === undefined) along?.failed();
        else along?.done(behind);
        return events;
      } catch (error) {
        const wasAlone = along === null;
        along?.failed();
        along = null;
        const isOwn = isTemporary(error) || (isConflict(error) && error.stream === stream);
        // The hand-over was rejected, but the events of the run may be in the log. Retrying them
        // alone shows whether they are.
        if (!wasAlone && !isOwn) continue;
        if (isConflict(error)) {
          // Otherwise, the foreign event has arrived from the log in the meantime.
          if (this.revision === expected) await this.#takeForeign(error);
          if (again === undefined) continue;
          events = again();
          newEvents = this.#newEvents(events, now, started);
          continue;
        }
        const isLast = this.#owner.draining && attempt >= RETRY_PAUSES.length;
        if (!isTemporary(error) || !membership.alive || isLast) throw error;
        await clock.sleep(RETRY_PAUSES[Math.min(attempt, RETRY_PAUSES.length - 1)] ?? 1000);
      }
    }
  }

  #newEvents(
    events: readonly RunEvent[],
    now: Instant,
    started: Instant | undefined,
  ): readonly NewEvent[] {
    const newEvents = toNewEvents(this.#name, events, {
      commandId: newId(now),
      actor: 'service',
      source: this.#options.membership.id,
      correlationId: this.#run.id,
      namespace: this.#run.namespace,
      traceparent: this.#owner.traceparent,
      now,
    });
    if (started !== undefined && started !== now) occurAt(newEvents.slice(0, 1), started);
    return newEvents;
  }

  /**
   * Applies other processes' events after which the run still belongs to this worker.
   * @throws the conflict if another process has the run
   */
  async #takeForeign(conflict: Error): Promise<void> {
    const events = await this.#options.store.readStream(this.#name, { from: this.revision + 1 });
    const isOurs = events.every(({ type }) => foreignTypes.has(type));
    if (events.length === 0 || !isOurs) throw conflict;
    for (const event of events) {
      this.revision = event.revision;
      // Applied before the next append, because the queue ignores events older than those it knows.
      this.#options.queue.applied(this.#run, event as RunEvent, event.revision);
      if (event.type === 'RunStepResumed') this.#owner.resumed(event);
      else if (event.type === 'RunCancelRequested') this.#owner.cancel();
    }
  }
}

/** The events that other processes may append to the stream of a run that is being executed. */
export const foreignTypes: ReadonlySet<string> = new Set<RunEvent['type']>([
  'RunCancelRequested',
  'RunStepResumed',
  'RunStepProgressed',
]);
