import { cursors, long, pages } from './refusal-parts.ts';
import type { Row } from './refusal-table.ts';

const administrators = ['admin', 'namespace:admin'] as const;

/** Invalid values of what disables agents and gives them keys. */
export const agentRows: readonly Row[] = [
  {
    method: 'POST',
    path: '/agents/{agent}/disable',
    scope: administrators,
    resource: 'agent',
    queries: [['runs=kill', 'runs']],
  },
  {
    method: 'POST',
    path: '/agents/{agent}/enable',
    scope: administrators,
    resource: 'agent',
    queries: [['missed=some', 'missed']],
  },
  {
    method: 'GET',
    path: '/agents/keys',
    scope: 'admin',
    queries: [...pages, ...cursors, ['until=soon', 'until']],
  },
  {
    method: 'POST',
    path: '/agents/{agent}/keys',
    scope: [],
    resource: 'agent',
    body: { name: 'deploy' },
    required: ['name'],
    faults: [
      ['name', ''],
      ['name', long(101)],
      ['name', ' deploy'],
      ['scopes', 'tasks:read'],
      ['scopes', ['Upper'], 'scopes.0'],
      ['scopes', ['not:among:its:own']],
      ['expires_at', 'soon'],
      ['expires_at', '2020-01-01T00:00:00Z'],
      ['key', 'svck_x'],
    ],
  },
  {
    method: 'GET',
    path: '/agents/{agent}/keys',
    scope: [],
    resource: 'agent',
    queries: [['after=x', 'after']],
  },
  {
    method: 'DELETE',
    path: '/agents/{agent}/keys/{api_key}',
    scope: [],
    resource: 'agent',
  },
];
