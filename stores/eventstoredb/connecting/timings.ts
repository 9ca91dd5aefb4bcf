/** How long the adapter waits for what. All in milliseconds; tests make them short. */
export interface Timings {
  /** How long an append waits for a connection before it says that nothing was sent. */
  readonly connectMs: number;
  /** How long an attempt to connect may stay without an answer before it is given up, and a node sought anew. */
  readonly establishMs: number;
  /** How long one attempt at an append may take before its outcome counts as unknown. */
  readonly appendAttemptMs: number;
  /** How long an append is repeated while its outcome is unknown. */
  readonly appendOverallMs: number;
  /** How long a read may stand still before the log counts as unavailable. */
  readonly readMs: number;
  /** The same for `ping`, whose contract is two seconds. */
  readonly pingMs: number;
  /** The first pause between two attempts; it doubles from there, with jitter. */
  readonly firstPauseMs: number;
  /** The longest pause between two attempts at an append or a read. */
  readonly longestPauseMs: number;
  /** The longest pause between two attempts to subscribe. */
  readonly longestResubscribePauseMs: number;
  /** How long a subscription is quiet before it is asked whether it has caught up. */
  readonly settleMs: number;
  /** How often a quiet subscription is compared with the log itself. */
  readonly probeMs: number;
  /** How long a subscription may owe an event that a read has shown before it counts as dead. */
  readonly silenceMs: number;
  /** How long a node may lack what another has said of the log before it counts as another log. */
  readonly behindMs: number;
}

/**
 * How long an attempt to connect may take: TCP sends its first packet again after one, three and seven seconds, and each
 * of these may still be answered. (gRPC's own rules give 20 s, its `MIN_CONNECT_TIMEOUT`; grpc-js has no limit.)
 */
const ESTABLISH_MS = 10_000;

/** What production uses. A dead server gives `UNAVAILABLE` to a read after 2.5 s. */
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
  settleMs: 20,
  probeMs: 1_000,
  silenceMs: 5_000,
  behindMs: 5_000,
};
