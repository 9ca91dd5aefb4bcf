import { cursors, long, pages } from './refusal-parts.ts';
import type { Row } from './refusal-table.ts';

const namespaces: NonNullable<Row['queries']> = [['namespace=Team', 'namespace']];

/** Invalid fields and parameters of secrets. */
export const secretRows: readonly Row[] = [
  {
    method: 'PUT',
    path: '/secrets/{secret}',
    scope: ['secrets:write', 'namespace:admin'],
    body: { value: 'hush' },
    required: ['value'],
    faults: [
      ['value', ''],
      ['value', 5],
      ['value', '\ud800'],
      ['value', long(64 * 1024 + 1)],
      ['allow_hosts', 'a.example'],
      ['allow_hosts', ['https://a.example'], 'allow_hosts.0'],
      ['allow_hosts', ['a.example/x'], 'allow_hosts.0'],
      ['allow_hosts', ['a.example:0'], 'allow_hosts.0'],
      ['allow_hosts', ['*.10.0.0.1'], 'allow_hosts.0'],
      ['allow_hosts', Array.from({ length: 101 }, () => 'a.example')],
      ['allow_tasks', ['me'], 'allow_tasks.0'],
      ['allow_tasks', 'all'],
      ['expires_at', 5],
      ['expires_at', 'tomorrow'],
      ['expires_at', '2020-01-01T00:00:00Z'],
      ['expires_at', long(65)],
      ['namespace', 'default'],
    ],
    queries: namespaces,
  },
  {
    method: 'GET',
    path: '/secrets',
    scope: ['secrets:read', 'secrets:write', 'namespace:admin'],
    queries: [...pages, ...cursors, ...namespaces, ['until=soon', 'until']],
  },
  {
    method: 'GET',
    path: '/secrets/{secret}',
    scope: ['secrets:read', 'secrets:write', 'namespace:admin'],
    queries: namespaces,
  },
  {
    method: 'DELETE',
    path: '/secrets/{secret}',
    scope: ['secrets:write', 'namespace:admin'],
    queries: namespaces,
  },
  { method: 'POST', path: '/secrets/rotate-key', scope: 'admin' },
];
