/** gRPC's connectivity states, as numbers; the client passes them on without naming them. */
export const state = {
  IDLE: 0,
  CONNECTING: 1,
  READY: 2,
  TRANSIENT_FAILURE: 3,
  SHUTDOWN: 4,
} as const;

/**
 * How long an attempt may last at most, where others before it got no answer either. Milliseconds. gRPC leaves the socket
 * of each open until the other side or TCP ends it: a minute apart, a night of silence does not use up what a process may
 * open.
 */
const LONGEST_MS = 60_000;

/** What is asked of a channel here. */
interface WatchedChannel {
  getConnectivityState(tryToConnect: boolean): number;
  watchConnectivityState(current: number, deadline: number, changed: () => void): void;
}

/**
 * Tells of attempts to connect that get no answer. gRPC has no limit of its own here (grpc-js 1.14: neither for the TCP
 * connection nor for TLS nor for the server's first settings, and it sends signs of life only after those), so one that
 * is never answered would last for ever.
 */
export class UnansweredAttempts<Channel extends WatchedChannel> {
  readonly #firstMs: number;
  readonly #unanswered: (channel: Channel, afterMs: number) => void;
  #inARow = 0;

  /**
   * @param firstMs how long an attempt may take, in milliseconds; twice as long after each that got no answer, up to a
   *   minute
   * @param unanswered called once an attempt has taken longer; it alone decides what becomes of the channel
   */
  constructor(firstMs: number, unanswered: (channel: Channel, afterMs: number) => void) {
    this.#firstMs = firstMs;
    this.#unanswered = unanswered;
  }

  /** Looks at a channel from now on until it is shut down. */
  watch(channel: Channel): void {
    const now = channel.getConnectivityState(false);
    if (now === state.SHUTDOWN) return;
    if (now === state.READY) this.#inARow = 0;
    const timer = now === state.CONNECTING ? this.#limit(channel) : undefined;
    channel.watchConnectivityState(now, Infinity, () => {
      clearTimeout(timer);
      this.watch(channel);
    });
  }

  /** Keeps no process alive: whoever waits for the connection does. */
  #limit(channel: Channel): NodeJS.Timeout {
    const limitMs = Math.min(this.#firstMs * 2 ** this.#inARow, LONGEST_MS);
    return setTimeout(() => {
      this.#inARow += 1;
      this.#unanswered(channel, limitMs);
    }, limitMs).unref();
  }
}
