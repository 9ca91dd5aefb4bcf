import { Type } from '@sinclair/typebox';

/**
 * The payload of a task, as far as its schema goes: the pipeline in it is checked by `checkPayload`, which knows the
 * tools. `/openapi.json` has it in full, under this title.
 */
export const TaskPayload = Type.Record(Type.String(), Type.Unknown(), { title: 'TaskPayload' });
