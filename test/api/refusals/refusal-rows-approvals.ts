import { newId } from '../../../domain/ids.ts';
import { cursors, long, pages } from './refusal-parts.ts';
import type { Row } from './refusal-table.ts';

const decision: Pick<Row, 'method' | 'scope' | 'resource' | 'faults'> = {
  method: 'POST',
  scope: [],
  resource: 'approval',
  faults: [
    ['comment', ''],
    ['comment', 5],
    ['comment', long(2001)],
    ['reason', 'x'],
  ],
};

/** Invalid parameters of approvals and callbacks. */
export const approvalRows: readonly Row[] = [
  {
    method: 'GET',
    path: '/approvals',
    scope: 'tasks:read',
    queries: [
      ...pages,
      ...cursors,
      ['state=open', 'state'],
      ['task_id=x', 'task_id'],
      ['run_id=x', 'run_id'],
    ],
  },
  {
    method: 'GET',
    path: '/approvals/{approval}',
    scope: 'tasks:read',
    resource: 'approval',
    queries: [['after=x', 'after']],
  },
  { ...decision, path: '/approvals/{approval}/approve', body: {} },
  { ...decision, path: '/approvals/{approval}/reject', body: {} },
  // Any JSON is a valid body; `test/api/endpoints/runs/callbacks.test.ts` has its invalid requests.
  { method: 'POST', path: `/callbacks/${newId(0)}`, scope: null, takesAll: true },
  {
    method: 'POST',
    path: `/callbacks/${newId(0)}/fail`,
    scope: null,
    body: { error: 'x' },
    required: ['error'],
    faults: [
      ['error', ''],
      ['error', 5],
      ['error', long(4001)],
      ['retryable', 'yes'],
      ['extra', 1],
    ],
  },
];
