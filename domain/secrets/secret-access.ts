import { PipelineError } from '../pipeline/pipeline-error.ts';
import type { SecretValues } from '../pipeline/pipeline-secrets.ts';
import { SecretError, type Secret, type SecretSource } from './secret-source.ts';

/** Who uses a secret, and for what. */
export interface SecretUser {
  readonly namespace: string;
  /** On whose behalf: the task's `created_by`, or the agent of a webhook. */
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

/** Opens secrets for runs and webhooks, checks whether they may be used, and records it. */
export class SecretAccess {
  readonly #source: SecretSource;
  readonly #record: (use: SecretUse) => void;

  constructor(source: SecretSource, record: (use: SecretUse) => void) {
    this.#source = source;
    this.#record = record;
  }

  /**
   * The values of secrets, to mask them. One that its namespace may not use was given to nobody.
   * @throws SecretError where a backend is unavailable
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
   * Opens a secret for a use, which is recorded.
   * @throws PipelineError if there is none; SecretError if it cannot be read, or not be used here
   */
  async open(name: string, user: SecretUser): Promise<Secret> {
    const secret = await this.#source.find(user.namespace, name);
    if (secret === undefined) {
      throw new PipelineError(`there is no secret ${name} in the namespace ${user.namespace}`);
    }
    requireTask(secret, user.taskId);
    this.#record({ ...user, secret });
    return secret;
  }

  /** The tasks that may use a secret; null: all, or there is none. @throws SecretError where a backend is unavailable */
  async tasksOf(namespace: string, name: string): Promise<readonly string[] | null> {
    try {
      return (await this.#source.find(namespace, name))?.allowTasks ?? null;
    } catch (error) {
      if (!(error instanceof SecretError) || error.retryable) throw error;
      return null;
    }
  }
}

/** @throws SecretError for a task that is not among those of the secret */
function requireTask({ name, allowTasks }: Secret, taskId: string | null): void {
  if (allowTasks === null || (taskId !== null && allowTasks.includes(taskId))) return;
  const who = taskId === null ? 'a message without a task' : `the task ${taskId}`;
  throw new SecretError(`${who} may not use the secret ${name}: it is not in its allow_tasks`);
}
