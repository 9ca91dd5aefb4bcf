/** gRPC's connectivity states, which the client passes on as numbers. */
export const CONNECTIVITY = {
  IDLE: 0,
  CONNECTING: 1,
  READY: 2,
  TRANSIENT_FAILURE: 3,
  SHUTDOWN: 4,
} as const;

/**
 * The longest limit for an attempt after unanswered ones. Milliseconds. gRPC leaves each socket open until the other side
 * or TCP ends it; at one a minute, a night of silence does not exhaust the process's descriptors.
 */
const MAX_ATTEMPT_MS = 60_000;

/** The part of a gRPC channel used here. */
interface WatchedChannel {
  getConnectivityState(tryToConnect: boolean): number;
  watchConnectivityState(current: number, deadline: number, changed: () => void): void;
}

/**
 * Limits connection attempts that get no answer. grpc-js (1.14) has no limit of its own for TCP, TLS or the server's
 * first settings, and pings only after those, so an unanswered attempt would last forever.
 */
export class AttemptTimeouts<Channel extends WatchedChannel> {
  readonly #firstMs: number;
  readonly #unanswered: (channel: Channel, afterMs: number) => void;
  #inARow = 0;

  /**
   * @param firstMs limit of an attempt in milliseconds; doubles after each unanswered one, up to a minute
   * @param unanswered called when an attempt exceeds its limit; decides what happens to the channel
   */
  constructor(firstMs: number, unanswered: (channel: Channel, afterMs: number) => void) {
    this.#firstMs = firstMs;
    this.#unanswered = unanswered;
  }

  /** Watches a channel until it is shut down. */
  watch(channel: Channel): void {
    const now = channel.getConnectivityState(false);
    if (now === CONNECTIVITY.SHUTDOWN) return;
    if (now === CONNECTIVITY.READY) this.#inARow = 0;
    const timer = now === CONNECTIVITY.CONNECTING ? this.#limit(channel) : undefined;
    channel.watchConnectivityState(now, Infinity, () => {
      clearTimeout(timer);
      this.watch(channel);
    });
  }

  /** Does not keep the process alive: callers that wait for the connection do. */
  #limit(channel: Channel): NodeJS.Timeout {
    const limitMs = Math.min(this.#firstMs * 2 ** this.#inARow, MAX_ATTEMPT_MS);
    return setTimeout(() => {
      this.#inARow += 1;
      this.#unanswered(channel, limitMs);
    }, limitMs).unref();
  }
}
