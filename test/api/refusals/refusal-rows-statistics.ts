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
    ],
  })),
  { method: 'GET', path: '/stats/summary', scope: 'runs:read', queries: [['days=0', 'days']] },
  { method: 'GET', path: '/runs/stats/summary', scope: 'runs:read', queries: [['days=0', 'days']] },
];
