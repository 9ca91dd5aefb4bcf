import type { Instant } from '../../domain/clock.ts';

export type Labels = Readonly<Record<string, string>>;

/** The capabilities of a worker. */
export interface Offer {
  readonly id: string;
  readonly namespace: string;
  readonly agent_id: string;
  readonly name: string;
  readonly tools: readonly { readonly name: string; readonly schema: object }[];
  readonly labels: Labels;
}

/** A suspended step that waits for a worker, in memory. It leaves out its arguments, because there may be many jobs. */
export interface Job {
  /** The wait's id. */
  readonly id: string;
  readonly runId: string;
  /** The namespace of its run. Only workers of this namespace get the job. */
  readonly namespace: string;
  readonly taskId: string;
  /** The task's owner. */
  readonly agent: string;
  readonly step: string;
  readonly tool: string;
  /** Labels that its worker must have. */
  readonly labels: Labels | undefined;
  readonly priority: number;
  /** Orders jobs of an agent that have the same priority. */
  readonly since: Instant;
  /** Orders jobs of the same millisecond. */
  readonly turn: number;
  /** How many milliseconds a worker has for it. */
  readonly limit: number;
  /** When its wait ends by itself. */
  readonly until: Instant;
  /** The number of this try of the step. */
  readonly tries: number;
  /** The earliest time at which workers get it. */
  readonly notBefore: Instant;
  /**
   * `later`: its time has not come. `free`: a worker may have it. `taking`: it is being given to a worker. `leased`: a
   * worker has it, as far as this process knows. `over`: its wait has ended.
   */
  state: 'later' | 'free' | 'taking' | 'leased' | 'over';
  /** When this process next checks its lease, on the steady clock. */
  lookAt: number;
  /** Schemas that its arguments do not fit. */
  unfit: Set<object> | null;
}

/** A job in the form that a worker receives. */
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
