import { Type, type Static } from '@sinclair/typebox';
import { OneOf, closed } from '../../domain/events/schema-parts.ts';
import { approvalStates } from '../../domain/vocabulary.ts';
import { pageParameters } from '../endpoints/listing.ts';

/** Query of `GET /approvals`. */
export const ApprovalQuery = Type.Object({
  ...pageParameters,
  state: Type.Optional(OneOf(approvalStates)),
  task_id: Type.Optional(Type.String({ format: 'uuid' })),
  run_id: Type.Optional(Type.String({ format: 'uuid' })),
});
export type ApprovalQuery = Static<typeof ApprovalQuery>;

/** Body of `POST /approvals/{approval_id}/approve` and `…/reject`. */
export const DecideApproval = closed({
  comment: Type.Optional(Type.String({ minLength: 1, maxLength: 2000, format: 'well-formed' })),
});
export type DecideApproval = Static<typeof DecideApproval>;

/** Body of `POST /callbacks/{token}`: the step's result, any JSON. */
export const CompleteCallback = Type.Unknown();

/** Body of `POST /callbacks/{token}/fail`. */
export const FailCallback = Type.Object(
  {
    error: Type.String({ minLength: 1, maxLength: 4000, format: 'well-formed' }),
    retryable: Type.Optional(Type.Boolean({ default: false })),
  },
  { title: 'FailCallback', additionalProperties: false },
);
export type FailCallback = Static<typeof FailCallback>;
