import { Type } from '@sinclair/typebox';
import { Refusal } from '../../domain/errors.ts';
import type { JsonObject } from '../../domain/json.ts';
import { defineTool } from './basic-tools.ts';
import { ToolError, type CallOrigin, type Tool, type ToolCall } from './tool.ts';

/** On whose behalf, and because of what, a tool acts on the service. */
export interface ActionOrigin {
  /** Id of the agent that acts, with its own scopes: the task's `created_by`. */
  readonly actor: string;
  /** The run that asks; what follows from the action names it as its cause. */
  readonly causation: { readonly runId: string; readonly taskId: string; readonly step: string };
  /** The same for each try of the same step of the same run, so that a repetition is the same command. */
  readonly commandId: string;
  /** Of a call outside of a run, which is then nobody's cause. */
  readonly origin?: CallOrigin | undefined;
  readonly signal: AbortSignal;
}

/**
 * What tools do to the service itself, as the agent's own commands would.
 * Both throw Refusal for what the agent may not do or what makes no sense (trying again does not help), and any
 * other error for what may pass.
 */
export interface ServiceActions {
  /** Publishes an event, which may trigger tasks. */
  publishEvent(
    request: { readonly topic: string; readonly payload: JsonObject } & ActionOrigin,
  ): Promise<{
    readonly event_id: string;
    readonly stream_id: string;
    readonly triggered_tasks: readonly string[];
  }>;
  /** Requests a run of a task, as run_now does. */
  runTask(
    request: { readonly task_id: string } & ActionOrigin,
  ): Promise<{ readonly run_id: string }>;
}

/** `events.publish` and `tasks.run`. */
export function serviceTools(actions: ServiceActions): readonly Tool[] {
  const publish = defineTool({
    name: 'events.publish',
    description: 'Publishes an event under a topic.',
    schema: Type.Object(
      {
        topic: Type.String({
          pattern: '^[A-Za-z0-9_.:/-]{1,200}$',
          description: 'a topic of 1 to 200 characters A-Z a-z 0-9 _ . : / -',
        }),
        payload: Type.Unsafe<JsonObject>({
          type: 'object',
          description: 'the content of the event, any JSON object',
        }),
      },
      { additionalProperties: false },
    ),
    withoutSecrets: true,
    run: async ({ topic, payload }, call) => {
      const request = { topic, payload, ...originOf(call) };
      const { event_id, stream_id, triggered_tasks } = await healing(actions.publishEvent(request));
      return { event_id, stream_id, triggered_tasks };
    },
  });
  const run = defineTool({
    name: 'tasks.run',
    description: 'Requests a run of another task, now.',
    schema: Type.Object(
      {
        task_id: Type.String({
          minLength: 1,
          maxLength: 64,
          description: 'id of the task, a UUID',
        }),
      },
      { additionalProperties: false },
    ),
    withoutSecrets: true,
    run: async ({ task_id }, call) => {
      const { run_id } = await healing(actions.runTask({ task_id, ...originOf(call) }));
      return { run_id };
    },
  });
  return [publish, run];
}

function originOf(call: ToolCall): ActionOrigin {
  const { actAs, runId, taskId, step, idempotencyKey, origin, signal } = call;
  const causation = { runId, taskId, step };
  return { actor: actAs, causation, commandId: idempotencyKey, origin, signal };
}

/** A refusal stays one however often it is asked again. */
async function healing<T>(action: Promise<T>): Promise<T> {
  try {
    return await action;
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    throw new ToolError(error.message, { retryable: false, cause: error });
  }
}
