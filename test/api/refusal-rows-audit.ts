import type { Row } from './refusal-table.ts';

/** The endpoints of the past: histories, streams and the audit. */
export const auditRows: readonly Row[] = [
  ...(['task', 'run', 'agent'] as const).map((kind): Row => ({
    method: 'GET',
    path: `/${kind}s/{${kind}}/history`,
    scope: 'audit:read',
    resource: kind,
    queries: [
      ['limit=0', 'limit'],
      ['limit=201', 'limit'],
      ['cursor=nonsense', 'cursor'],
      ['cursor=-1', 'cursor'],
    ],
  })),
];
