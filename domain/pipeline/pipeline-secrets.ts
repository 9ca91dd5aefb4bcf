import type { JsonObject } from '../json.ts';
import { compilePipeline } from './compile.ts';
import { Secrets } from './secrets.ts';

/**
 * The secrets that a task's pipeline names, to mask what comes into the log for one of its runs.
 * @param payload of the task, at the revision that the run is pinned to
 * @param lookUp the value of `${secrets.NAME}` in this process; undefined where it has none
 */
export function pipelineSecrets(
  payload: JsonObject,
  lookUp: (name: string) => string | undefined,
): Secrets {
  const secrets = new Secrets(lookUp);
  for (const name of compilePipeline(payload).secretNames) secrets.expect(name);
  return secrets;
}
