import { placeIssue } from '../../domain/pipeline/check-payload.ts';
import type { CompiledCall } from '../../domain/pipeline/compile.ts';
import { PipelineError } from '../../domain/pipeline/pipeline-error.ts';
import { ANY_HOST } from '../../domain/secrets/allowed-hosts.ts';
import type { Secret } from '../../domain/secrets/secret-source.ts';
import type { Tool } from '../tools/tool.ts';
import type { Progress } from './pipeline-execution-progress.ts';

/**
 * Opens the secrets in a step's arguments, at the time of their use. They are checked again, because a stored task may
 * be older than the rules.
 * @param name of the step, or the item of a `for_each`
 * @throws PipelineError if a secret may not be given to the tool; SecretError
 */
export async function openSecrets(
  progress: Progress,
  { secretPlaces, uses }: CompiledCall,
  name: string,
  tool: Tool,
): Promise<readonly Secret[]> {
  for (const place of secretPlaces) {
    const issue = placeIssue(uses, tool.schema, tool.isExternal !== true, place);
    if (issue !== null) throw new PipelineError(issue);
  }
  const opened: Secret[] = [];
  for (const secretName of new Set(secretPlaces.map((place) => place.name))) {
    const secret = await progress.environment.secrets.open(secretName, name);
    progress.secrets.hide(secret.value);
    if (tool.checksHosts !== true && !secret.allowHosts.includes(ANY_HOST)) {
      throw new PipelineError(
        `the secret ${secretName} cannot be given to ${uses}: the service does not see where that tool sends it, ` +
          `so its allow_hosts must be ["${ANY_HOST}"]`,
      );
    }
    opened.push(secret);
  }
  return opened;
}
