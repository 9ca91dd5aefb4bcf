import type { Row } from './refusal-table.ts';

/** A task's latest run, and the statistics. */
export const statisticsRows: readonly Row[] = [
  { method: 'GET', path: '/task/{task}/latest', scope: 'runs:read', resource: 'task' },
  { method: 'GET', path: '/runs/task/{task}/latest', scope: 'runs:read', resource: 'task' },
  ...['/task/{task}/stats', '/runs/task/{task}/stats'].map((path): Row => ({
    method: 'GET',
    path,
    scope: 'runs:read',
    resource: 'task',
    queries: [
      ['days=0', 'days'],
      ['days=366', 'days'],
      ['days=x', 'days'],
      ['days=32&interval=hour', 'days'],
      ['interval=week', 'interval'],
      ['timezone=Mars/Olympus', 'timezone'],
    ],
  })),
  ...['/stats/summary', '/runs/stats/summary'].map((path): Row => ({
    method: 'GET',
    path,
    scope: 'runs:read',
    queries: [
      ['days=0', 'days'],
      ['days=366', 'days'],
      ['days=365&interval=hour', 'days'],
      ['timezone=W.%20Europe%20Standard%20Time', 'timezone'],
      ['timezone=%2B02:00', 'timezone'],
    ],
  })),
  {
    method: 'GET',
    path: '/stats/errors',
    scope: 'runs:read',
    queries: [
      ['days=32', 'days'],
      ['hours=0', 'hours'],
      ['hours=745', 'hours'],
      ['timezone=Nowhere', 'timezone'],
      ['interval=minute', 'interval'],
      ['task_id=x', 'task_id'],
      ['limit=201', 'limit'],
    ],
  },
  {
    method: 'GET',
    path: '/stats/tasks',
    scope: 'runs:read',
    queries: [
      ['days=32', 'days'],
      ['hours=x', 'hours'],
      ['timezone=Nowhere', 'timezone'],
      ['sort=name', 'sort'],
      ['limit=101', 'limit'],
    ],
  },
];
