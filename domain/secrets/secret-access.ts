import { toIso, type Clock } from '../clock.ts';
import { PipelineError } from '../pipeline/pipeline-error.ts';
import type { SecretValues } from '../pipeline/pipeline-secrets.ts';
import { SecretError, type Secret, type SecretSource } from './secret-source.ts';

/** The user of a secret, and the purpose. */
export interface SecretUser {
  readonly namespace: string;
  /** The agent on whose behalf it is used: the task's `created_by`, or the agent of a webhook. */
  readonly agentId: string;
  /** Null: a test message of a webhook. */
  readonly taskId: string | null;
  readonly runId: string | null;
  readonly step: string | null;
}

/** A use, for the record. */
export interface SecretUse extends SecretUser {
  readonly secret: Pick<Secret, 'name' | 'version' | 'source'>;
}

/** Opens secrets for runs and webhooks, checks whether they may be used, and records each use. */
export class SecretAccess {
  readonly #source: SecretSource;
  readonly #record: (use: SecretUse) => void;
  readonly #clock: Pick<Clock, 'now'>;

  constructor(source: SecretSource, record: (use: SecretUse) => void, clock: Pick<Clock, 'now'>) {
    this.#source = source;
    this.#record = record;
    this.#clock = clock;
  }

  /**
   * The values of secrets, for masking, including expired ones. A secret that its namespace may not use is left out,
   * because nobody received it.
   * @throws SecretError if a backend is unavailable
   */
  readonly values: SecretValues = async (namespace, names) => {
    const values = new Map<string, string>();
    for (const name of names) {
      try {
        const secret = await this.#source.find(namespace, name);
        if (secret !== undefined) values.set(name, secret.value);
      } catch (error) {
        if (!(error instanceof SecretError) || error.retryable) throw error;
      }
    }
    return values;
  };

  /**
   * Opens a secret and records its use.
   * @throws PipelineError if there is none; SecretError if it cannot be read, may not be used here or has expired
   */
  async open(name: string, user: SecretUser): Promise<Secret> {
    const secret = await this.#source.find(user.namespace, name);
    if (secret === undefined) {
      throw new PipelineError(`there is no secret ${name} in the namespace ${user.namespace}`);
    }
    requireTask(secret, user.taskId);
    this.#requireCurrent(secret);
    this.#record({ ...user, secret });
    return secret;
  }

  /**
   * The limits of a secret; null if there is no such secret, or it cannot be read.
   * @throws SecretError if a backend is unavailable
   */
  async limitsOf(
    namespace: string,
    name: string,
  ): Promise<Pick<Secret, 'allowTasks' | 'expiresAt'> | null> {
    try {
      return (await this.#source.find(namespace, name)) ?? null;
    } catch (error) {
      if (!(error instanceof SecretError) || error.retryable) throw error;
      return null;
    }
  }

  /** @throws SecretError for an expired secret; a retry would not help, because only a person can set it again */
  #requireCurrent({ name, expiresAt }: Secret): void {
    if (expiresAt === null || expiresAt > this.#clock.now()) return;
    throw new SecretError(
      `the secret ${name} expired at ${toIso(expiresAt)}: ` +
        `set it again with a later expires_at, by PUT /secrets/${name} or svc secrets set ${name}`,
    );
  }
}

/** @throws SecretError for a task that may not use the secret */
function requireTask({ name, allowTasks }: Secret, taskId: string | null): void {
  if (allowTasks === null || (taskId !== null && allowTasks.includes(taskId))) return;
  const who = taskId === null ? 'a message without a task' : `the task ${taskId}`;
  throw new SecretError(`${who} may not use the secret ${name}: it is not in its allow_tasks`);
}
