import { writeJson } from '../../domain/exact-numbers.ts';
import type { Cancel, Clock } from '../../domain/clock.ts';
import { namespaceOf } from '../../domain/namespaces/namespace.ts';
import type { EventStore, Position, RecordedEvent } from '../../domain/event-store.ts';
import type { Telemetry } from '../../observability/telemetry.ts';
import { BackOff } from '../../projections/projector/back-off.ts';
import { RunChanges, type RunChange } from '../../projections/views/run-changes.ts';
import { FairTurns } from '../access/fair-turns.ts';
import { unavailable } from '../errors.ts';
import { AgentPlaces } from './agent-places.ts';
import type { Frame, LiveClient } from './live-client.ts';
import { LiveSending } from './live-sending.ts';
import { showInList, type RunSource } from '../endpoints/runs/run-records.ts';

/** The messages that report failures. */
const NOT_FOLLOWING = 'live streams could not follow the log; retrying';
const NOT_REPLAYED = 'live stream could not be replayed from the log';
const UNCHECKED = 'could not check the access of clients of live streams';

/** The most clients of one process. */
const MAX_CLIENTS = 2_000;
/** How many clients catch up from the log at a time. */
const MAX_REPLAYS = 4;
/** How many changes are retained for clients that resume, and how many bytes of them. */
const MAX_RETAINED = 2_000;
const MAX_RETAINED_BYTES = 8 * 1024 * 1024;
/** Milliseconds between two checks of the clients' access; every fifteenth sends a heartbeat. */
const BEAT = 1000;
const BEATS_PER_HEARTBEAT = 15;
/** Beats without clients until the subscription ends. */
const MAX_IDLE_BEATS = 30;

const PREFIXES = ['run-'];

export interface LiveRunsOptions {
  readonly store: EventStore;
  readonly params: RunSource;
  readonly clock: Clock;
  readonly telemetry: Telemetry;
  readonly maxClients?: number;
  /** Milliseconds. */
  readonly beat?: number;
}

/**
 * Streams the changes of runs to any number of clients, as they become durable. One subscription, which exists only
 * while there are clients, serves the whole process. Clients resume from memory, or from the log.
 */
export class LiveRuns {
  /** The clients of all live streams, including those of the audit. */
  readonly places: AgentPlaces;
  readonly #options: LiveRunsOptions;
  readonly #maxClients: number;
  readonly #clients = new Set<LiveClient>();
  /** Clients that receive new changes; the others still catch up. */
  readonly #caughtUp = new Set<LiveClient>();
  /** Clients that were promised a place and have not joined yet. */
  #opening = 0;
  readonly #outgoing: LiveSending;
  readonly #replays = new FairTurns(MAX_REPLAYS);
  #beginning: Promise<void> | null = null;
  #following: AbortController | null = null;
  #ended: Promise<void> = Promise.resolve();
  #closed = false;
  /** The last changes: all after the position `#start`. */
  #retained: Frame[] = [];
  #retainedBytes = 0;
  #start: Position = '';
  #reached: Position = '';
  #beats = 0;
  #idleBeats = 0;
  #isChecking = false;
  #forgetBeat: Cancel = () => {};

  constructor(options: LiveRunsOptions) {
    this.#options = options;
    this.places = new AgentPlaces(options.telemetry);
    this.#outgoing = new LiveSending(options.clock, this.#caughtUp);
    this.#maxClients = options.maxClients ?? MAX_CLIENTS;
  }

  /** Connected clients. */
  get size(): number {
    return this.#clients.size;
  }

  /** Whether it follows the log, which it does for a while after the last client has left. */
  get following(): boolean {
    return this.#beginning !== null;
  }

  /**
   * Reserves a place for a client, and starts the subscription.
   * @returns the position at which its stream begins
   * @throws HttpError 503 with too many clients, or while the service stops; EventStoreError
   */
  async open(): Promise<Position> {
    if (this.#closed) throw unavailable('stream_store', 'the service is stopping');
    if (this.#clients.size + this.#opening >= this.#maxClients) {
      throw unavailable('stream_store', `${this.#maxClients} clients are already connected`);
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

  /** Streams the changes after a client's position, until it leaves. */
  join(client: LiveClient): void {
    if (this.#closed) {
      client.end('shutdown');
      return;
    }
    this.#clients.add(client);
    const leave = (): void => {
      this.#clients.delete(client);
      this.#caughtUp.delete(client);
    };
    client.signal.addEventListener('abort', leave, { once: true });
    if (client.signal.aborted) leave();
    else if (!this.#attach(client, client.last)) {
      void this.#replays.take('', Infinity, () => this.#replay(client));
    }
  }

  /** Ends all streams and the subscription. */
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
      // A former subscription may still be ending.
      this.#ended = this.#ended.then(() => this.#follow(signal));
      this.#armBeat();
    } catch (error) {
      this.#beginning = null;
      throw error;
    }
  }

  async #follow(signal: AbortSignal): Promise<void> {
    const { store, params, clock, telemetry } = this.#options;
    const backOff = new BackOff(clock);
    while (!signal.aborted) {
      const changes = new RunChanges(store);
      try {
        const after = this.#reached;
        for await (const message of store.subscribe({ after, prefixes: PREFIXES, signal })) {
          backOff.reset();
          telemetry.failures.worked(NOT_FOLLOWING);
          const frames =
            message.kind === 'events' ? await framesOf(message.events, changes, params) : [];
          if (signal.aborted) return;
          if (message.kind === 'caught-up') this.#reached = message.position;
          else this.#publish(frames, message.events);
        }
      } catch (error) {
        telemetry.failures.failed(NOT_FOLLOWING, error);
        await backOff.wait(signal);
      }
    }
  }

