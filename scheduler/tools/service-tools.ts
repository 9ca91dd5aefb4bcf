import { Type } from '@sinclair/typebox';
import { RefusalError } from '../../domain/errors.ts';
import type { JsonObject } from '../../domain/json.ts';
import { defineTool } from './basic-tools.ts';
import { limitOf, timeoutSeconds } from './waiting-tools.ts';
import { Suspension, ToolError, type CallOrigin, type Tool, type ToolCall } from './tool.ts';

/** The default limit of a wait for another run. */
const DAY_SECONDS = 86_400;

/** The agent for which a tool acts on the service, and the cause. */
export interface ActionOrigin {
  /** Id of the agent whose scopes apply: the task's `created_by`. */
  readonly actor: string;
  /** The run whose step acts: the cause of all resulting events. */
  readonly causation: { readonly runId: string; readonly taskId: string; readonly step: string };
  /** Identical for each try of a step, so that a retry repeats the same command. */
  readonly commandId: string;
  /** Set for a call outside a run, which is not a cause. */
  readonly origin?: CallOrigin | undefined;
  readonly signal: AbortSignal;
}

/**
 * Commands that tools issue as the agent would.
 * @throws RefusalError when the command is not allowed or invalid, which is permanent; any other error may pass
 */
export interface ServiceActions {
  /** Publishes an event; returns the tasks that it triggers. */
  publishEvent(
    request: { readonly topic: string; readonly payload: JsonObject } & ActionOrigin,
  ): Promise<{
    readonly event_id: string;
    readonly stream_id: string;
    readonly triggered_tasks: readonly string[];
  }>;
  /** Requests a run of a task, like run_now. @param request.parent the step that waits for its end */
  runTask(
    request: {
      readonly task_id: string;
      readonly params?: JsonObject | undefined;
      readonly parent?: { readonly run_id: string; readonly step: string };
    } & ActionOrigin,
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
      const { event_id, stream_id, triggered_tasks } = await permanentRefusal(
        actions.publishEvent(request),
      );
      return { event_id, stream_id, triggered_tasks };
    },
  });
  const run = defineTool({
    name: 'tasks.run',
    description: 'Requests a run of another task. With `wait`, it waits for the end of the run.',
    schema: Type.Object(
      {
        task_id: Type.String({
          minLength: 1,
          maxLength: 64,
          description: 'id of the task, a UUID',
        }),
        params: Type.Optional(
          Type.Unsafe<JsonObject>({
            type: 'object',
            description: 'overrides default params of that task, key by key',
          }),
        ),
        wait: Type.Optional(
          Type.Boolean({
            default: false,
            description:
              "whether the step waits for the run's end; its result is then the run's output",
          }),
        ),
        timeout_seconds: timeoutSeconds(DAY_SECONDS),
      },
      { additionalProperties: false },
    ),
    withoutSecrets: true,
    run: async ({ task_id, params, wait, timeout_seconds }, call) => {
      if (wait !== true) {
        const request = { task_id, params, ...originOf(call) };
        const { run_id } = await permanentRefusal(actions.runTask(request));
        return { run_id };
      }
      const until = limitOf(call, timeout_seconds ?? DAY_SECONDS);
      const origin = originOf(call);
      const { attempt = 1, runId, step } = call;
      // A later attempt requests another run, because the earlier one has failed.
      const commandId = attempt === 1 ? origin.commandId : `${origin.commandId}#${attempt}`;
      const parent = { run_id: runId, step };
      const asked = { task_id, params, ...origin, commandId, parent };
      const { run_id } = await permanentRefusal(actions.runTask(asked));
      return new Suspension({ kind: 'run', run_id, task_id }, until);
    },
  });
  return [publish, run];
}

function originOf(call: ToolCall): ActionOrigin {
  const { actAs, runId, taskId, step, idempotencyKey, origin, signal } = call;
  const causation = { runId, taskId, step };
  return { actor: actAs, causation, commandId: idempotencyKey, origin, signal };
}

/** Turns a refusal into a permanent failure of the step. */
async function permanentRefusal<T>(action: Promise<T>): Promise<T> {
  try {
    return await action;
  } catch (error) {
    if (!(error instanceof RefusalError)) throw error;
    throw new ToolError(error.message, { retryable: false, cause: error });
  }
}
