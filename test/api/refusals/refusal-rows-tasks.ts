import { newId } from '../../../domain/ids.ts';
import { cursors, long } from './refusal-parts.ts';
import type { Row } from './refusal-table.ts';

/** What was decided about a task's fires, the outcomes of its runs, and checks of a task. */
export const taskRows: readonly Row[] = [
  {
    method: 'GET',
    path: '/tasks/{task}/fires',
    scope: 'tasks:read',
    resource: 'task',
    needed: 'from=2026-01-01&to=2026-01-31',
    queries: [
      ['to=2026-01-31', 'from'],
      ['from=2026-01-31', 'to'],
      ['from=yesterday&to=2026-01-31', 'from'],
      ['from=2026-01-01&to=2026-02-30T00:00:00Z', 'to'],
      ['from=2026-01-02&to=2026-01-01', 'to'],
      ['from=2026-01-01&to=2027-01-03', 'to'],
      ['from=2026-01-01&to=2026-01-31&limit=0', 'limit'],
      ['from=2026-01-01&to=2026-01-31&limit=201', 'limit'],
      ['from=2026-01-01&to=2026-01-31&after=nowhere', 'after'],
      ...cursors.map(
        ([query, field]) => [`from=2026-01-01&to=2026-01-31&${query}`, field] as const,
      ),
    ],
  },
  {
    method: 'GET',
    path: '/tasks/{task}/calendar',
    scope: 'tasks:read',
    resource: 'task',
    needed: 'from=2026-01-01&to=2026-01-31',
    queries: [
      ['to=2026-01-31', 'from'],
      ['from=2026-01-31', 'to'],
      ['from=2026-01-01T00:00&to=2026-01-31', 'from'],
      ['from=2026-01-01&to=2026-02-30', 'to'],
      ['from=2026-01-02&to=2026-01-01', 'to'],
      ['from=2026-01-01&to=2026-03-04', 'to'],
      ['from=2026-01-01&to=2028-01-01&by=month', 'to'],
      ['from=9999-01-01&to=9999-01-31', 'from'],
      ['from=2026-01-01&to=2026-01-31&by=week', 'by'],
      ['from=2026-01-01&to=2026-01-31&timezone=Mars/Olympus', 'timezone'],
      ['from=2026-01-01&to=2026-01-31&timezone=%2B02:00', 'timezone'],
    ],
  },
  {
    method: 'GET',
    path: '/tasks/outcomes',
    scope: 'runs:read',
    needed: `ids=${newId(0)}`,
    queries: [
      ['', 'ids'],
      ['ids=', 'ids'],
      ['ids=,', 'ids'],
      ['ids=mine', 'ids'],
      [`ids=${Array.from({ length: 201 }, (_, n) => newId(n)).join(',')}`, 'ids'],
    ],
  },
  {
    method: 'POST',
    path: '/tasks/check',
    scope: 'tasks:write',
    body: { title: 'a', description: 'a', schedule_kind: 'event', payload: { pipeline: [] } },
    required: ['title', 'description', 'schedule_kind', 'payload'],
    faults: [
      ['task_id', 'mine'],
      ['title', long(201)],
      ['schedule_kind', 'weekly'],
      ['timezone', 'Mars/Olympus'],
      ['payload', {}, 'payload.pipeline'],
      ['created_by', newId(0)],
      ['priority', 0],
      ['extra', 1],
    ],
  },
  { method: 'GET', path: '/tools', scope: 'tasks:read', queries: [['of=mine', 'of']] },
];
