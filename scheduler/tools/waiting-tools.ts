import { Type } from '@sinclair/typebox';
import type { Instant } from '../../domain/clock.ts';
import { parseExpression } from '../../domain/pipeline/expression.ts';
import { MAX_WAIT_SECONDS } from '../../domain/pipeline/pipeline.ts';
import { topicPatternIssue } from '../../domain/schedule/topic-pattern.ts';
import { parseInstant, TimestampError } from '../../domain/schedule/timestamp.ts';
import { defineTool } from './basic-tools.ts';
import { Suspension, ToolError, type Tool, type ToolCall } from './tool.ts';

/** Default limits of a wait, in seconds. */
const WEEK_SECONDS = 7 * 86_400;

/** The longest sleep of a call outside runs, which would not survive a crash. Seconds. */
const MAX_DIRECT_SLEEP_SECONDS = 60;

const closed = { additionalProperties: false };

/** The time limit of a step's wait. */
export const timeoutSeconds = (seconds: number) =>
  Type.Optional(
    Type.Number({
      exclusiveMinimum: 0,
      maximum: MAX_WAIT_SECONDS,
      default: seconds,
      description: 'maximum seconds to wait',
    }),
  );

const sleep = defineTool({
  name: 'sleep',
  description: 'Waits for a number of seconds, or until an instant.',
  schema: Type.Object(
    {
      seconds: Type.Optional(
        Type.Number({
          minimum: 0,
          maximum: MAX_WAIT_SECONDS,
          description: 'how long to wait, from the start of the step',
        }),
      ),
      until: Type.Optional(
        Type.String({
          description:
            'an instant at which to continue, such as 2026-03-01T09:00:00Z; instead of `seconds`',
        }),
      ),
    },
    { ...closed, minProperties: 1, maxProperties: 1 },
  ),
  run: ({ seconds, until }, call) => {
    const now = call.clock.now();
    const end = until === undefined ? now + (seconds ?? 0) * 1000 : instantOf(until);
    const slept = Math.max(0, end - now) / 1000;
    if (slept > MAX_WAIT_SECONDS) {
      throw new ToolError('until must be within a year from now', { retryable: false });
    }
    const result = { slept_seconds: seconds ?? slept };
    if (slept === 0) return result;
    if (call.origin === undefined) return new Suspension({ kind: 'timer', seconds: slept }, end);
    if (slept <= MAX_DIRECT_SLEEP_SECONDS) {
      return call.clock.sleep(slept * 1000, call.signal).then(() => result);
    }
    const message = `outside a run, sleep is limited to ${MAX_DIRECT_SLEEP_SECONDS} s; create a task for it`;
    throw new ToolError(message, { retryable: false });
  },
});

function instantOf(text: string): Instant {
  try {
    return parseInstant(text, null);
  } catch (error) {
    if (!(error instanceof TimestampError)) throw error;
    throw new ToolError(`until: ${error.message}`, { retryable: false });
  }
}

const waitForEvent = defineTool({
  name: 'wait.event',
  description: 'Waits for an event on a topic.',
  schema: Type.Object(
    {
      topic: Type.String({
        pattern: '^[A-Za-z0-9_.:/*#-]{1,200}$',
        description: 'a topic, or a pattern as in schedules: `orders.*`',
      }),
      if: Type.Optional(
        Type.String({
          minLength: 1,
          description: 'JMESPath over `event`, without `${…}`; the event must satisfy it',
        }),
      ),
      since: Type.Optional(
        Type.Unsafe<'run'>({
          type: 'string',
          enum: ['run'],
          description: 'also counts events published since the run was requested',
        }),
      ),
      timeout_seconds: timeoutSeconds(WEEK_SECONDS),
    },
    closed,
  ),
  synchronous: true,
  evaluates: true,
  recordsArguments: true,
  run: ({ topic, if: condition, since, timeout_seconds }, call) => {
    const until = limitOf(call, timeout_seconds ?? WEEK_SECONDS);
    const issue = topicPatternIssue(topic);
    if (issue !== null) throw new ToolError(`topic: ${issue}`, { retryable: false });
    const fault = condition === undefined ? null : conditionIssue(condition);
    if (fault !== null) throw new ToolError(`if: ${fault}`, { retryable: false });
    const only = condition === undefined ? {} : { if: condition };
    const from = since === undefined ? {} : { since };
    return new Suspension({ kind: 'event', topic, ...only, ...from }, until);
  },
});

/** The fault in the condition of a wait for an event; null if there is none. */
function conditionIssue(condition: string): string | null {
  const { error, roots } = parseExpression(condition);
  if (error !== null) return error;
  // A condition that does not read `event` does not depend on the event, so it is a mistake.
  const readsEvent = roots.size === 0 || roots.has('event') || /[@$]/.test(condition);
  return readsEvent
    ? null
    : 'must read event, such as event.payload.id; insert values of the run with ${…}';
}

const approval = defineTool({
  name: 'approval',
  description: 'Waits until a person approves or rejects.',
  schema: Type.Object(
    {
      message: Type.String({
        minLength: 1,
        maxLength: 4000,
        description: 'what is to be approved',
      }),
      approvers: Type.Optional(
        Type.Array(Type.String({ minLength: 1, maxLength: 100 }), {
          minItems: 1,
          maxItems: 100,
          description:
            'ids of agents and `scope:<name>`; left out: everyone with the scope `approvals:write`',
        }),
      ),
      timeout_seconds: timeoutSeconds(WEEK_SECONDS),
      on_timeout: Type.Optional(
        Type.Unsafe<'fail' | 'reject' | 'approve'>({
          type: 'string',
          enum: ['fail', 'reject', 'approve'],
          default: 'fail',
          description: 'what happens if nobody decides in time',
        }),
      ),
    },
    closed,
  ),
  synchronous: true,
  withoutSecrets: true,
  run: ({ message, approvers, timeout_seconds, on_timeout = 'fail' }, call) => {
    const until = limitOf(call, timeout_seconds ?? WEEK_SECONDS);
    const who = approvers === undefined ? {} : { approvers };
    return new Suspension({ kind: 'approval', message, ...who, on_timeout }, until);
  },
});

/** When a wait ends by itself. @throws ToolError outside a run, because only steps of runs can wait */
export function limitOf(call: ToolCall, seconds: number): Instant {
  if (call.origin !== undefined) {
    const message = 'this tool waits, which is only possible in a run; create a task for it';
    throw new ToolError(message, { retryable: false });
  }
  return call.clock.now() + seconds * 1000;
}

/** The tools whose steps wait. */
export const waitingTools: readonly Tool[] = [sleep, waitForEvent, approval];
