import type { Job } from './leased-job.ts';
import type { WorkerLog } from './worker-log.ts';

/** A tool that pipelines can use by its name. */
export interface Tool {
  /** Shown to people and language models. */
  readonly description: string;
  /** JSON schema of the arguments; `{}` allows any. The service checks arguments before it hands out a job. */
  readonly schema: object;
  /**
   * Does a job. Returns JSON, at most 1 MB, which becomes the step's result. It may be called again for the same job
   * after a failure; `job.idempotencyKey` is the same then.
   * @throws PermanentError if no other try can help; after any other error the step may be tried again
   */
  run(args: Readonly<Record<string, unknown>>, job: Job): unknown;
}

export interface WorkerOptions {
  /** Of the service, such as `http://127.0.0.1:8080`. */
  readonly url: string;
  /** An agent with the scope `jobs:work`. */
  readonly agentId: string;
  readonly agentSecret?: string;
  /** One worker has a name at a time: a later one replaces it. Default: from the host name and the process id. */
  readonly name?: string;
  /** How many jobs it does at a time. Default: 10. */
  readonly slots?: number;
  /** What the `on` of a step can ask for. */
  readonly labels?: Readonly<Record<string, string>>;
  /** By name, such as `emails.send`. */
  readonly tools: Readonly<Record<string, Tool>>;
  /** How long `stop` waits for running jobs. Default: 25. */
  readonly shutdownSeconds?: number;
  /** Stops on SIGTERM and SIGINT. A second signal ends the process at once. Default: false. */
  readonly handleSignals?: boolean;
  /** Default: JSON lines on standard error. */
  readonly log?: WorkerLog;
  /** Default: the platform's. */
  readonly fetch?: typeof fetch;
}
