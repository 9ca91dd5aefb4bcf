import type { Issue } from '../../../domain/errors.ts';
import type { JsonObject } from '../../../domain/json.ts';
import { compilePipeline } from '../../../domain/pipeline/compile.ts';
import type { TaskDefinition } from '../../../domain/tasks/task-definition.ts';
import type { ApiDependencies } from '../../dependencies.ts';
import { badRequest } from '../../errors.ts';

/**
 * Checks that a task may use the secrets that its pipeline names. The use itself is checked again.
 * @throws HttpError 400 naming the secrets; SecretError where a backend is unavailable
 */
export async function checkSecretUse(
  { secretStore }: Pick<ApiDependencies, 'secretStore'>,
  taskId: string,
  { payload }: TaskDefinition,
  namespace: string,
): Promise<void> {
  const { secretNames } = compilePipeline(payload as JsonObject);
  if (secretNames.length === 0) return;
  const issues: Issue[] = [];
  for (const name of secretNames) {
    const tasks = await secretStore.access.tasksOf(namespace, name);
    if (tasks === null || tasks.includes(taskId)) continue;
    const remedy = `add the task's id to allow_tasks of the secret, then use it`;
    issues.push({ field: 'payload.pipeline', issue: `may not use the secret ${name}: ${remedy}` });
  }
  const [first, ...rest] = issues;
  if (first !== undefined) throw badRequest([first, ...rest]);
}
