import { writeJson } from '../../domain/exact-numbers.ts';
import type { Cancel, Clock } from '../../domain/clock.ts';
import type { EventStore, Position, RecordedEvent } from '../../domain/event-store.ts';
import type { Telemetry } from '../../observability/telemetry.ts';
import { BackOff } from '../../projections/projector/back-off.ts';
import { RunChanges, type RunChange } from '../../projections/views/run-changes.ts';
import { unavailable } from '../errors.ts';
import type { Frame, LiveClient } from '../client/live-client.ts';
import { LiveSending } from './live-sending.ts';
import { showInList } from '../endpoints/runs/run-records.ts';

/** Clients of one process at a time. */
const MOST_CLIENTS = 2_000;
/** Clients that are brought up from the log at one time; others wait their turn. */
const REPLAYS = 4;
/** Changes that are kept for clients who come back after a short absence: how many, and their bytes. */
const RETAINED = 2_000;
const RETAINED_BYTES = 8 * 1024 * 1024;
/** Milliseconds from one look at the clients to the next; a heartbeat goes out at each fifteenth. */
const BEAT = 1000;
const BEATS_TO_A_HEARTBEAT = 15;
/** Beats without a client after which the log is followed no longer. */
const IDLE_BEATS = 30;

const PREFIXES = ['run-'];

export interface LiveRunsOptions {
  readonly store: EventStore;
  readonly clock: Clock;
  readonly telemetry: Telemetry;
  readonly mostClients?: number;
  /** Milliseconds. */
  readonly beat?: number;
}

/**
 * What happens to runs, told to any number of clients as it becomes durable. One subscription of the log serves all
 * of this process, and is there only while somebody watches; each change is folded and written once. Who was away
 * goes on where it was: from what is kept in memory, or from the log.
 */
export class LiveRuns {
  readonly #options: LiveRunsOptions;
  readonly #mostClients: number;
  readonly #clients = new Set<LiveClient>();
  /** Those of them that hear what comes; the others are still being brought up. */
  readonly #level = new Set<LiveClient>();
  /** Those who have been told that there is room, and do not watch yet. */
  #opening = 0;
  readonly #outgoing: LiveSending;
  readonly #waiting: (() => void)[] = [];
  #replaying = 0;
  #beginning: Promise<void> | null = null;
  #following: AbortController | null = null;
  #ended: Promise<void> = Promise.resolve();
  #closed = false;
  /** The last changes, and after which position there are all of them. */
  #retained: Frame[] = [];
  #retainedBytes = 0;
  #start: Position = '';
  #reached: Position = '';
  #beats = 0;
  #idleBeats = 0;
  #looking = false;
  #forgetBeat: Cancel = () => {};

  constructor(options: LiveRunsOptions) {
    this.#options = options;
    this.#outgoing = new LiveSending(options.clock, this.#level);
    this.#mostClients = options.mostClients ?? MOST_CLIENTS;
  }

  /** How many watch. */
  get size(): number {
    return this.#clients.size;
  }

  /** Whether the log is followed, as it is for a while after the last client has gone. */
  get following(): boolean {
    return this.#beginning !== null;
  }

