import { HttpError } from '../../../api/errors.ts';
import { CreateTask, UpdateTask } from '../../../api/schemas/schemas.ts';
import { checkDefinition } from '../../../api/endpoints/tasks/task-definitions.ts';
import { bodyCheck } from '../../../api/serving/validation.ts';
import type { Instant } from '../../../domain/clock.ts';
import { Refusal } from '../../../domain/errors.ts';
import { anchorAt } from '../../../domain/tasks/task.ts';
import { rhythmFields } from '../../../domain/tasks/task-commands.ts';
import { firstFire } from '../../../domain/tasks/task-schedule.ts';
import { taskDefaults, type TaskDefinition } from '../../../domain/tasks/task-definition.ts';
import type { Step } from './apply-plan.ts';
import { refusalText } from '../calling/client.ts';

const checkCreated = bodyCheck(CreateTask);
const checkChanged = bodyCheck(UpdateTask);

/** Which tools there are, and what they take, the service alone knows. */
const anyTools = { schemaOf: () => undefined, revision: 0, builtIn: [] };

/**
 * What the service would refuse of a step, by the checks that it does itself: of the fields, of the schedule and of the
 * pipeline's shape. Not whether the caller may, and not the arguments of tools.
 *
 * @returns null where it finds nothing
 */
export function refusalOf(step: Step, now: Instant): string | null {
  if (step.kind !== 'create' && step.kind !== 'change') return null;
  try {
    if (step.kind === 'create') {
      checkCreated(step.wanted.fields);
      check({ ...taskDefaults, ...step.wanted.fields }, true, now);
    } else {
      checkChanged(step.changes);
      const rescheduled = rhythmFields.some((field) => Object.hasOwn(step.changes, field));
      check({ ...step.task, ...step.changes }, rescheduled, now);
    }
    return null;
  } catch (error) {
    if (error instanceof HttpError || error instanceof Refusal) {
      return refusalText(error.message, error.details);
    }
    throw error;
  }
}

/** @throws HttpError, Refusal */
function check(fields: object, rescheduled: boolean, now: Instant): void {
  // The schema has just been checked; what a task has beside them is looked at by nobody.
  const { definition } = checkDefinition(fields as TaskDefinition, { tools: anyTools }, now);
  if (rescheduled) firstFire(definition, anchorAt(now), now);
}
