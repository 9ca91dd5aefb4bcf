import type { ServerResponse } from 'node:http';
import type { Clock } from '../../domain/clock.ts';
import type { Position } from '../../domain/event-store.ts';
import type { RunState } from '../../domain/vocabulary.ts';

/** A change as it goes out: written once, sent to all who watch. */
export interface Frame {
  readonly position: Position;
  /** Of the run; null for what is no change of a run, which goes to all who ask for no task or state. */
  readonly taskId: string | null;
  readonly state: RunState | null;
  readonly bytes: Buffer;
}

/** Of which runs a client wants to hear. */
export interface LiveFilter {
  readonly taskId: string | undefined;
  readonly state: RunState | undefined;
}

/** Why a stream ends from this side. */
export type LiveEnd = 'slow' | 'access_ended' | 'shutdown' | 'unavailable';

/** How long a client may take to read the end of its stream, and to go on reading in a replay. Milliseconds. */
const PATIENCE = 10_000;

/** One client of a live stream: what it wants, how far it is, and whether it keeps up. */
export class LiveClient {
  readonly filter: LiveFilter;
  /** Whether its token still lets it watch. */
  readonly counts: () => Promise<boolean>;
  /** Aborted once it is gone, or the stream has ended. */
  readonly signal: AbortSignal;
  readonly #response: ServerResponse;
  readonly #clock: Clock;
  readonly #mostPending: number;
  readonly #gone = new AbortController();
  /** Everything up to here was sent, or is not for this client. */
  #last: Position;

  /** @param options.mostPending bytes that may wait for a client when the next change comes */
  constructor(options: {
    readonly response: ServerResponse;
    readonly filter: LiveFilter;
    readonly after: Position;
    readonly counts: () => Promise<boolean>;
    readonly clock: Clock;
    readonly mostPending: number;
  }) {
    this.#response = options.response;
    this.filter = options.filter;
    this.#last = options.after;
    this.counts = options.counts;
    this.#clock = options.clock;
    this.#mostPending = options.mostPending;
    this.signal = this.#gone.signal;
    // Of one that left before its stream could begin no other word would come.
    if (options.response.closed) this.#gone.abort();
    else options.response.once('close', () => this.#gone.abort());
  }

  /** Position of the last change that it has behind it. */
  get last(): Position {
    return this.#last;
  }

  /** Says where the stream begins: a client that loses the connection before the first change goes on from there. */
  begin(): void {
    const position = this.#last;
    const data = JSON.stringify({ position });
    this.#response.write(`retry: 1000\nid: ${position}\nevent: live.started\ndata: ${data}\n\n`);
  }

  /**
   * Sends what this client wants of some changes, in their order. One that has left too much unread is told so, and
   * its stream ends: it goes on by `Last-Event-ID`.
   *
   * @param joined the bytes of all of them in one, where somebody has put them together
   */
  send(frames: readonly Frame[], joined?: () => Buffer): void {
    const end = frames.at(-1)?.position;
    const first = frames[0]?.position;
    if (end === undefined || first === undefined || end <= this.#last || this.signal.aborted)
      return;
    if (this.#response.writableLength > this.#mostPending) {
      this.end('slow');
      return;
    }
    const { taskId, state } = this.filter;
    const takesAll = taskId === undefined && state === undefined && first > this.#last;
    const bytes =
      takesAll && joined !== undefined
        ? joined()
        : joinedBytes(frames.filter((frame) => this.#wants(frame)));
    this.#last = end;
    if (bytes.length > 0) this.#response.write(bytes);
  }

  /**
   * What goes to everybody, so that a connection on which nothing happens is known to stand.
   * @param position up to where there is nothing that this client has not been sent; null: not known
   */
  beat(position: Position | null): void {
    // What it has not read keeps the connection known as well, or shows that it is dead.
    if (this.#response.writableLength > 0 || this.signal.aborted) return;
    if (position === null || position < this.#last) {
      this.#response.write(': heartbeat\n\n');
      return;
    }
    // A client that hears of few changes need not go through all others when it comes back.
    this.#last = position;
    this.#response.write(`: heartbeat\nid: ${position}\n\n`);
  }

  /** Resolves once the client has read what was sent; ends its stream when it does not. */
  async drained(): Promise<void> {
    if (!this.#response.writableNeedDrain || this.signal.aborted) return;
    await new Promise<void>((resolve) => {
      const done = (): void => {
        forget();
        this.#response.off('drain', done);
        this.signal.removeEventListener('abort', done);
        resolve();
      };
      const forget = this.#clock.after(PATIENCE, () => this.end('slow'), {
        background: true,
      });
      this.#response.once('drain', done);
      this.signal.addEventListener('abort', done, { once: true });
    });
  }

  /** Ends the stream, saying why and from where to go on. */
  end(reason: LiveEnd): void {
    if (this.signal.aborted) return;
    const data = JSON.stringify({ reason, last_event_id: this.#last });
    this.#gone.abort();
    this.#response.end(`event: live.ended\ndata: ${data}\n\n`);
    const forget = this.#clock.after(PATIENCE, () => this.#response.destroy(), {
      background: true,
    });
    this.#response.once('close', forget);
  }

  #wants({ position, taskId, state }: Frame): boolean {
    const { filter } = this;
    return (
      position > this.#last &&
      (filter.taskId === undefined || filter.taskId === taskId) &&
      (filter.state === undefined || filter.state === state)
    );
  }
}

/** The bytes of changes in one, without a copy where there is one alone. */
export function joinedBytes(frames: readonly Frame[]): Buffer {
  const [only] = frames;
  if (only !== undefined && frames.length === 1) return only.bytes;
  return Buffer.concat(frames.map(({ bytes }) => bytes));
}
