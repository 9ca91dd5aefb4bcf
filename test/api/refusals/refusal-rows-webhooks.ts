import { cursors, pages } from './refusal-parts.ts';
import type { Row } from './refusal-table.ts';

/** Invalid parameters of webhooks. */
export const webhookRows: readonly Row[] = [
  {
    method: 'POST',
    path: '/agents/{agent}/webhook-secret',
    scope: ['admin', 'namespace:admin'],
    resource: 'agent',
  },
  {
    method: 'POST',
    path: '/agents/{agent}/webhook-test',
    scope: ['admin', 'namespace:admin'],
    resource: 'agent',
  },
  {
    method: 'GET',
    path: '/agents/{agent}/webhooks/deliveries',
    scope: ['admin', 'namespace:admin'],
    resource: 'agent',
    queries: [...pages, ...cursors, ['state=sent', 'state'], ['type=run.started', 'type']],
  },
  { method: 'GET', path: '/webhooks/resent', scope: 'admin', queries: [...pages, ...cursors] },
  {
    method: 'POST',
    path: '/agents/{agent}/webhooks/deliveries/{delivery}/repeat',
    scope: ['admin', 'namespace:admin'],
    resource: 'agent',
  },
];
