import { DEFAULT_NAMESPACE } from '../../../domain/namespaces/namespace.ts';
import { checkDefinition } from '../../../api/endpoints/tasks/task-definitions.ts';
import { HttpError } from '../../../api/errors.ts';
import { CreateTask, UpdateTask } from '../../../api/schemas/schemas.ts';
import { bodyCheck } from '../../../api/serving/validation.ts';
import type { Instant } from '../../../domain/clock.ts';
import { RefusalError } from '../../../domain/errors.ts';
import { anchorAt } from '../../../domain/tasks/task.ts';
import { scheduleFields } from '../../../domain/tasks/task-commands.ts';
import { firstFire } from '../../../domain/tasks/task-schedule.ts';
import { taskDefaults, type TaskDefinition } from '../../../domain/tasks/task-definition.ts';
import { rejectionText } from '../calling/client.ts';
import type { Step } from './apply-plan.ts';

const checkCreated = bodyCheck(CreateTask);
const checkChanged = bodyCheck(UpdateTask);

/** Tools and arguments are not checked here, as only the service knows them. */
const anyTools = {
  of: () => ({ schemaOf: () => undefined, isOwn: () => false, names: () => [] }),
  isOwn: () => false,
  revision: 0,
  builtIn: [],
};

/**
 * The part of a step that the service would reject, by its own checks of fields, schedule and pipeline. Permissions and
 * the arguments of tools are not checked. Returns null if nothing is wrong.
 */
export function rejectionOf(step: Step, now: Instant): string | null {
  if (step.kind !== 'create' && step.kind !== 'change') return null;
  try {
    if (step.kind === 'create') {
      checkCreated(step.wanted.fields);
      check({ ...taskDefaults, ...step.wanted.fields }, true, now);
    } else {
      checkChanged(step.changes);
      const isRescheduled = scheduleFields.some((field) => Object.hasOwn(step.changes, field));
      check({ ...step.task, ...step.changes }, isRescheduled, now);
    }
    return null;
  } catch (error) {
    if (error instanceof HttpError || error instanceof RefusalError) {
      return rejectionText(error.message, error.details);
    }
    throw error;
  }
}

/** @throws HttpError, RefusalError */
function check(fields: object, isRescheduled: boolean, now: Instant): void {
  const place = { namespace: DEFAULT_NAMESPACE, now };
  const { definition } = checkDefinition(fields as TaskDefinition, { tools: anyTools }, place);
  if (isRescheduled) firstFire(definition, anchorAt(now), now);
}
