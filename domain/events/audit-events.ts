import { Type } from '@sinclair/typebox';
import { event, Id, Nullable, OneOf, Timestamp } from './schema-parts.ts';

/** The result of a direct tool call. `refused`: the tool was not called. */
const toolCallOutcomes = ['done', 'failed', 'refused'] as const;
export type ToolCallOutcome = (typeof toolCallOutcomes)[number];

/** Events of `refusals-<agent>-<day>`, `calls-<agent>-<day>` and `reads-<agent>-<day>`: audited requests that changed nothing. */
export const auditEvents = {
  /**
   * A refused request of a known agent (401, 403, 409, 412), or a callback that came too late. The first ones of a
   * minute are recorded individually, the others as sums by action, status and code.
   */
  CommandRefused: event({
    agent_id: Id,
    /** Method and path as in the OpenAPI description: `POST /tasks/{id}/pause`. */
    action: Type.String(),
    /** The requested path; null for a sum. */
    path: Nullable(Type.String()),
    status: Type.Integer({ minimum: 400, maximum: 499 }),
    /** The code in the error body. */
    code: Type.String(),
    count: Type.Integer({ minimum: 1 }),
    first_at: Timestamp,
    last_at: Timestamp,
    /** The step whose wait had ended before the call; left out of a sum. */
    run_id: Type.Optional(Id),
    step: Type.Optional(Type.String()),
  }),
  /**
   * An agent called a tool directly, outside a run. Arguments and result are left out: they may hold secrets. The first
   * calls of a minute are recorded one by one, the others as sums.
   */
  ToolCalled: event({
    agent_id: Id,
    tool: Type.String(),
    outcome: OneOf(toolCallOutcomes),
    /** The code of the error, such as `tool_failed` or `unavailable`; null if there was none. */
    code: Nullable(Type.String()),
    count: Type.Integer({ minimum: 1 }),
    first_at: Timestamp,
    last_at: Timestamp,
  }),
  /** An agent read the audit, or a past state. Recorded if `SVC_AUDIT_READS` is set. */
  AuditRead: event({
    agent_id: Id,
    /** As above. */
    action: Type.String(),
    /** Parameters of path and query. */
    asked: Type.Record(Type.String(), Type.String()),
  }),
} as const;