  /**
   * Makes sure that the log is followed, and that there is room for one more.
   * @returns the position after which everything is told
   * @throws HttpError 503 when too many watch, or the service stops; EventStoreError when the log is away
   */
  async open(): Promise<Position> {
    if (this.#closed) throw unavailable('stream_store', 'the service is stopping');
    if (this.#clients.size + this.#opening >= this.#mostClients) {
      throw unavailable(
        'stream_store',
        `more than ${this.#mostClients} clients can't watch at once`,
      );
    }
    this.#opening += 1;
    try {
      this.#beginning ??= this.#begin();
      await this.#beginning;
      return this.#reached;
    } finally {
      this.#opening -= 1;
    }
  }

  /** Tells a client what comes after the place where it is, for as long as it is there. */
  join(client: LiveClient): void {
    if (this.#closed) {
      client.end('shutdown');
      return;
    }
    this.#clients.add(client);
    const leave = (): void => {
      this.#clients.delete(client);
      this.#level.delete(client);
    };
    client.signal.addEventListener('abort', leave, { once: true });
    if (client.signal.aborted) leave();
    else if (!this.#attach(client, client.last)) void this.#replay(client);
  }

  /** Ends all streams, and follows the log no longer. */
  async close(): Promise<void> {
    this.#closed = true;
    this.#outgoing.clear();
    for (const client of [...this.#clients]) client.end('shutdown');
    this.#forgetBeat();
    this.#following?.abort();
    await this.#ended;
  }

  async #begin(): Promise<void> {
    try {
      const head = await this.#options.store.head();
      this.#start = this.#reached = head;
      this.#retained = [];
      this.#retainedBytes = 0;
      this.#outgoing.clear();
      this.#idleBeats = 0;
      this.#following = new AbortController();
      if (this.#closed) this.#following.abort();
      const { signal } = this.#following;
      // One that was ended for want of clients may still be on its way out.
      this.#ended = this.#ended.then(() => this.#follow(signal));
      this.#armBeat();
    } catch (error) {
      this.#beginning = null;
      throw error;
    }
  }

  async #follow(signal: AbortSignal): Promise<void> {
    const { store, clock, telemetry } = this.#options;
    const backOff = new BackOff(clock);
    while (!signal.aborted) {
      const changes = new RunChanges(store);
      try {
        const after = this.#reached;
        for await (const message of store.subscribe({ after, prefixes: PREFIXES, signal })) {
          backOff.reset();
          const frames = message.kind === 'events' ? await framesOf(message.events, changes) : [];
          if (signal.aborted) return;
          if (message.kind === 'caught-up') this.#reached = message.position;
          else this.#tell(frames, message.events);
        }
      } catch (error) {
        telemetry.log.warn('live streams could not follow the log; trying again', { error });
        await backOff.wait(signal);
      }
    }
  }

  #tell(frames: readonly Frame[], events: readonly RecordedEvent[]): void {
    this.#reached = events.at(-1)?.position ?? this.#reached;
    this.#retain(frames);
    this.#outgoing.add(frames);
  }

  #retain(frames: readonly Frame[]): void {
    for (const frame of frames) {
      this.#retained.push(frame);
      this.#retainedBytes += frame.bytes.length;
    }
    let drop = 0;
    while (
      this.#retained.length - drop > RETAINED ||
      (this.#retainedBytes > RETAINED_BYTES && drop < this.#retained.length)
    ) {
      const frame = this.#retained[drop];
      drop += 1;
      if (frame === undefined) break;
      this.#retainedBytes -= frame.bytes.length;
      this.#start = frame.position;
    }
    if (drop > 0) this.#retained.splice(0, drop);
  }

  /** Lets a client hear what comes, when all that it lacks is here. */
  #attach(client: LiveClient, after: Position): boolean {
    if (after < this.#start) return false;
    if (client.signal.aborted) return true;
    client.send(this.#retained.filter(({ position }) => position > after));
    this.#level.add(client);
    return true;
  }

  /** Brings a client up from the log. Never rejects: a client who can't be served is told so. */
  async #replay(client: LiveClient): Promise<void> {
    const { store, telemetry } = this.#options;
    await this.#turn();
    const stop = new AbortController();
    const signal = AbortSignal.any([client.signal, stop.signal]);
    const changes = new RunChanges(store);
    try {
      if (client.signal.aborted || this.#attach(client, client.last)) return;
      const following = store.subscribe({ after: client.last, prefixes: PREFIXES, signal });
      for await (const message of following) {
        let after = message.kind === 'caught-up' ? message.position : '';
        if (message.kind === 'events') {
          client.send(await framesOf(message.events, changes));
          await client.drained();
          after = message.events.at(-1)?.position ?? client.last;
        }
        if (this.#attach(client, after)) return;
      }
    } catch (error) {
      telemetry.log.warn('a live stream could not be replayed from the log', { error });
      client.end('unavailable');
    } finally {
      stop.abort();
      this.#replaying -= 1;
      this.#waiting.shift()?.();
    }
  }

  async #turn(): Promise<void> {
    if (this.#replaying >= REPLAYS) {
      // One who leaves in the meantime gives its turn to the next as soon as it comes.
      await new Promise<void>((resolve) => this.#waiting.push(resolve));
    }
    this.#replaying += 1;
  }

  #armBeat(): void {
    const { clock, beat = BEAT } = this.#options;
    this.#forgetBeat();
    this.#forgetBeat = clock.after(beat, () => this.#onBeat(), { background: true });
  }

  #onBeat(): void {
    if (this.#closed) return;
    this.#idleBeats = this.#clients.size > 0 ? 0 : this.#idleBeats + 1;
    if (this.#idleBeats >= IDLE_BEATS) {
      this.#following?.abort();
      this.#beginning = null;
      return;
    }
    this.#beats += 1;
    if (this.#beats % BEATS_TO_A_HEARTBEAT === 0) {
      const isLevel = this.#outgoing.isEmpty;
      for (const client of this.#clients) {
        client.beat(isLevel && this.#level.has(client) ? this.#reached : null);
      }
    }
    if (!this.#looking) void this.#lookAtTokens();
    this.#armBeat();
  }

  /** A token that has expired, a session that is over, a scope that was taken away end a stream too. */
  async #lookAtTokens(): Promise<void> {
    this.#looking = true;
    let fault: unknown;
    for (const client of [...this.#clients]) {
      try {
        if (!(await client.counts())) client.end('access_ended');
      } catch (error) {
        // Of one it can't be told just now, as its agent can't be read: of the others it may be.
        fault = error;
      }
    }
    this.#looking = false;
    if (fault === undefined) return;
    const { log } = this.#options.telemetry;
    log.warn('the tokens of live streams could not be looked at', { error: fault });
  }
}

async function framesOf(
  events: readonly RecordedEvent[],
  changes: RunChanges,
): Promise<readonly Frame[]> {
  const frames: Frame[] = [];
  for (const event of events) {
    const change = await changes.of(event);
    if (change !== null) frames.push(frameOf(change));
  }
  return frames;
}

function frameOf({ name, position, at, run, step }: RunChange): Frame {
  const shownStep = step === null ? null : withoutResult(step);
  const data = writeJson({ position, at, run: showInList(run, false), step: shownStep });
  const text = `id: ${position}\nevent: ${name}\ndata: ${data}\n\n`;
  return { position, taskId: run.task_id, state: run.state, bytes: Buffer.from(text) };
}

/** A result may be large, and is there to be read with the run. */
function withoutResult(step: NonNullable<RunChange['step']>): object {
  const { result: _result, ...shown } = step;
  return shown;
}
