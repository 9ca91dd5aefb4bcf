import { Type } from '@sinclair/typebox';
import { Id, Nullable, OneOf, Timestamp, closed } from './schema-parts.ts';

/** What became of a tool that was called directly. `refused`: it was not carried out. */
export const toolCallOutcomes = ['done', 'failed', 'refused'] as const;
export type ToolCallOutcome = (typeof toolCallOutcomes)[number];

/** Events of `refusals-<agent>-<day>`, `calls-<agent>-<day>` and `reads-<agent>-<day>`: what an auditor asks for that changed nothing. */
export const auditEvents = {
  /**
   * A request of a known agent that was not allowed, or not possible: 401, 403, 409, 412. So many in a minute are
   * told one by one; the others of the minute are summed, by what was asked and how it was refused.
   */
  CommandRefused: {
    version: 1,
    schema: closed({
      agent_id: Id,
      /** Method and path as the interface's description writes it: `POST /tasks/{id}/pause`. */
      action: Type.String(),
      /** The path as it was asked for; null for a sum. */
      path: Nullable(Type.String()),
      status: Type.Integer({ minimum: 400, maximum: 499 }),
      /** Of the error body. */
      code: Type.String(),
      count: Type.Integer({ minimum: 1 }),
      first_at: Timestamp,
      last_at: Timestamp,
    }),
  },
  /**
   * An agent called a tool directly, past any run. Neither its arguments nor its result stand here: they may hold
   * secrets. So many in a minute are told one by one; the others of the minute are summed.
   */
  ToolCalled: {
    version: 1,
    schema: closed({
      agent_id: Id,
      tool: Type.String(),
      outcome: OneOf(toolCallOutcomes),
      /** Of the error: `tool_failed`, `unavailable`; null where there was none. */
      code: Nullable(Type.String()),
      count: Type.Integer({ minimum: 1 }),
      first_at: Timestamp,
      last_at: Timestamp,
    }),
  },
  /** Somebody read the audit, or the past. Only where `SVC_AUDIT_READS` asks for it. */
  AuditRead: {
    version: 1,
    schema: closed({
      agent_id: Id,
      /** As above. */
      action: Type.String(),
      /** What was asked for: parameters of path and query. */
      asked: Type.Record(Type.String(), Type.String()),
    }),
  },
} as const;
