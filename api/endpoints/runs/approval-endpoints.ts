import { namespaceOf } from '../../../domain/namespaces/namespace.ts';
import { decidingScopes, decisionEnd, mayDecide } from '../../../domain/runs/approval.ts';
import { endWaitCommand, withMaskedReason } from '../../../domain/runs/wait-commands.ts';
import { approvals, waitsProjection, type WaitDocument } from '../../../projections/views/waits.ts';
import { ApprovalQuery, DecideApproval } from '../../schemas/approval-schemas.ts';
import {
  Approval,
  ApprovalDecided,
  ApprovalPage,
} from '../../schemas/response-schemas-approvals.ts';
import { ReadQuery } from '../../schemas/schemas.ts';
import {
  endpoint,
  idIn,
  success,
  type EndpointResponse,
  type Call,
  type Endpoint,
} from '../../endpoint.ts';
import { forbidden, notFound } from '../../errors.ts';
import type { ApiDependencies } from '../../dependencies.ts';
import { actorName, nameIn } from '../agent-names.ts';
import { listPage } from '../listing.ts';
import { inReach, ownTasks } from '../lookup.ts';
import { findWait, secretsOfRun } from './found-wait.ts';

const scopes = ['tasks:read'] as const;

const list = endpoint('GET /approvals', {
  operationId: 'listApprovals',
  summary: 'Lists approvals that steps wait for, and past decisions, newest first',
  scopes,
  acceptsOwn: true,
  query: ApprovalQuery,
  reads: [waitsProjection],
  responses: { 200: ApprovalPage },
  async handle(call) {
    const { dependencies, query, reach } = call;
    const { state, task_id, run_id } = query;
    const wanted = { state, task_id: task_id?.toLowerCase(), run_id: run_id?.toLowerCase() };
    const { filters, ...rest } = approvals(reach, wanted);
    const asked = { ...rest, filters: [...filters, ...(await ownTasks(call))] };
    return listPage(dependencies.readModel, waitsProjection, asked, query, (wait) =>
      show(wait, dependencies),
    );
  },
});

const one = endpoint('GET /approvals/:approval_id', {
  operationId: 'getApproval',
  summary: 'Shows an approval',
  scopes,
  acceptsOwn: true,
  query: ReadQuery,
  reads: [waitsProjection],
  responses: { 200: Approval },
  async handle(call) {
    const id = idIn(call, 'approval_id');
    const kept = await call.dependencies.readModel.get(waitsProjection, id);
    const wait = inReach({ reach: call.reach, own: null }, 'approval', id, kept?.document);
    if (wait.approval === null || !(await isOwn(call, wait))) throw notFound('approval', id);
    return { body: await show(wait, call.dependencies) };
  },
});

const deciding = {
  scopes: [],
  body: DecideApproval,
  bodyOptional: true,
  idempotent: true,
  responses: { 200: ApprovalDecided },
} as const;

const who =
  "Only the agents in the step's `approvers` may decide, named by id or by a scope. If it names none, the scope `approvals:write` is needed.";

const approve = endpoint('POST /approvals/:approval_id/approve', {
  ...deciding,
  operationId: 'approve',
  summary: 'Approves: the step that asked for it succeeds',
  description: who,
  handle: (call) => decide(call, true),
});

const reject = endpoint('POST /approvals/:approval_id/reject', {
  ...deciding,
  operationId: 'reject',
  summary: 'Rejects: the step that asked for it fails, or continues with `approved: false`',
  description: `${who} The step fails without a retry. With \`on_error: continue\`, its result has \`approved: false\`.`,
  handle: (call) => decide(call, false),
});

export const approvalEndpoints: readonly Endpoint[] = [list, one, approve, reject];

/** Whether a caller that sees only its own records sees a wait: the wait must belong to one of its tasks. */
async function isOwn(
  { dependencies, own }: Pick<Call, 'dependencies' | 'own'>,
  { task_id }: WaitDocument,
): Promise<boolean> {
  if (own === null) return true;
  const { state } = await dependencies.tasks.get(task_id);
  return state.status !== 'none' && state.definition.created_by === own;
}

/**
 * @throws HttpError 404, 403; RefusalError `STATE_CONFLICT` if it is already decided, has expired, or its run has ended
 */
async function decide(
  call: Call<DecideApproval | undefined>,
  approved: boolean,
): Promise<EndpointResponse> {
  const { dependencies, caller, context, body } = call;
  if (caller === null) throw new Error('the endpoint needs a token');
  const id = idIn(call, 'approval_id');
  const found = await findWait(dependencies, async () => {
    return (await dependencies.readModel.get(waitsProjection, id))?.document;
  });
  const wait = inReach(call, 'approval', id, found);
  if (wait.approval === null) throw notFound('approval', id);
  checkApprover(caller, wait.approval.approvers);
  const secrets = await secretsOfRun(dependencies, wait.run_id);
  const comment = body?.comment === undefined ? null : secrets.maskText(body.comment);
  const agent = { id: caller.agentId, name: caller.name };
  const end = decisionEnd({ approved, agent, comment }, context.now);
  const masked = withMaskedReason(context, secrets);
  const { position } = await endWaitCommand(dependencies.store, wait, end, masked);
  const { run_id, task_id, step } = wait;
  const state = approved ? 'approved' : 'rejected';
  return success(
    `the step is ${state}`,
    { approval_id: id, run_id, task_id, step, state },
    position,
  );
}

/** @throws HttpError 403 */
function checkApprover(
  { agentId, admin, scopes: granted }: NonNullable<Call['caller']>,
  approvers: readonly string[] | null,
): void {
  if (mayDecide(approvers, agentId, (scope) => admin || granted.includes(scope))) return;
  const message =
    approvers === null
      ? 'this needs the scope approvals:write'
      : 'only the approvers that the step names may decide';
  throw forbidden(message, decidingScopes(approvers), granted);
}

async function show(
  { id, run_id, task_id, step, since, until, ...wait }: WaitDocument,
  dependencies: Pick<ApiDependencies, 'agents'>,
): Promise<Approval> {
  const { approval, approval_state: state } = wait;
  if (approval === null || state === null) throw new Error(`wait ${id} is not an approval`);
  const { message, approvers, decided_by, decided_at, comment } = approval;
  const namespace = namespaceOf(wait);
  const [decided_by_name, approver_names] = await Promise.all([
    actorName(dependencies, decided_by),
    approvers && Promise.all(approvers.map((each) => nameIn(dependencies, namespace, each))),
  ]);
  return {
    id,
    run_id,
    task_id,
    step,
    message,
    approvers: approvers === null ? null : [...approvers],
    approver_names,
    state,
    requested_at: since,
    expires_at: until,
    decided_by,
    decided_by_name,
    decided_at,
    comment,
  };
}
