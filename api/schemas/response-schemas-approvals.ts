import { Type, type Static } from '@sinclair/typebox';
import { Nullable, OneOf } from '../../domain/events/schema-parts.ts';
import { approvalStates } from '../../domain/vocabulary.ts';
import { agentName, done, id, pageOf, time } from './response-schemas.ts';

/** Responses about approvals and callbacks. */

export const Approval = Type.Object(
  {
    id,
    run_id: id,
    task_id: id,
    step: Type.String(),
    message: Type.String(),
    approvers: Nullable(Type.Array(Type.String())),
    approver_names: Nullable(
      Type.Array(Nullable(Type.String()), {
        description:
          'the names of the agents in `approvers`, in the same order; null for a scope or an agent of another namespace',
      }),
    ),
    state: OneOf(approvalStates),
    requested_at: time,
    expires_at: time,
    decided_by: Nullable(id),
    decided_by_name: agentName,
    decided_at: Nullable(time),
    comment: Nullable(Type.String()),
  },
  { title: 'Approval', additionalProperties: false },
);
export type Approval = Static<typeof Approval>;

export const ApprovalPage = pageOf('ApprovalPage', Approval);
export type ApprovalPage = Static<typeof ApprovalPage>;

export const ApprovalDecided = done({
  approval_id: id,
  run_id: id,
  task_id: id,
  step: Type.String(),
  state: OneOf(['approved', 'rejected'] as const),
});
export type ApprovalDecided = Static<typeof ApprovalDecided>;

export const CallbackTaken = done({ run_id: id, step: Type.String() });
export type CallbackTaken = Static<typeof CallbackTaken>;
