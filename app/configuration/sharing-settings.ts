import { wholeNumber, type Environment } from './setting-readers.ts';

/** The settings that limit what one agent, namespace or address may take. */
export const sharingVariables = [
  'SVC_SLOTS_PER_AGENT',
  'SVC_SLOTS_PER_NAMESPACE',
  'SVC_WAITING_RUNS_PER_AGENT',
  'SVC_WAITING_RUNS_PER_NAMESPACE',
  'SVC_LIVE_STREAMS_PER_AGENT',
  'SVC_CONNECTIONS_PER_ADDRESS',
  'SVC_UNAUTHENTICATED_CONNECTIONS',
] as const;

/** Limits of what one agent, namespace or address may take. Each comment ends with the default. */
export interface SharingSettings {
  /** `SVC_SLOTS_PER_AGENT`: the most slots of a process that one agent's runs may hold. All. */
  readonly slotsPerAgent: number | null;
  /** `SVC_SLOTS_PER_NAMESPACE`: the same for a namespace. All. */
  readonly slotsPerNamespace: number | null;
  /**
   * `SVC_WAITING_RUNS_PER_AGENT`: the most waiting runs of an agent; it can request no more beyond that. 0: no limit.
   * 100,000.
   */
  readonly waitingRunsPerAgent: number;
  /** `SVC_WAITING_RUNS_PER_NAMESPACE`: the same for a namespace; 0: no limit. 0. */
  readonly waitingRunsPerNamespace: number;
  /** `SVC_LIVE_STREAMS_PER_AGENT`: the most open live streams of an agent in a process; 0: no limit. 1,000. */
  readonly liveStreamsPerAgent: number;
  /** `SVC_CONNECTIONS_PER_ADDRESS`: the most connections of an address to a process; 0: no limit. 1,000. */
  readonly connectionsPerAddress: number;
  /**
   * `SVC_UNAUTHENTICATED_CONNECTIONS`: the most connections to a process without a valid token so far; 0: no limit.
   * 10,000.
   */
  readonly unauthenticatedConnections: number;
}

/** Reads the limits. @throws ConfigurationError */
export function sharingConfiguration(env: Environment): SharingSettings {
  const limit = (variable: string, otherwise: number): number =>
    wholeNumber(env, variable, { from: 0, to: 1_000_000_000, otherwise });
  const slots = (variable: string): number | null =>
    wholeNumber(env, variable, { from: 1, to: 10_000, otherwise: 0 }) || null;
  return {
    slotsPerAgent: slots('SVC_SLOTS_PER_AGENT'),
    slotsPerNamespace: slots('SVC_SLOTS_PER_NAMESPACE'),
    waitingRunsPerAgent: limit('SVC_WAITING_RUNS_PER_AGENT', 100_000),
    waitingRunsPerNamespace: limit('SVC_WAITING_RUNS_PER_NAMESPACE', 0),
    liveStreamsPerAgent: limit('SVC_LIVE_STREAMS_PER_AGENT', 1_000),
    connectionsPerAddress: limit('SVC_CONNECTIONS_PER_ADDRESS', 1_000),
    unauthenticatedConnections: limit('SVC_UNAUTHENTICATED_CONNECTIONS', 10_000),
  };
}
