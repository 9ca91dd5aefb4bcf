import type { JsonObject } from '../json.ts';
import { compilePipeline } from './compile.ts';
import { Secrets } from './secrets.ts';

/** The values of a namespace's secrets, for masking. Secrets that do not exist are left out. */
export type SecretValues = (
  namespace: string,
  names: readonly string[],
) => Promise<ReadonlyMap<string, string>>;

/**
 * The values of secrets that a task's pipeline names, to mask them in the events that a run of the task appends.
 * Returns at once if it names none.
 * @param payload of the task, at the revision that the run is pinned to
 * @throws SecretError if a backend is unavailable
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

/** For a service without secrets. */
export const noSecretValues: SecretValues = async () => new Map();
