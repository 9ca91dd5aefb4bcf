import { cursors, pages } from './refusal-parts.ts';
import type { Row } from './refusal-table.ts';

/** The live streams of runs, and the due fires. */
export const liveRows: readonly Row[] = [
  {
    method: 'GET',
    path: '/tasks/due',
    scope: 'tasks:read',
    queries: [...pages, ...cursors, ['until=soon', 'until'], ['until=2026', 'until']],
  },
  {
    method: 'GET',
    path: '/runs/live',
    scope: 'runs:read',
    queries: [
      ['task_id=x', 'task_id'],
      ['state=done', 'state'],
      ['state=queued&state=running', 'state'],
    ],
  },
  {
    method: 'GET',
    path: '/tasks/{task}/live',
    scope: 'runs:read',
    resource: 'task',
    queries: [['state=done', 'state']],
  },
];
