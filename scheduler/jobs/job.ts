import type { Instant } from '../../domain/clock.ts';

export type Labels = Readonly<Record<string, string>>;

/** What a worker can do. */
export interface Offer {
  readonly id: string;
  readonly namespace: string;
  readonly agent_id: string;
  readonly name: string;
  readonly tools: readonly { readonly name: string; readonly schema: object }[];
  readonly labels: Labels;
}

/** A suspended step that waits for a worker, in memory. Small, as there may be many: without its arguments. */
export interface Job {
  /** The wait's id. */
  readonly id: string;
  readonly runId: string;
  /** Of its run: only workers of it get the job. */
  readonly namespace: string;
  readonly taskId: string;
  /** The task's owner. */
  readonly agent: string;
  readonly step: string;
  readonly tool: string;
  /** Those that its worker must have. */
  readonly labels: Labels | undefined;
  readonly priority: number;
  /** Orders jobs of an agent that have the same priority. */
  readonly since: Instant;
  /** Orders jobs of the same millisecond. */
  readonly turn: number;
  /** Milliseconds that a worker has for it. */
  readonly limit: number;
  /** When its wait ends by itself. */
  readonly until: Instant;
  /** Which try of the step it is. */
  readonly tries: number;
  /** Workers get it only then. */
  readonly notBefore: Instant;
  /**
   * `later`: not before its time. `free`: a worker may have it. `taking`: it is on its way to a worker. `leased`: as far
   * as this process knows. `over`: its wait has ended.
   */
  state: 'later' | 'free' | 'taking' | 'leased' | 'over';
  /** When this process looks at its lease, on the steady clock. */
  lookAt: number;
  /** Schemas that its arguments do not fit. */
  unfit: Set<object> | null;
}

/** A job as a worker receives it. */
export interface HandedJob {
  readonly job_id: string;
  readonly lease: string;
  readonly run_id: string;
  readonly task_id: string;
  readonly step: string;
  readonly tool: string;
  readonly arguments: unknown;
  readonly idempotency_key: string;
  readonly attempt: number;
  readonly deadline: string;
  readonly traceparent: string | null;
}
