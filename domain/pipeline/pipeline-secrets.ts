import type { JsonObject } from '../json.ts';
import { compilePipeline } from './compile.ts';
import { Secrets } from './secrets.ts';

/** The values of a namespace's secrets, to mask them; those that do not exist are left out. */
export type SecretValues = (
  namespace: string,
  names: readonly string[],
) => Promise<ReadonlyMap<string, string>>;

/**
 * The secrets that a task's pipeline names, to mask what comes into the log for one of its runs. At once where it names
 * none.
 * @param payload of the task, at the revision that the run is pinned to
 * @throws SecretError where a backend is unavailable
 */
export function pipelineSecrets(
  payload: JsonObject,
  namespace: string,
  values: SecretValues,
): Secrets | Promise<Secrets> {
  const { secretNames } = compilePipeline(payload);
  if (secretNames.length === 0) return new Secrets();
  return values(namespace, secretNames).then((found) => new Secrets(found.values()));
}

/** Where there are no secrets. */
export const noSecretValues: SecretValues = async () => new Map();
