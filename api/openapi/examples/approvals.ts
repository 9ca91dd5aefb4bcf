import type { Examples } from '../examples.ts';
import { agentId, approvalId, done, due, ended, page, runId, started, taskId } from './values.ts';

const approval = {
  id: approvalId,
  run_id: runId,
  task_id: taskId,
  step: 'confirm',
  message: 'Pay 4,200 EUR to Acme?',
  approvers: ['scope:payments:approve'],
  approver_names: [null],
  state: 'pending',
  requested_at: started,
  expires_at: '2026-11-30T08:00:00.041Z',
  decided_by: null,
  decided_by_name: null,
  decided_at: null,
  comment: null,
};
const decided = { approval_id: approvalId, run_id: runId, task_id: taskId, step: 'confirm' };
const callback = { run_id: runId, step: 'render' };

export const approvalExamples: Readonly<Record<string, Examples>> = {
  listApprovals: { parameters: { state: 'pending' }, responses: { 200: page(approval) } },
  getApproval: {
    responses: {
      200: {
        ...approval,
        state: 'approved',
        decided_by: agentId,
        decided_by_name: 'shop',
        decided_at: ended,
        comment: 'checked the invoice',
      },
    },
  },
  approve: {
    body: { comment: 'checked the invoice' },
    responses: { 200: done('the step is approved', { ...decided, state: 'approved' }) },
  },
  reject: {
    body: { comment: 'the amount is wrong' },
    responses: { 200: done('the step is rejected', { ...decided, state: 'rejected' }) },
  },
  completeCallback: {
    body: { pages: 12, finished_at: due },
    responses: { 200: done('the step continues', callback) },
  },
  failCallback: {
    body: { error: 'the file is damaged', retryable: false },
    responses: { 200: done('the step continues', callback) },
  },
};
