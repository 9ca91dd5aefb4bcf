import type { ServerResponse } from 'node:http';
import type { Cancel, Clock } from '../../domain/clock.ts';
import type { Position } from '../../domain/event-store.ts';
import { reaches, type Reach } from '../../projections/reach.ts';
import type { RunState } from '../../domain/vocabulary.ts';

/** A server-sent event, serialized once for all clients. */
export interface Frame {
  readonly position: Position;
  /** The namespace of the event's subject. */
  readonly namespace: string;
  /** The run's task; null if the event is not a change of a run. */
  readonly taskId: string | null;
  readonly state: RunState | null;
  /** The agent that owns the run; null if the event is not a change of a run. */
  readonly createdBy: string | null;
  readonly bytes: Buffer;
}

/** Which runs a client watches. */
export interface LiveFilter {
  readonly reach: Reach;
  readonly taskId: string | undefined;
  readonly state: RunState | undefined;
  /** Only runs of this agent; null: runs of all agents. */
  readonly own: string | null;
}

/** Why the service ends a stream. */
export type LiveEnd = 'slow' | 'access_ended' | 'shutdown' | 'unavailable';

/** How long a client may take to read the end of its stream, or to continue reading in a replay. Milliseconds. */
const READ_TIMEOUT = 10_000;

/** One client of a live stream: its filter, its position, and whether it keeps up. */
export class LiveClient {
  readonly filter: LiveFilter;
  /** Whether its token still admits it. */
  readonly stillAdmitted: () => Promise<boolean>;
  /** Aborts once the client has left, or the stream has ended. */
  readonly signal: AbortSignal;
  readonly #response: ServerResponse;
  readonly #clock: Clock;
  readonly #maxPending: number;
  readonly #gone = new AbortController();
  /** All changes up to here were sent or filtered out. */
  #last: Position;

  /** @param options.maxPending unread bytes at which the next change ends the stream */
  constructor(options: {
    readonly response: ServerResponse;
    readonly filter: LiveFilter;
    readonly after: Position;
    readonly stillAdmitted: () => Promise<boolean>;
    readonly clock: Clock;
    readonly maxPending: number;
  }) {
    this.#response = options.response;
    this.filter = options.filter;
    this.#last = options.after;
    this.stillAdmitted = options.stillAdmitted;
    this.#clock = options.clock;
    this.#maxPending = options.maxPending;
    this.signal = this.#gone.signal;
    if (options.response.closed) this.#gone.abort();
    else options.response.once('close', () => this.#gone.abort());
  }

  /** Position of the last change that it has received. */
  get last(): Position {
    return this.#last;
  }

  /** Sends the position at which the stream begins, so that a client can resume before the first change. */
  begin(): void {
    const position = this.#last;
    const data = JSON.stringify({ position });
    this.#response.write(`retry: 1000\nid: ${position}\nevent: live.started\ndata: ${data}\n\n`);
  }

  /**
   * Sends the changes that match the filter. If a client has too much unread data, its stream ends; the client resumes
   * with `Last-Event-ID`.
   * @param joined the bytes of all changes in a client's reach, if they are already concatenated
   */
  send(frames: readonly Frame[], joined?: (reach: Reach) => Buffer): void {
    const end = frames.at(-1)?.position;
    const first = frames[0]?.position;
    if (end === undefined || first === undefined) return;
    if (end <= this.#last || this.signal.aborted) return;
    if (this.#response.writableLength > this.#maxPending) {
      this.end('slow');
      return;
    }
    const { reach, taskId, state, own } = this.filter;
    const isNarrow = taskId !== undefined || state !== undefined || own !== null;
    const takesAll = !isNarrow && first > this.#last;
    const bytes =
      takesAll && joined !== undefined
        ? joined(reach)
        : joinedBytes(frames.filter((frame) => this.#wants(frame)));
    this.#last = end;
    if (bytes.length > 0) this.#response.write(bytes);
  }

  /**
   * Sends a heartbeat, which keeps an idle connection open.
   * @param position up to which this client has received everything; null: unknown
   */
  sendHeartbeat(position: Position | null): void {
    // Unread bytes also keep the connection open, or show that it is dead.
    if (this.#response.writableLength > 0 || this.signal.aborted) return;
    if (position === null || position < this.#last) {
      this.#response.write(': heartbeat\n\n');
      return;
    }
    // With the position, a client with a narrow filter resumes without reading all other changes.
    this.#last = position;
    this.#response.write(`: heartbeat\nid: ${position}\n\n`);
  }

  /** Resolves once the client has read what was sent; ends its stream if it does not. */
  async drained(): Promise<void> {
    if (!this.#response.writableNeedDrain || this.signal.aborted) return;
    await new Promise<void>((resolve) => {
      const done = (): void => {
        forget();
        this.#response.off('drain', done);
        this.signal.removeEventListener('abort', done);
        resolve();
      };
      const forget = this.#after(READ_TIMEOUT, () => this.end('slow'));
      this.#response.once('drain', done);
      this.signal.addEventListener('abort', done, { once: true });
    });
  }

  /** Ends the stream, with the reason and the position to resume from. */
  end(reason: LiveEnd): void {
    if (this.signal.aborted) return;
    const data = JSON.stringify({ reason, last_event_id: this.#last });
    this.#gone.abort();
    this.#response.end(`event: live.ended\ndata: ${data}\n\n`);
    const forget = this.#after(READ_TIMEOUT, () => this.#response.destroy());
    this.#response.once('close', forget);
  }

  #after(milliseconds: number, call: () => void): Cancel {
    return this.#clock.after(milliseconds, call, { background: true });
  }

  #wants({ position, namespace, taskId, state, createdBy }: Frame): boolean {
    const { filter } = this;
    return (
      position > this.#last &&
      reaches(filter.reach, namespace) &&
      (filter.own === null || filter.own === createdBy) &&
      (filter.taskId === undefined || filter.taskId === taskId) &&
      (filter.state === undefined || filter.state === state)
    );
  }
}

/** The bytes of all frames. A single frame is not copied. */
export function joinedBytes(frames: readonly Frame[]): Buffer {
  const [only] = frames;
  if (only !== undefined && frames.length === 1) return only.bytes;
  return Buffer.concat(frames.map(({ bytes }) => bytes));
}