  #publish(frames: readonly Frame[], events: readonly RecordedEvent[]): void {
    this.#reached = events.at(-1)?.position ?? this.#reached;
    this.#retain(frames);
    this.#outgoing.add(frames);
  }

  #retain(frames: readonly Frame[]): void {
    for (const frame of frames) {
      this.#retained.push(frame);
      this.#retainedBytes += frame.bytes.length;
    }
    while (this.#retained.length > MAX_RETAINED || this.#retainedBytes > MAX_RETAINED_BYTES) {
      const frame = this.#retained.shift();
      if (frame === undefined) break;
      this.#retainedBytes -= frame.bytes.length;
      this.#start = frame.position;
    }
  }

  /** Lets a client receive new changes, if memory has all changes that the client lacks. */
  #attach(client: LiveClient, after: Position): boolean {
    if (after < this.#start) return false;
    if (client.signal.aborted) return true;
    client.send(this.#retained.filter(({ position }) => position > after));
    this.#caughtUp.add(client);
    return true;
  }

  /** Lets a client catch up from the log. Never rejects: its stream ends with the reason. */
  async #replay(client: LiveClient): Promise<void> {
    const { store, params, telemetry } = this.#options;
    const stop = new AbortController();
    const signal = AbortSignal.any([client.signal, stop.signal]);
    const changes = new RunChanges(store);
    try {
      if (client.signal.aborted || this.#attach(client, client.last)) return;
      const following = store.subscribe({ after: client.last, prefixes: PREFIXES, signal });
      for await (const message of following) {
        telemetry.failures.worked(NOT_REPLAYED);
        let after = message.kind === 'caught-up' ? message.position : '';
        if (message.kind === 'events') {
          client.send(await framesOf(message.events, changes, params));
          await client.drained();
          after = message.events.at(-1)?.position ?? client.last;
        }
        if (this.#attach(client, after)) return;
      }
    } catch (error) {
      telemetry.failures.failed(NOT_REPLAYED, error);
      client.end('unavailable');
    } finally {
      stop.abort();
    }
  }

  #armBeat(): void {
    const { clock, beat = BEAT } = this.#options;
    this.#forgetBeat();
    this.#forgetBeat = clock.after(beat, () => this.#onBeat(), { background: true });
  }

  #onBeat(): void {
    if (this.#closed) return;
    this.#idleBeats = this.#clients.size > 0 ? 0 : this.#idleBeats + 1;
    if (this.#idleBeats >= MAX_IDLE_BEATS) {
      this.#following?.abort();
      this.#beginning = null;
      return;
    }
    this.#beats += 1;
    if (this.#beats % BEATS_PER_HEARTBEAT === 0) {
      const isIdle = this.#outgoing.isEmpty;
      for (const client of this.#clients) {
        client.sendHeartbeat(isIdle && this.#caughtUp.has(client) ? this.#reached : null);
      }
    }
    if (!this.#isChecking) void this.#checkAccess();
    this.#armBeat();
  }

  /** Ends the streams of clients whose token, session or scope is gone. */
  async #checkAccess(): Promise<void> {
    this.#isChecking = true;
    let failure: unknown;
    for (const client of [...this.#clients]) {
      try {
        if (!(await client.stillAdmitted())) client.end('access_ended');
      } catch (error) {
        // The client's agent cannot be read now. The other clients are still checked.
        failure = error;
      }
    }
    this.#isChecking = false;
    const { failures } = this.#options.telemetry;
    if (failure === undefined) failures.worked(UNCHECKED);
    else failures.failed(UNCHECKED, failure);
  }
}

async function framesOf(
  events: readonly RecordedEvent[],
  changes: RunChanges,
  params: RunSource,
): Promise<readonly Frame[]> {
  const frames: Frame[] = [];
  for (const event of events) {
    const change = await changes.of(event);
    if (change !== null) frames.push(await frameOf(change, params));
  }
  return frames;
}

async function frameOf(
  { name, position, at, run, step, progressed }: RunChange,
  params: RunSource,
): Promise<Frame> {
  const shownStep = step === null ? null : withoutResult(step);
  const shownRun = await showInList(params, run, false);
  const more = progressed === null ? {} : { progressed };
  const data = writeJson({ position, at, run: shownRun, step: shownStep, ...more });
  const text = `id: ${position}\nevent: ${name}\ndata: ${data}\n\n`;
  const { task_id: taskId, state, created_by: createdBy } = run;
  const about = { namespace: namespaceOf(run), taskId, state, createdBy };
  return { position, ...about, bytes: Buffer.from(text) };
}

/** A result may be large; clients read it with the run. */
function withoutResult(step: NonNullable<RunChange['step']>): object {
  const { result: _result, ...shown } = step;
  return shown;
}
