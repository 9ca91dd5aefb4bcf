import { Type } from '@sinclair/typebox';

/**
 * The payload of a task. `checkPayload`, which knows the tools, checks the payload's pipeline. `/openapi.json` has the
 * full schema under this title.
 */
export const TaskPayload = Type.Record(Type.String(), Type.Unknown(), { title: 'TaskPayload' });
