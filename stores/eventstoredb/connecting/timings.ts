/** Timeouts and pauses of the adapter, in milliseconds; tests shorten them. */
export interface Timings {
  /** How long an append waits for a connection before it reports that nothing was sent. */
  readonly connectMs: number;
  /** How long a connection attempt may stay unanswered before the client looks for another node. */
  readonly establishMs: number;
  /** How long one append attempt may take before its outcome counts as unknown. */
  readonly appendAttemptMs: number;
  /** How long an append is repeated while its outcome is unknown. */
  readonly appendOverallMs: number;
  /** How long a read may stall before the log counts as unavailable. */
  readonly readMs: number;
  /** The same for `ping`, which must answer within two seconds. */
  readonly pingMs: number;
  /** The first pause between attempts; it doubles from there, with jitter. */
  readonly firstPauseMs: number;
  /** The longest pause between attempts at an append or a read. */
  readonly longestPauseMs: number;
  /** The longest pause between attempts to subscribe. */
  readonly longestResubscribePauseMs: number;
  /** How long the subscription may lack an event that this process already knows. Then the log is read. */
  readonly probeMs: number;
  /** How often the position of the last event is read while the subscription lacks no known event. */
  readonly heartbeatMs: number;
  /** How long a subscription may lack an event found by a read before it counts as dead. */
  readonly silenceMs: number;
  /** How long a node may lack events shown by another before the log counts as replaced. */
  readonly behindMs: number;
}

/**
 * TCP repeats its first packet after one, three and seven seconds, and each may still be answered. (gRPC's own limit is
 * 20 s, `MIN_CONNECT_TIMEOUT`; grpc-js has none.)
 */
const ESTABLISH_MS = 10_000;

/** Production values. A read from a dead server fails with `UNAVAILABLE` after 2.5 s. */
export const defaultTimings: Timings = {
  connectMs: 2_000,
  establishMs: ESTABLISH_MS,
  appendAttemptMs: 3_000,
  appendOverallMs: 8_000,
  readMs: 2_500,
  pingMs: 1_800,
  firstPauseMs: 50,
  longestPauseMs: 1_000,
  longestResubscribePauseMs: 5_000,
  probeMs: 1_000,
  heartbeatMs: 5_000,
  silenceMs: 5_000,
  behindMs: 5_000,
};
