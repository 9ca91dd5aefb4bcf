import type { Issue } from '../../../domain/errors.ts';
import type { JsonObject } from '../../../domain/json.ts';
import { changesBetween } from '../../../domain/record-changes.ts';
import { anchorAt, type LiveTask } from '../../../domain/tasks/task.ts';
import { scheduleFields } from '../../../domain/tasks/task-commands.ts';
import { withDefaults, type TaskDefinition } from '../../../domain/tasks/task-definition.ts';
import { firstFire } from '../../../domain/tasks/task-schedule.ts';
import { TaskChecked } from '../../schemas/response-schemas-tasks.ts';
import { CheckTask } from '../../schemas/schemas.ts';
import { endpoint, type Call, type Endpoint } from '../../endpoint.ts';
import { badRequest } from '../../errors.ts';
import { taskWithId } from '../lookup.ts';
import { checkDefinition } from './task-definitions.ts';
import { checkNewOwner, checkOwner, mayChange, requireOwner } from './task-ownership.ts';
import { wordsOf } from './task-records.ts';
import { checkSecretUse } from './task-secrets.ts';

/** Fields without which no task can be created. The caller is the owner by default. */
const required = ['title', 'description', 'schedule_kind', 'payload'] as const;

/** Replaces the id of a task that is not created. */
const NO_TASK = '';

const check = endpoint('POST /tasks/check', {
  operationId: 'checkTask',
  summary: 'Checks a new task, or a change of a task, without saving it',
  description:
    'With `task_id`, the other fields are changes of that task. ' +
    'The response is the same error if the task or change would be rejected.',
  scopes: ['tasks:write'],
  body: CheckTask,
  responses: { 200: TaskChecked },
  refusals: ['not_found', 'conflict'],
  async handle(call) {
    const { task_id, ...fields } = call.body;
    if (task_id === undefined) return { body: await checkNew(call, fields) };
    const id = task_id.toLowerCase();
    const task = await taskWithId(call, id);
    mayChange(call, id)(task);
    return { body: await checkChanges(call, id, task, fields) };
  },
});

export const checkEndpoints: readonly Endpoint[] = [check];

type Fields = Omit<CheckTask, 'task_id'>;
type Calling = Pick<Call, 'dependencies' | 'caller' | 'reach' | 'context'>;

async function checkNew(call: Calling, fields: Fields): Promise<object> {
  const issues: Issue[] = required
    .filter((field) => fields[field] === undefined)
    .map((field) => ({ field, issue: 'is required' }));
  const [first, ...rest] = issues;
  if (first !== undefined) throw badRequest([first, ...rest]);
  const { caller, dependencies, context } = call;
  const owner = (fields.created_by ?? caller?.agentId ?? '').toLowerCase();
  const namespace = await checkOwner(call, owner);
  const given = withDefaults({ ...fields, created_by: owner } as Parameters<
    typeof withDefaults
  >[0]);
  const place = { namespace, now: context.now };
  const { definition, warnings } = checkDefinition(given, dependencies, place);
  const ofSecrets = await checkSecretUse(dependencies, NO_TASK, definition, place);
  const anchor = anchorAt(context.now);
  const next_fire_at = firstFire(definition, anchor, context.now);
  return shown(null, definition, {
    anchor,
    next_fire_at,
    warnings: [...warnings, ...ofSecrets],
  });
}

async function checkChanges(
  call: Calling,
  id: string,
  task: LiveTask,
  fields: Fields,
): Promise<object> {
  const { dependencies, context } = call;
  const { now } = context;
  const changed = { ...task.definition, ...(fields as Partial<TaskDefinition>) };
  const place = { namespace: task.namespace, now };
  const { definition, warnings } = checkDefinition(changed, dependencies, place);
  if (fields.created_by !== undefined) await checkNewOwner(call, task, definition.created_by);
  else if (task.status !== 'canceled') await requireOwner(call, definition.created_by);
  const ofSecrets = await checkSecretUse(dependencies, id, definition, place);
  const isRescheduled = scheduleFields.some(
    (field) => definition[field] !== task.definition[field],
  );
  const isReset = definition.schedule_expr !== task.definition.schedule_expr;
  const anchor = isReset ? anchorAt(now) : task.anchor;
  const next_fire_at = isRescheduled ? firstFire(definition, anchor, now) : task.next_fire_at;
  return shown(task.definition, definition, {
    anchor,
    next_fire_at,
    warnings: [...warnings, ...ofSecrets],
  });
}

function shown(
  before: TaskDefinition | null,
  definition: TaskDefinition,
  {
    anchor,
    next_fire_at,
    warnings,
  }: {
    readonly anchor: string;
    readonly next_fire_at: string | null;
    readonly warnings: readonly string[];
  },
): object {
  const changes =
    before === null
      ? []
      : changesBetween(before as unknown as JsonObject, definition as unknown as JsonObject);
  return { schedule_text: wordsOf(definition, anchor), next_fire_at, changes, warnings };
}
