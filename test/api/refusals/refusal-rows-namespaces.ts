import type { Row } from './refusal-table.ts';

const administrators = ['admin', 'namespace:admin'];

/** Namespaces. */
export const namespaceRows: readonly Row[] = [
  {
    method: 'POST',
    path: '/namespaces',
    scope: 'admin',
    body: { name: 'reports' },
    required: ['name'],
    faults: [
      ['name', 'Reports'],
      ['name', '-reports'],
      ['name', 'r'.repeat(64)],
      ['name', 5],
      ['description', ''],
      ['quotas.tasks', -1],
      ['quotas.weight', 0],
      ['quotas.cpu', 1],
      ['extra', 1],
    ],
  },
  {
    method: 'GET',
    path: '/namespaces',
    scope: administrators,
    queries: [
      ['limit=0', 'limit'],
      ['limit=201', 'limit'],
      ['other=1', 'other'],
    ],
  },
  { method: 'GET', path: '/namespaces/default', scope: administrators },
  {
    method: 'PUT',
    path: '/namespaces/default',
    scope: administrators,
    body: { description: null },
    faults: [
      ['description', ''],
      ['quotas.events', 1.5],
      ['quotas.cpu', 1],
      ['extra', 1],
    ],
  },
  { method: 'DELETE', path: '/namespaces/reports', scope: 'admin' },
  {
    method: 'GET',
    path: '/namespaces/default/usage',
    scope: [],
    queries: [['after=nowhere', 'after']],
  },
];
