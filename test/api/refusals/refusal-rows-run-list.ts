import { cursors, pages } from './refusal-parts.ts';
import type { Row } from './refusal-table.ts';

/** The row of the table for the list of runs. */
export const runListRows: readonly Row[] = [
  {
    method: 'GET',
    path: '/runs',
    scope: 'runs:read',
    queries: [
      ...pages,
      ...cursors,
      ['task_id=x', 'task_id'],
      ['parent_run_id=x', 'parent_run_id'],
      ['success=maybe', 'success'],
      ['state=done', 'state'],
      ['trigger=x', 'trigger'],
      ['until=2026-01-01T00:00:00', 'until'],
      ['start_time=yesterday', 'start_time'],
      ['start_time=2026-01-01T00:00:00', 'start_time'],
      ['end_time=2026-13-01T00:00:00Z', 'end_time'],
      ['include_errors=yes', 'include_errors'],
      ['id=abc', 'id'],
      ['id=../../x', 'id'],
      ['error=', 'error'],
      [`input=${'x'.repeat(501)}`, 'input'],
      ['event_id=x', 'event_id'],
      ['id=abcd&offset=5', 'offset'],
      ['error=x&cursor=nonsense', 'cursor'],
    ],
  },
  {
    method: 'GET',
    path: '/runs/{run}/explain',
    scope: 'runs:read',
    resource: 'run',
    queries: [
      ['after=x', 'after'],
      ['step=', 'step'],
    ],
  },
];
