import type { Job } from './leased-job.ts';
import type { WorkerLog } from './worker-log.ts';

/** A tool that pipelines can use by its name. */
export interface Tool {
  /** Shown to people and language models. */
  readonly description: string;
  /** JSON schema of the arguments; `{}` allows any. The service checks arguments before it hands out a job. */
  readonly schema: object;
  /**
   * Does a job. Returns JSON, at most 1 MB, which becomes the step's result. After a failure it may be called again for
   * the same job, with the same `job.idempotencyKey`.
   * @throws PermanentError if no retry can help; after any other error the step may be retried
   */
  run(args: Readonly<Record<string, unknown>>, job: Job): unknown;
}

export interface WorkerOptions {
  /** The address of the service, such as `http://127.0.0.1:8080`. */
  readonly url: string;
  /** An agent with the scope `jobs:work`. */
  readonly agentId: string;
  readonly agentSecret?: string;
  /**
   * A name belongs to one worker at a time, and a later worker replaces it. Default: made of the host name and the
   * process id.
   */
  readonly name?: string;
  /** How many jobs it does at a time. Default: 10. */
  readonly slots?: number;
  /** Labels that the `on` of a step can require. */
  readonly labels?: Readonly<Record<string, string>>;
  /** The tools by name, such as `emails.send`. */
  readonly tools: Readonly<Record<string, Tool>>;
  /** How long `stop` waits for running jobs. Default: 25. */
  readonly shutdownSeconds?: number;
  /** Stops on SIGTERM and SIGINT. A second signal ends the process at once. Default: false. */
  readonly handleSignals?: boolean;
  /** Receives log messages. Default: JSON lines on standard error. */
  readonly log?: WorkerLog;
  /** Sends requests. Default: the platform's `fetch`. */
  readonly fetch?: typeof fetch;
}
