import { toIso, type Instant } from '../../../domain/clock.ts';
import type { Issue } from '../../../domain/errors.ts';
import type { JsonObject } from '../../../domain/json.ts';
import { compilePipeline } from '../../../domain/pipeline/compile.ts';
import type { TaskDefinition } from '../../../domain/tasks/task-definition.ts';
import type { ApiDependencies } from '../../dependencies.ts';
import { badRequest } from '../../errors.ts';

/**
 * Checks that a task may use the secrets that its pipeline names. Each use is checked again.
 * @returns warnings about secrets that have expired: they may be set again before the task runs
 * @throws HttpError 400 naming the secrets; SecretError if a backend is unavailable
 */
export async function checkSecretUse(
  { secretStore }: Pick<ApiDependencies, 'secretStore'>,
  taskId: string,
  { payload }: TaskDefinition,
  { namespace, now }: { readonly namespace: string; readonly now: Instant },
): Promise<readonly string[]> {
  const { secretNames } = compilePipeline(payload as JsonObject);
  const warnings: string[] = [];
  const issues: Issue[] = [];
  for (const name of secretNames) {
    const secret = await secretStore.access.limitsOf(namespace, name);
    if (secret === null) continue;
    const { allowTasks, expiresAt } = secret;
    if (allowTasks !== null && !allowTasks.includes(taskId)) {
      const remedy = `add the task's id to allow_tasks of the secret, then use it`;
      issues.push({
        field: 'payload.pipeline',
        issue: `may not use the secret ${name}: ${remedy}`,
      });
    } else if (expiresAt !== null && expiresAt <= now) {
      const what = `the secret ${name} expired at ${toIso(expiresAt)}`;
      warnings.push(`payload.pipeline: ${what}; steps that use it fail until it is set again`);
    }
  }
  const [first, ...rest] = issues;
  if (first !== undefined) throw badRequest([first, ...rest]);
  return warnings;
}
