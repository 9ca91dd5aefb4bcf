import { cursors, long } from './refusal-parts.ts';
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
  {
    method: 'GET',
    path: '/streams',
    scope: 'audit:read',
    queries: [
      ['limit=0', 'limit'],
      ['limit=201', 'limit'],
      [`prefix=${long(401)}`, 'prefix'],
      ['cursor=nonsense', 'cursor'],
      [`cursor=${Buffer.from('["other-","x"]').toString('base64url')}`, 'cursor'],
    ],
  },
  {
    method: 'GET',
    path: '/streams/{key}',
    scope: 'audit:read',
    queries: [
      ['from=-1', 'from'],
      ['from=x', 'from'],
      ['direction=sideways', 'direction'],
      ['limit=201', 'limit'],
    ],
  },
  {
    method: 'GET',
    path: '/audit',
    scope: 'audit:read',
    queries: [
      ['limit=0', 'limit'],
      ['limit=201', 'limit'],
      ...cursors,
      ['actor=somebody', 'actor'],
      ['actor=service&cursor=x', 'cursor'],
      ['actor=service&stream=task-x&cursor=x', 'cursor'],
      ['type=Nothing', 'type'],
      ['from=yesterday', 'from'],
      ['to=2026-01-01T00:00:00', 'to'],
      ['stream=', 'stream'],
      ['after=nowhere', 'after'],
    ],
  },
  {
    method: 'GET',
    path: '/audit/live',
    scope: 'audit:read',
    queries: [
      ['actor=somebody', 'actor'],
      ['actor=service', 'actor'],
      ['type=Nothing', 'type'],
    ],
  },
];
